"""How a pod and its claims refer to each other."""

from typing import TYPE_CHECKING

from dovetail.embedded.bodies import Body, items, name_of, namespace_of, text, uid_of

if TYPE_CHECKING:
    from dovetail.embedded.cluster import EmbeddedCluster


def claim_name_of(pod: Body, entry: Body) -> str:
    """The name of the claim for an entry of `spec.resourceClaims`; empty where it is not generated yet."""
    if entry.get("resourceClaimName"):
        return str(entry["resourceClaimName"])
    statuses = items(pod, "status", "resourceClaimStatuses")
    recorded = (status for status in statuses if status.get("name") == entry["name"])
    return next((str(status.get("resourceClaimName") or "") for status in recorded), "")


def claim_of(cluster: "EmbeddedCluster", pod: Body, entry: Body) -> Body | None:
    """The claim for an entry, if it is there. Shared with the store: not to be changed."""
    kind = cluster.kinds.named("ResourceClaim")
    return cluster.store.find(kind, (namespace_of(pod), claim_name_of(pod, entry)))


def is_reserved(claim: Body, pod: Body) -> bool:
    """Whether the pod is one of the claim's consumers, by UID."""
    return any(consumer.get("uid") == uid_of(pod) for consumer in items(claim, "status", "reservedFor"))


def is_allocated(claim: Body) -> bool:
    """Whether the claim has devices."""
    return bool(claim.get("status", {}).get("allocation"))


def consumer_for(pod: Body) -> Body:
    """The entry of `reservedFor` for a pod."""
    return {"resource": "pods", "name": name_of(pod), "uid": uid_of(pod)}


def is_done(pod: Body) -> bool:
    """Terminal, or deleted before it had a node (L1)."""
    if text(pod, "status", "phase") in ("Succeeded", "Failed"):
        return True
    return bool(pod["metadata"].get("deletionTimestamp")) and not text(pod, "spec", "nodeName")
