"""Which nodes a pod can use, as kube-scheduler would judge: labels, taints and what is left on each.

What equal pods were told is kept, and only nodes that changed since are judged again.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from dovetail.core.budget import Budget
from dovetail.core.footprints import Footprint, Shape
from dovetail.core.labels import node_matches
from dovetail.core.node_refusals import NodeCause, NodeRefusal
from dovetail.core.node_taints import refuse_taints
from dovetail.core.nodes import NodeBook, NodeState
from dovetail.core.resources import Amounts, human

CLASS_RESOURCE = "deviceclass.resource.kubernetes.io/"
"""The prefix of the resource that every class has by itself (KEP-5004)."""

_KEPT_KINDS = 256


@dataclass(slots=True)
class Verdicts:
    """What pods of one kind were told: the nodes they can use by name, and why not the others.

    `usable` stays the same object while nothing changes.
    """

    usable: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    """The usable nodes again, to look one up."""
    refused: dict[str, NodeRefusal] = field(default_factory=dict)
    position: int = 0


class Judge:
    """Judges nodes for pods, and remembers what it said."""

    def __init__(self, book: NodeBook) -> None:
        self._book = book
        self._kinds: OrderedDict[tuple[Shape, tuple[tuple[str, int], ...]], Verdicts] = OrderedDict()
        self._class_resources: frozenset[str] = frozenset()

    def set_class_resources(self, names: frozenset[str]) -> None:
        """The extended resources that a DeviceClass backs: no capacity of nodes that lack them."""
        if names != self._class_resources:
            self._class_resources = names
            self._kinds.clear()

    def forget(self) -> None:
        """Judge everything anew."""
        self._kinds.clear()

    def verdicts(self, footprint: Footprint, budget: Budget) -> Verdicts:
        """What the pod's shape and requests allow; pods on the nodes count, nominated ones do not.

        Raises `BudgetSpent`; what was judged until then counts for nothing.
        """
        kind = (footprint.shape, footprint.demand)
        known = self._kinds.get(kind)
        changed = None if known is None else self._book.journal.since(known.position)
        if known is None or changed is None or len(changed) * 4 > len(self._book):
            known = self._kinds[kind] = self._judge_all(footprint, known.usable if known else (), budget)
        elif changed:
            self._judge_again(known, changed, footprint, budget)
        known.position = self._book.journal.position
        self._kinds.move_to_end(kind)
        if len(self._kinds) > _KEPT_KINDS:
            self._kinds.popitem(last=False)
        return known

    def refuse(
        self, state: NodeState, footprint: Footprint, *, without: Collection[Footprint] = ()
    ) -> NodeRefusal | None:
        """Why the pod cannot use the node, if that no longer held `without`."""
        refusal = refuse_shape(state, footprint.shape)
        return refusal or self.refuse_amounts(state, footprint.requests, without=without)

    def refuse_amounts(
        self,
        state: NodeState,
        requests: Mapping[str, int],
        *,
        pods: int = 1,
        without: Collection[Footprint] = (),
    ) -> NodeRefusal | None:
        """Why the node has too little left for so many pods and requests, if it no longer held `without`."""
        if state.allocatable is None:
            return None
        returned = [each for each in without if each.key in state.pods]
        if len(state.pods) + pods - len(returned) > state.pod_limit:
            return NodeRefusal(NodeCause.PODS, f"{state.pod_limit} allowed")
        offered, used = state.allocatable, state.used
        for resource, wanted in requests.items():
            left = offered.get(resource, 0) - used.get(resource, 0)
            left += sum(each.requests.get(resource, 0) for each in returned)
            if wanted > left and not self._is_class_resource(resource, offered):
                return NodeRefusal(
                    NodeCause.RESOURCES, human(resource, wanted), resource=resource, left=max(left, 0)
                )
        return None

    def _judge_all(self, footprint: Footprint, before: tuple[str, ...], budget: Budget) -> Verdicts:
        verdicts, weight = Verdicts(), weight_of(footprint)
        usable = []
        for state in self._book:
            budget.look(weight)
            refusal = self.refuse(state, footprint)
            if refusal is None:
                usable.append(state.name)
            else:
                verdicts.refused[state.name] = refusal
        verdicts.usable = before if before == tuple(usable) else tuple(usable)
        verdicts.names = frozenset(usable)
        return verdicts

    def _judge_again(
        self, verdicts: Verdicts, changed: Iterable[str], footprint: Footprint, budget: Budget
    ) -> None:
        gone, come, weight = set(), [], weight_of(footprint)
        for name in changed:
            budget.look(weight)
            state = self._book.find(name)
            refusal = self.refuse(state, footprint) if state is not None else None
            verdicts.refused.pop(name, None)
            if refusal is not None:
                verdicts.refused[name] = refusal
            was_usable = name in verdicts.names
            is_usable = state is not None and refusal is None
            if was_usable and not is_usable:
                gone.add(name)
            elif is_usable and not was_usable:
                come.append(name)
        if gone or come:
            verdicts.usable = tuple(sorted([*(n for n in verdicts.usable if n not in gone), *come]))
            verdicts.names = frozenset(verdicts.usable)

    def _is_class_resource(self, resource: str, offered: Amounts) -> bool:
        """A class backs the resource, and the node has no device plugin that offers it (KEP-5004)."""
        if offered.get(resource, 0):
            return False
        return resource in self._class_resources or resource.startswith(CLASS_RESOURCE)


def weight_of(footprint: Footprint) -> int:
    """How much there is to look at, for each node, of what a pod asks of it: about one for most pods."""
    shape = footprint.shape
    weight = 1 + (len(shape.selector) + len(shape.tolerations)) // 8
    for term in shape.affinity.node_selector_terms if shape.affinity else ():
        weight += 1 + sum(1 + len(each.values) // 16 for each in term.match_expressions)
    return weight


def refuse_shape(state: NodeState, shape: Shape) -> NodeRefusal | None:
    """Why a pod of this shape cannot use the node, whatever runs there.

    Of a node that is only assumed, the name is known and nothing else: no taint, and any label may be there.
    """
    if state.node is not None and (refusal := refuse_taints(state.node, shape.tolerations)):
        return refusal
    return refuse_labels(state, shape)


def refuse_labels(state: NodeState, shape: Shape) -> NodeRefusal | None:
    """Why the pod's node selector or required node affinity leaves the node out."""
    complete = state.node is not None
    for key, value in shape.selector:
        if state.labels.get(key) != value and (complete or key in state.labels):
            return NodeRefusal(NodeCause.SELECTOR, f"{key}={value}")
    if shape.affinity and not node_matches(shape.affinity, state.name, state.labels, complete=complete):
        return NodeRefusal(NodeCause.AFFINITY)
    return None
