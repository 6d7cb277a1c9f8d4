"""Whether a pod tolerates a node's taints (kube-scheduler's TaintToleration and NodeUnschedulable)."""

from collections.abc import Iterable

from dovetail.api.nodes import Node
from dovetail.api.selection import Taint, Toleration
from dovetail.core.node_refusals import NodeCause, NodeRefusal

CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
BLOCKING = ("NoSchedule", "NoExecute")


def refuse_taints(node: Node, tolerations: Iterable[Toleration]) -> NodeRefusal | None:
    """The first taint that keeps a pod with these tolerations away, a cordon included; None without one."""
    if node.spec.unschedulable and not _is_tolerated(CORDON, tolerations):
        return NodeRefusal(NodeCause.UNSCHEDULABLE)
    taint = untolerated(node.spec.taints, tolerations)
    if taint is None:
        return None
    if taint.key == CORDON.key:
        return NodeRefusal(NodeCause.UNSCHEDULABLE)
    value = f"={taint.value}" if taint.value else ""
    return NodeRefusal(NodeCause.TAINT, f"{taint.key}{value}:{taint.effect}")


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """The first taint that blocks scheduling; preferences and unknown effects never do."""
    for taint in taints:
        if taint.effect in BLOCKING and not _is_tolerated(taint, tolerations):
            return taint
    return None


def _is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    """An empty key (with Exists), effect or operator is the wildcard, or Equal, that core/v1 says it is."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value
