"""On which node a pod counts: the one that it has, that its claims lie on, or that it is nominated for."""

from collections.abc import Iterable

from dovetail.api.claims import ResourceClaim
from dovetail.api.pods import Pod
from dovetail.core.labels import only_node
from dovetail.core.nodes import Hold, Home
from dovetail.core.references import is_owned_by


def home_of(pod: Pod, claims: Iterable[ResourceClaim]) -> Home | None:
    """Where a pod with these claims counts; the claims are not gone through where its own words tell."""
    if pod.is_done:
        return None
    if pod.spec.node_name:
        return Home(pod.spec.node_name, Hold.BOUND)
    nominated = pod.status.nominated_node_name
    return _home_by_claims(pod, claims) or (Home(nominated, Hold.NOMINATED) if nominated else None)


def stays(pod: Pod, home: Home | None, before: ResourceClaim | None, after: ResourceClaim | None) -> bool:
    """Whether a pod counts where it did, since one claim more of its own got devices there.

    Thousands may follow each other: that is told without going through the pod's other claims.
    """
    if after is None or not is_owned_by(after, pod) or (before is not None and before.status.allocation):
        return False
    node = _node_of(after)
    return node is not None and home == Home(node, Hold.DEVICES)


def _home_by_claims(pod: Pod, claims: Iterable[ResourceClaim]) -> Home | None:
    """Where the pod's devices are; claims that are its own come before those that it may join."""
    expected = None
    for claim in claims:
        node = _node_of(claim)
        if node is None:
            continue
        if is_owned_by(claim, pod) or any(c.uid == pod.metadata.uid for c in claim.status.reserved_for):
            return Home(node, Hold.DEVICES)
        expected = expected or Home(node, Hold.NOMINATED)
    return expected


def _node_of(claim: ResourceClaim) -> str | None:
    allocation = claim.status.allocation
    return only_node(allocation.node_selector) if allocation is not None else None
