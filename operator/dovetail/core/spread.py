"""Topology spread that must hold (kube-scheduler's PodTopologySpread with DoNotSchedule)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dovetail.api.pods import Pod, TopologySpreadConstraint
from dovetail.api.selection import LabelSelector
from dovetail.core.affinity import with_label_keys
from dovetail.core.budget import Budget
from dovetail.core.footprints import Footprint
from dovetail.core.judging import refuse_labels, weight_of
from dovetail.core.labels import labels_match
from dovetail.core.node_refusals import NodeCause, NodeRefusal
from dovetail.core.node_taints import untolerated
from dovetail.core.nodes import NodeState, pods_beside

if TYPE_CHECKING:
    from dovetail.core.world import World


@dataclass(frozen=True, slots=True)
class _Spread:
    """One constraint with the number of matching pods in each domain that counts."""

    key: str
    max_skew: int
    fewest: int
    itself: int
    counts: Mapping[str, int]

    def refuse(self, state: NodeState) -> NodeRefusal | None:
        """A node without the label has no domain and is never used."""
        domain = state.labels.get(self.key)
        if domain is None:
            return NodeRefusal(NodeCause.SPREAD, f"no label {self.key}")
        skew = self.counts.get(domain, 0) + self.itself - self.fewest
        if skew > self.max_skew:
            return NodeRefusal(NodeCause.SPREAD, f"skew over {self.key} would exceed {self.max_skew}")
        return None


@dataclass(frozen=True, slots=True)
class SpreadFilter:
    """All constraints of the pod."""

    spreads: tuple[_Spread, ...]

    def refuse(self, state: NodeState) -> NodeRefusal | None:
        """The first constraint that the pod would break there."""
        return next((no for spread in self.spreads if (no := spread.refuse(state)) is not None), None)


def spread_filter(world: "World", footprint: Footprint, budget: Budget) -> SpreadFilter | None:
    """None for a pod without a constraint that must hold. Raises `BudgetSpent`."""
    constraints = [
        constraint
        for constraint in footprint.pod.spec.topology_spread_constraints
        if constraint.when_unsatisfiable == "DoNotSchedule"
    ]
    if not constraints:
        return None
    keys = [constraint.topology_key for constraint in constraints]
    # A node that lacks any of the labels counts for none of the constraints.
    states = [state for state in world.nodes if all(key in state.labels for key in keys)]
    return SpreadFilter(tuple(_spread(states, footprint, constraint, budget) for constraint in constraints))


def _spread(
    states: Iterable[NodeState], footprint: Footprint, constraint: TopologySpreadConstraint, budget: Budget
) -> _Spread:
    pod = footprint.pod
    selector = with_label_keys(constraint.label_selector, pod.metadata.labels, constraint.match_label_keys)
    counts: dict[str, int] = {}
    weight = weight_of(footprint)
    for state in states:
        budget.look(weight + len(state.pods))
        if _is_counted(state, footprint, constraint):
            domain = state.labels[constraint.topology_key]
            counts[domain] = counts.get(domain, 0) + _matching(state, footprint, selector)
    enough = len(counts) >= (constraint.min_domains or 1)
    return _Spread(
        key=constraint.topology_key,
        max_skew=constraint.max_skew,
        fewest=min(counts.values(), default=0) if enough else 0,
        itself=int(labels_match(selector, pod.metadata.labels)),
        counts=counts,
    )


def _is_counted(state: NodeState, footprint: Footprint, constraint: TopologySpreadConstraint) -> bool:
    """By default, nodes outside the pod's node affinity do not count, and tainted ones do."""
    if constraint.node_affinity_policy != "Ignore" and refuse_labels(state, footprint.shape):
        return False
    if constraint.node_taints_policy != "Honor" or state.node is None:
        return True
    return untolerated(state.node.spec.taints, footprint.shape.tolerations) is None


def _matching(state: NodeState, footprint: Footprint, selector: LabelSelector | None) -> int:
    """Pods of the same namespace that match and are not on their way out; an empty selector counts none."""
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return 0
    return sum(_counts(other.pod, footprint.pod, selector) for other in pods_beside(state, footprint))


def _counts(other: Pod, pod: Pod, selector: LabelSelector) -> bool:
    return (
        other.metadata.deletion_timestamp is None
        and other.metadata.namespace == pod.metadata.namespace
        and labels_match(selector, other.metadata.labels)
    )
