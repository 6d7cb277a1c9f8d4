"""Which nodes are candidates for a pod and those that share its claims, and why the others are not."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.api.claims import ResourceClaim
from dovetail.api.selection import NodeSelector
from dovetail.core.budget import Budget
from dovetail.core.filters import NodeFilter, filters_for
from dovetail.core.footprints import Footprint, Shape
from dovetail.core.judging import refuse_shape, weight_of
from dovetail.core.labels import node_matches, only_node
from dovetail.core.node_refusals import NodeCause, NodeRefusal
from dovetail.core.nodes import Hold, NodeState, pods_expected
from dovetail.core.resources import Amounts, total_of
from dovetail.core.world import World

NO_REFUSALS: Mapping[str, NodeRefusal] = {}
SHORTAGES = (NodeCause.RESOURCES, NodeCause.PODS)
"""What pods of lower priority can make room for."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The nodes that can be used, by name, and why not the others; an unchanged answer is the same tuple."""

    usable: tuple[str, ...]
    refused: Mapping[str, NodeRefusal]


@dataclass(frozen=True, slots=True)
class Party:
    """A pod that wants a node, first, and those that have to go with it because they share a claim."""

    pods: tuple[Footprint, ...]
    selectors: tuple[tuple[str, NodeSelector], ...] = ()
    """Node selectors of allocated claims, each with the claim's name."""
    bound_to: frozenset[str] = frozenset()
    """Nodes on which pods of the party run already."""
    budget: Budget = field(default_factory=Budget.unlimited)
    """For looking at all nodes, and at what runs there. Questions about the party raise `BudgetSpent`."""


def selectors_of(claims: Iterable[ResourceClaim]) -> tuple[tuple[str, NodeSelector], ...]:
    """The node selectors that allocated claims impose (S31)."""
    return tuple(
        (claim.metadata.name, claim.status.allocation.node_selector)
        for claim in claims
        if claim.status.allocation is not None and claim.status.allocation.node_selector is not None
    )


def candidates_for(world: World, party: Party, avoid: Collection[str] = ()) -> Candidates:
    """The nodes that all pods of the party can use together, as kube-scheduler would judge."""
    if party.bound_to:
        return _narrowed(world, party, sorted(party.bound_to), avoid)
    if tied := {node for _, selector in party.selectors if (node := only_node(selector)) is not None}:
        return _narrowed(world, party, sorted(tied), avoid)
    verdicts = world.judge.verdicts(party.pods[0], party.budget)
    checks = _checks(world, party, avoid)
    suspects = verdicts.usable if checks.concern_all else {*avoid, *world.nodes.nominated} & verdicts.names
    refusals = {name: refusal for name in suspects if (refusal := checks.refuse(name)) is not None}
    if not refusals:
        return Candidates(verdicts.usable, verdicts.refused)
    left = tuple(name for name in verdicts.usable if name not in refusals)
    return Candidates(left, {**verdicts.refused, **refusals})


def preemption_candidates(world: World, party: Party, refused: Mapping[str, NodeRefusal]) -> tuple[str, ...]:
    """Nodes that would do if pods of lower priority left: kube-scheduler makes them leave (V-20).

    Only what these pods take of a node's resources counts, not their devices, ports or labels.
    """
    first = party.pods[0]
    if first.pod.spec.preemption_policy == "Never" or len(party.pods) > 1 or party.bound_to:
        return ()
    short = (name for name, refusal in refused.items() if refusal.cause in SHORTAGES)
    checks = _checks(world, party, ())
    return tuple(
        sorted(
            name
            for name in short
            if _has_victims(world, first, name, party.budget) and not checks.refuse(name)
        )
    )


def _has_victims(world: World, footprint: Footprint, name: str, budget: Budget) -> bool:
    state = world.nodes.find(name)
    if state is None:
        return False
    budget.look(weight_of(footprint) + len(state.pods))
    victims = [pod for pod in state.pods.values() if pod.priority < footprint.priority]
    return bool(victims) and world.judge.refuse(state, footprint, without=(*victims, footprint)) is None


def _narrowed(world: World, party: Party, names: Sequence[str], avoid: Collection[str]) -> Candidates:
    """At most one node is left: each of the given ones is the only one for somebody.

    Every other node is refused for the same reason, and is not asked for another one.
    """
    if len(names) > 1:
        apart = NodeRefusal(NodeCause.APART, " and ".join(names))
        return Candidates((), dict.fromkeys(names, apart))
    (name,) = names
    state = world.nodes.find(name)
    if name in party.bound_to and len(party.pods) == 1:
        return Candidates((name,), NO_REFUSALS)
    if state is None:
        return Candidates((), {name: NodeRefusal(NodeCause.GONE, name)})
    first = party.pods[0]
    refusal = world.judge.refuse(state, first, without=(first,))
    refusal = refusal or _checks(world, party, avoid).refuse(name)
    return Candidates((), {name: refusal}) if refusal else Candidates((name,), NO_REFUSALS)


@dataclass(frozen=True, slots=True)
class _Checks:
    """What is asked of nodes beyond what equal pods were told."""

    world: World
    party: Party
    avoid: Collection[str]
    filters: tuple[NodeFilter, ...]
    shapes: tuple[Shape, ...]
    """What the rest of the party asks of nodes, each once."""
    newcomers: tuple[Footprint, ...]
    """The pod, and those of the party that count on no node yet."""
    crowd: Amounts
    """What the newcomers take together."""
    weight: int
    """How much there is to look at on a node."""

    @property
    def concern_all(self) -> bool:
        """Whether there is anything to ask of every node; else only of avoided ones and nominated pods'."""
        return bool(self.filters or self.party.selectors or len(self.party.pods) > 1)

    def refuse(self, name: str) -> NodeRefusal | None:
        """The first thing that speaks against the node."""
        self.party.budget.look(self.weight)
        state = self.world.nodes.find(name)
        if state is None:
            return NodeRefusal(NodeCause.GONE, name)
        if name in self.avoid:
            return NodeRefusal(NodeCause.AVOIDED)
        return self._refuse_selectors(state) or self._refuse_others(state) or self._refuse_filters(state)

    def _refuse_selectors(self, state: NodeState) -> NodeRefusal | None:
        complete = state.node is not None
        for claim, selector in self.party.selectors:
            if not node_matches(selector, state.name, state.labels, complete=complete):
                return NodeRefusal(NodeCause.CLAIM_ELSEWHERE, claim)
        return None

    def _refuse_others(self, state: NodeState) -> NodeRefusal | None:
        """The rest of the party has to fit beside the pod, and so have nominated pods that go before it."""
        for shape in self.shapes:
            if refusal := refuse_shape(state, shape):
                return refusal
        first = self.party.pods[0]
        expected = self._expected(state) if state.nominated else []
        if not expected and len(self.newcomers) == 1:
            return None
        crowd = total_of((self.crowd, *(each.requests for each in expected))) if expected else self.crowd
        return self.world.judge.refuse_amounts(
            state, crowd, pods=len(self.newcomers) + len(expected), without=(first,)
        )

    def _expected(self, state: NodeState) -> list[Footprint]:
        """Pods that are expected there and go before the pod, as far as there is room for them."""
        first = self.party.pods[0]
        members = {member.key for member in self.party.pods}
        coming: list[Footprint] = []
        total: Amounts = {}
        ranked = sorted(pods_expected(state, first), key=lambda each: (-each.priority, each.key))
        for each in (other for other in ranked if other.key not in members):
            more = total_of((total, each.requests))
            if self.world.judge.refuse_amounts(state, more, pods=len(coming) + 1, without=(first,)) is None:
                coming, total = [*coming, each], more
        return coming

    def _refuse_filters(self, state: NodeState) -> NodeRefusal | None:
        return next((no for each in self.filters if (no := each.refuse(state)) is not None), None)


def _checks(world: World, party: Party, avoid: Collection[str]) -> _Checks:
    first, *others = party.pods
    newcomers = (first, *(other for other in others if not _counts(world, other)))
    return _Checks(
        world=world,
        party=party,
        avoid=avoid,
        filters=tuple(each for pod in party.pods for each in filters_for(world, pod, party.budget)),
        shapes=tuple(dict.fromkeys(other.shape for other in others if other.shape != first.shape)),
        newcomers=newcomers,
        crowd=total_of(each.requests for each in newcomers),
        weight=sum(map(_weight_of, party.pods)),
    )


def _weight_of(footprint: Footprint) -> int:
    """How much there is to look at on a node, all conditions of the pod included."""
    spec = footprint.pod.spec
    terms = 0
    if spec.affinity is not None:
        for affinity in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            terms += len(affinity.required) if affinity is not None else 0
    return weight_of(footprint) + terms + len(spec.topology_spread_constraints) + len(spec.volumes)


def _counts(world: World, footprint: Footprint) -> bool:
    """What the pod takes is taken from a node already; a nomination takes nothing."""
    home = world.nodes.home_of(footprint.key)
    return home is not None and home.hold is not Hold.NOMINATED
