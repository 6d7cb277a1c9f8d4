"""Required affinity between pods, in all three directions (kube-scheduler's InterPodAffinity).

A pod may need others in its domain, avoid others, or be avoided by others that are there already.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dovetail.api.placement import Namespace
from dovetail.api.pods import Pod, PodAffinity, PodAffinityTerm
from dovetail.api.selection import LabelSelector, Requirement
from dovetail.core.budget import Budget
from dovetail.core.footprints import Footprint
from dovetail.core.labels import Labels, labels_match
from dovetail.core.node_refusals import NodeCause, NodeRefusal
from dovetail.core.nodes import NodeState, pods_beside

if TYPE_CHECKING:
    from dovetail.core.world import World

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that every namespace has."""

KINDS_KEPT = 16
"""Of how many kinds of pods an avoider remembers what its terms say; kinds differ in what the terms read."""

Domain = tuple[str, str]
"""A label of nodes and its value."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A term with its owner's namespace and label keys resolved."""

    topology_key: str
    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None

    def matches(self, pod: Pod, namespaces: Mapping[str, Labels]) -> bool:
        """The term is about this pod."""
        namespace = pod.metadata.namespace
        here = namespace in self.namespaces or (
            self.namespace_selector is not None
            and labels_match(self.namespace_selector, namespaces.get(namespace, {NAMESPACE_NAME: namespace}))
        )
        return here and labels_match(self.selector, pod.metadata.labels)


class Avoider:
    """A pod that keeps others away from where it is: what its terms say of pods is looked up once.

    Its author decides how many terms there are, and everybody else's pods are held against them.
    """

    def __init__(self, pod: Pod) -> None:
        self._pod = pod
        self._known: dict[Hashable, frozenset[str]] = {}

    @cached_property
    def _terms(self) -> tuple[_Term, ...]:
        return _terms(self._pod, _away(self._pod))

    @cached_property
    def _weight(self) -> int:
        return 1 + sum(map(_weight, self._terms))

    @cached_property
    def _reads(self) -> frozenset[str]:
        return frozenset(key for term in self._terms for key in _read_by(term.selector))

    def topology_keys(self, pod: Pod, namespaces: Mapping[str, Labels], budget: Budget) -> frozenset[str]:
        """The topology keys of the terms that are about a pod. Raises `BudgetSpent`."""
        namespace = pod.metadata.namespace
        its_labels = namespaces.get(namespace, {NAMESPACE_NAME: namespace})
        read = [(key, value) for key, value in pod.metadata.labels.items() if key in self._reads]
        kind = (namespace, frozenset(its_labels.items()), frozenset(read))
        known = self._known.get(kind)
        if known is None:
            budget.look(self._weight)
            known = frozenset(t.topology_key for t in self._terms if t.matches(pod, namespaces))
            if len(self._known) >= KINDS_KEPT:
                self._known.clear()
            self._known[kind] = known
        return known


@dataclass(frozen=True, slots=True)
class AffinityFilter:
    """How many pods of each kind every domain has."""

    near: tuple[_Term, ...]
    away: tuple[_Term, ...]
    near_counts: Mapping[Domain, int]
    away_counts: Mapping[Domain, int]
    avoiding: Collection[Domain]
    is_first: bool
    """Nobody matches all the terms yet, and the pod itself does: it may open a domain."""

    def refuse(self, state: NodeState) -> NodeRefusal | None:
        """The first direction that speaks against the node."""
        if self.near and not self._has_company(state):
            return NodeRefusal(NodeCause.POD_AFFINITY)
        for term in self.away:
            if self.away_counts.get((term.topology_key, state.labels.get(term.topology_key, "")), 0):
                return NodeRefusal(NodeCause.POD_ANTI_AFFINITY)
        if self.avoiding and any(domain in self.avoiding for domain in state.labels.items()):
            return NodeRefusal(NodeCause.AVOIDED_BY_POD)
        return None

    def _has_company(self, state: NodeState) -> bool:
        domains = [(term.topology_key, state.labels.get(term.topology_key)) for term in self.near]
        if any(value is None for _, value in domains):
            return False
        return self.is_first or all(self.near_counts.get((key, value or ""), 0) for key, value in domains)


def affinity_filter(world: "World", footprint: Footprint, budget: Budget) -> AffinityFilter | None:
    """None where neither the pod nor any pod on a node has a required term that could matter.

    Raises `BudgetSpent`.
    """
    pod = footprint.pod
    near, away = _terms(pod, _near(pod)), _terms(pod, _away(pod))
    namespaces = _namespaces(world)
    avoiding = _avoiding(world, footprint, namespaces, budget)
    if not near and not away and not avoiding:
        return None
    near_counts = _counts_of_all(world, footprint, near, namespaces, budget) if near else Counter()
    return AffinityFilter(
        near=near,
        away=away,
        near_counts=near_counts,
        away_counts=_counts_of_each(world, footprint, away, namespaces, budget) if away else {},
        avoiding=avoiding,
        is_first=not near_counts and all(term.matches(pod, namespaces) for term in near),
    )


def avoider_of(pod: Pod) -> Avoider | None:
    """What keeps others away from where the pod is, if anything does."""
    return Avoider(pod) if _away(pod) is not None else None


def avoids_the_same(one: Pod, other: Pod) -> bool:
    """What keeps others away from two versions of a pod is the same."""
    return one.metadata.labels == other.metadata.labels and one.spec.affinity == other.spec.affinity


def _near(pod: Pod) -> PodAffinity | None:
    affinity = pod.spec.affinity and pod.spec.affinity.pod_affinity
    return affinity if affinity and affinity.required else None


def _away(pod: Pod) -> PodAffinity | None:
    affinity = pod.spec.affinity and pod.spec.affinity.pod_anti_affinity
    return affinity if affinity and affinity.required else None


def _terms(pod: Pod, affinity: PodAffinity | None) -> tuple[_Term, ...]:
    return tuple(_resolve(pod, term) for term in affinity.required) if affinity else ()


def _resolve(pod: Pod, term: PodAffinityTerm) -> _Term:
    """Without namespaces, a term is about its pod's own."""
    own = not term.namespaces and term.namespace_selector is None
    return _Term(
        topology_key=term.topology_key,
        selector=with_label_keys(
            term.label_selector, pod.metadata.labels, term.match_label_keys, term.mismatch_label_keys
        ),
        namespaces=frozenset({pod.metadata.namespace} if own else term.namespaces),
        namespace_selector=term.namespace_selector,
    )


def with_label_keys(
    selector: LabelSelector | None, labels: Labels, match: Iterable[str], mismatch: Iterable[str] = ()
) -> LabelSelector | None:
    """The selector with the pod's own values of some labels added, as the API server does at creation."""
    if selector is None:
        return None
    added = [
        Requirement(key=key, operator=operator, values=(labels[key],))
        for operator, keys in (("In", match), ("NotIn", mismatch))
        for key in keys
        if key in labels
    ]
    if not added:
        return selector
    return LabelSelector(
        match_labels=selector.match_labels, match_expressions=(*selector.match_expressions, *added)
    )


def _namespaces(world: "World") -> dict[str, Labels]:
    return {
        key[1]: {NAMESPACE_NAME: key[1], **namespace.metadata.labels}
        for key, namespace in world.others[Namespace.__name__].items()
    }


def _avoiding(
    world: "World", footprint: Footprint, namespaces: Mapping[str, Labels], budget: Budget
) -> set[Domain]:
    """The domains that pods with a term about this one keep free of it."""
    found: set[Domain] = set()
    for key, avoider in world.avoiders.items():
        home = world.nodes.home_of(key)
        state = world.nodes.find(home.node) if home is not None else None
        if state is None or key == footprint.key:
            continue
        budget.look()
        about = avoider.topology_keys(footprint.pod, namespaces, budget)
        found.update(domain for domain in state.labels.items() if domain[0] in about)
    return found


def _counts_of_all(
    world: "World",
    footprint: Footprint,
    terms: tuple[_Term, ...],
    namespaces: Mapping[str, Labels],
    budget: Budget,
) -> Counter[Domain]:
    """Pods that match every term, by domain of each term."""
    found: Counter[Domain] = Counter()
    weight = sum(_weight(term) for term in terms)
    for state, pod in _pods_on_nodes(world, footprint):
        budget.look(weight)
        if all(term.matches(pod, namespaces) for term in terms):
            found.update(_domains(state, terms))
    return found


def _counts_of_each(
    world: "World",
    footprint: Footprint,
    terms: tuple[_Term, ...],
    namespaces: Mapping[str, Labels],
    budget: Budget,
) -> Counter[Domain]:
    found: Counter[Domain] = Counter()
    weight = sum(_weight(term) for term in terms)
    for state, pod in _pods_on_nodes(world, footprint):
        budget.look(weight)
        found.update(_domains(state, [term for term in terms if term.matches(pod, namespaces)]))
    return found


def _weight(term: _Term) -> int:
    """How much there is to look at in a term."""
    named = 1 + len(term.namespaces) // 16
    return named + sum(map(_size, (term.selector, term.namespace_selector)))


def _size(selector: LabelSelector | None) -> int:
    if selector is None:
        return 0
    expressions = selector.match_expressions
    return len(selector.match_labels) + sum(1 + len(each.values) // 16 for each in expressions)


def _read_by(selector: LabelSelector | None) -> Iterator[str]:
    """The labels that a selector looks at."""
    if selector is not None:
        yield from selector.match_labels
        yield from (each.key for each in selector.match_expressions)


def _domains(state: NodeState, terms: Iterable[_Term]) -> Iterator[Domain]:
    for term in terms:
        if (value := state.labels.get(term.topology_key)) is not None:
            yield (term.topology_key, value)


def _pods_on_nodes(world: "World", footprint: Footprint) -> Iterator[tuple[NodeState, Pod]]:
    for state in world.nodes:
        for other in pods_beside(state, footprint):
            yield state, other.pod
