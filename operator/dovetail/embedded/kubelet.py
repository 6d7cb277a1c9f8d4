"""The kubelet stand-in: a bound pod whose claims are ready runs, and a pod that is to end is gone at once."""

from typing import TYPE_CHECKING

from dovetail.embedded.bodies import Body, is_terminating, items, key_of, now, text
from dovetail.embedded.claim_references import claim_of, is_reserved
from dovetail.embedded.writing import STRATEGIC_MERGE

if TYPE_CHECKING:
    from dovetail.embedded.cluster import EmbeddedCluster


def run_kubelet(cluster: "EmbeddedCluster") -> None:
    """One pass over all pods that have a node. Differs: no container is started, no driver is asked (S70)."""
    pods = cluster.kinds.named("Pod")
    for pod in cluster.store.objects(pods):
        if not text(pod, "spec", "nodeName"):
            continue
        if is_terminating(pod):
            if pod["metadata"].get("deletionGracePeriodSeconds"):
                cluster.writer.delete(pods, key_of(pod), {"gracePeriodSeconds": 0})
        elif text(pod, "status", "phase") == "Pending" and _may_start(cluster, pod):
            running = {"phase": "Running", "startTime": now(), "conditions": [_ready()]}
            cluster.writer.patch(
                pods, key_of(pod), {"status": running}, STRATEGIC_MERGE, subresource="status"
            )


def _may_start(cluster: "EmbeddedCluster", pod: Body) -> bool:
    claims = [claim_of(cluster, pod, entry) for entry in items(pod, "spec", "resourceClaims")]
    return all(claim is not None and is_reserved(claim, pod) for claim in claims)


def _ready() -> Body:
    return {"type": "Ready", "status": "True", "lastTransitionTime": now()}
