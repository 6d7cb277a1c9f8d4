"""The scheduler stand-in: binds ungated pods to a node that their claims and their node selector allow.

Differs from kube-scheduler: it allocates nothing (a claim without devices leaves the pod Unschedulable),
never takes an allocation back (S42), and knows neither resources, taints, affinity nor preemption.
"""

from typing import TYPE_CHECKING

from dovetail.embedded.bodies import (
    Body,
    is_terminating,
    items,
    key_of,
    name_of,
    part,
    text,
    uid_of,
    version_of,
)
from dovetail.embedded.claim_controller import add_consumer
from dovetail.embedded.claim_references import claim_of, is_allocated, is_reserved
from dovetail.embedded.defaults import scheduled_condition
from dovetail.embedded.writing import STRATEGIC_MERGE

if TYPE_CHECKING:
    from dovetail.embedded.cluster import EmbeddedCluster

SCHEDULER_NAME = "default-scheduler"


class PodScheduler:
    """Remembers what it refused, so that a pod is looked at again only when something about it changed."""

    def __init__(self) -> None:
        self._refused: dict[str, tuple[int, ...]] = {}

    def __call__(self, cluster: "EmbeddedCluster") -> None:
        """One pass over all pods that wait for a node."""
        nodes = cluster.store.objects(cluster.kinds.named("Node"))
        newest = max(map(version_of, nodes), default=0)
        for pod in cluster.store.objects(cluster.kinds.named("Pod")):
            if not _waits(pod):
                continue
            claims = [claim_of(cluster, pod, entry) for entry in items(pod, "spec", "resourceClaims")]
            seen = (newest, len(nodes), *(version_of(claim or {}) for claim in claims))
            if self._refused.get(uid_of(pod)) != seen and not _schedule(cluster, pod, claims, nodes):
                self._refused[uid_of(pod)] = seen


def _waits(pod: Body) -> bool:
    spec = part(pod, "spec")
    if spec.get("nodeName") or spec.get("schedulingGates") or is_terminating(pod):
        return False
    return bool(spec.get("schedulerName") == SCHEDULER_NAME)


def _schedule(cluster: "EmbeddedCluster", pod: Body, claims: list[Body | None], nodes: list[Body]) -> bool:
    """Bind the pod, or say on it why not."""
    ready = [
        claim for claim in claims if claim is not None and is_allocated(claim) and not is_terminating(claim)
    ]
    usable = [node for node in nodes if _is_usable(node, pod)]
    node = next((node for node in usable if all(_serves(claim, node) for claim in ready)), None)
    if len(ready) < len(claims):
        _refuse(cluster, pod, "cannot allocate all claims")
    elif node is None:
        _refuse(cluster, pod, "resourceclaim not available on the node" if usable else "no nodes available")
    else:
        for claim in ready:
            if not is_reserved(claim, pod):
                add_consumer(cluster, claim, pod)
        binding = {"target": {"kind": "Node", "name": name_of(node)}}
        cluster.writer.bind(cluster.kinds.named("Pod"), key_of(pod), binding)
        return True
    return False


def _refuse(cluster: "EmbeddedCluster", pod: Body, message: str) -> None:
    told = [(entry.get("type"), entry.get("message")) for entry in items(pod, "status", "conditions")]
    if ("PodScheduled", message) in told:
        return
    status = {"conditions": [scheduled_condition("False", "Unschedulable", message)]}
    kind = cluster.kinds.named("Pod")
    cluster.writer.patch(kind, key_of(pod), {"status": status}, STRATEGIC_MERGE, subresource="status")


def _is_usable(node: Body, pod: Body) -> bool:
    labels = part(node, "metadata", "labels")
    selector = part(pod, "spec", "nodeSelector")
    return not node.get("spec", {}).get("unschedulable") and selector.items() <= labels.items()


def _serves(claim: Body, node: Body) -> bool:
    """Whether the node is one of those where the claim's devices are."""
    selector = part(claim, "status", "allocation").get("nodeSelector")
    return selector is None or any(_holds(term, node) for term in items(selector, "nodeSelectorTerms"))


def _holds(term: Body, node: Body) -> bool:
    fields = {"metadata.name": name_of(node)}
    labels = part(node, "metadata", "labels")
    checks = [(entry, fields) for entry in items(term, "matchFields")]
    checks += [(entry, labels) for entry in items(term, "matchExpressions")]
    return bool(checks) and all(_meets(entry, values) for entry, values in checks)


def _meets(requirement: Body, values: Body) -> bool:
    value = values.get(text(requirement, "key"))
    match requirement.get("operator"):
        case "In":
            return value in items(requirement, "values")
        case "NotIn":
            return value not in items(requirement, "values")
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
