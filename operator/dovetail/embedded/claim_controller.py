"""The claim controller stand-in: makes claims from templates, reserves for bound pods, releases after them.

It plays kube-controller-manager's `resourceclaim` controller (rules G1 to G28, L1 to L22).
Differs: claims of PodGroups and of extended resources are left alone, and a failure is told once per pod.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dovetail.embedded.answers import StatusError
from dovetail.embedded.bodies import (
    Body,
    controller_of,
    copied,
    is_terminating,
    items,
    key_of,
    name_of,
    namespace_of,
    now,
    part,
    text,
    uid_of,
)
from dovetail.embedded.claim_references import claim_of, consumer_for, is_allocated, is_done, is_reserved
from dovetail.embedded.writing import APPLY_PATCH

if TYPE_CHECKING:
    from dovetail.embedded.cluster import EmbeddedCluster

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
FINALIZER = "resource.kubernetes.io/delete-protection"
MANAGER = "ResourceClaimController"
PREFIX_LIMIT = 57


class ClaimController:
    """Remembers only which failures it has told."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def __call__(self, cluster: "EmbeddedCluster") -> None:
        """One pass over all pods, then over all claims."""
        pods = cluster.store.objects(cluster.kinds.named("Pod"))
        for pod in pods:
            if not is_terminating(pod):
                self._generate(cluster, pod)
                _reserve(cluster, pod)
        by_key = {key_of(pod): pod for pod in cluster.store.objects(cluster.kinds.named("Pod"))}
        for claim in cluster.store.objects(cluster.kinds.named("ResourceClaim")):
            _release(cluster, claim, by_key)

    def _generate(self, cluster: "EmbeddedCluster", pod: Body) -> None:
        made: dict[str, str] = {}
        for entry in items(pod, "spec", "resourceClaims"):
            try:
                if name := _claim_made_for(cluster, pod, entry):
                    made[entry["name"]] = name
            except StatusError as error:
                self._tell(cluster, pod, f"PodResourceClaim {entry['name']}: {error}")
                break
        if made:
            _record(cluster, pod, made)

    def _tell(self, cluster: "EmbeddedCluster", pod: Body, message: str) -> None:
        if (uid_of(pod), message) in self._told:
            return
        self._told.add((uid_of(pod), message))
        cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"generateName": f"{name_of(pod)}.", "namespace": namespace_of(pod)},
                "involvedObject": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": name_of(pod),
                    "namespace": namespace_of(pod),
                    "uid": uid_of(pod),
                },
                "type": "Warning",
                "reason": "FailedResourceClaimCreation",
                "message": message,
                "source": {"component": "resource_claim"},
                "firstTimestamp": now(),
                "lastTimestamp": now(),
                "count": 1,
            }
        )


def _claim_made_for(cluster: "EmbeddedCluster", pod: Body, entry: Body) -> str:
    """The name of a claim adopted or created for an entry; empty where nothing is to be done (G5)."""
    if not entry.get("resourceClaimTemplateName"):
        return ""
    statuses = items(pod, "status", "resourceClaimStatuses")
    recorded = next((status for status in statuses if status.get("name") == entry["name"]), None)
    if recorded is not None:
        known = claim_of(cluster, pod, entry)
        not_needed = not recorded.get("resourceClaimName")
        if not_needed or (known is not None and controller_of(known).get("uid") == uid_of(pod)):
            return ""
    adopted = _orphan_of(cluster, pod, entry["name"])
    return adopted or name_of(_created(cluster, pod, entry))


def _orphan_of(cluster: "EmbeddedCluster", pod: Body, entry_name: str) -> str:
    """The name of a claim that somebody else made for this entry (G20)."""
    for claim in cluster.store.objects(cluster.kinds.named("ResourceClaim"), namespace_of(pod)):
        owned = controller_of(claim).get("uid") == uid_of(pod)
        if owned and part(claim, "metadata", "annotations").get(POD_CLAIM_NAME) == entry_name:
            return name_of(claim)
    return ""


def _created(cluster: "EmbeddedCluster", pod: Body, entry: Body) -> Body:
    templates = cluster.kinds.named("ResourceClaimTemplate")
    name = entry["resourceClaimTemplateName"]
    template = cluster.store.find(templates, (namespace_of(pod), name))
    if template is None:
        raise StatusError(
            404, f'resource claim template "{name}": resourceclaimtemplate.resource.k8s.io "{name}" not found'
        )
    spec = copied(part(template, "spec"))
    annotations = part(spec, "metadata", "annotations") | {POD_CLAIM_NAME: entry["name"]}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod), "controller": True}
    return cluster.writer.create(
        cluster.kinds.named("ResourceClaim"),
        {
            "metadata": {
                "generateName": claim_prefix(name_of(pod), entry["name"]),
                "namespace": namespace_of(pod),
                "annotations": annotations,
                "labels": part(spec, "metadata", "labels"),
                "ownerReferences": [owner],
            },
            "spec": part(spec, "spec"),
        },
    )


def claim_prefix(pod: str, entry: str) -> str:
    """The generateName of a claim (G10)."""
    prefix = f"{pod}-{entry}-"
    if len(prefix) <= PREFIX_LIMIT:
        return prefix
    whole = len(prefix)
    return f"{pod[: len(pod) * PREFIX_LIMIT // whole]}-{entry[: len(entry) * PREFIX_LIMIT // whole]}"


def _record(cluster: "EmbeddedCluster", pod: Body, made: Mapping[str, str]) -> None:
    """Server-side apply of all known names, forced (G25)."""
    known = {
        status["name"]: status["resourceClaimName"]
        for status in items(pod, "status", "resourceClaimStatuses")
        if status.get("resourceClaimName")
    }
    statuses = [
        {"name": entry, "resourceClaimName": claim} for entry, claim in sorted((known | dict(made)).items())
    ]
    config = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name_of(pod), "namespace": namespace_of(pod), "uid": uid_of(pod)},
        "status": {"resourceClaimStatuses": statuses},
    }
    kind = cluster.kinds.named("Pod")
    cluster.writer.patch(
        kind, key_of(pod), config, APPLY_PATCH, subresource="status", manager=MANAGER, force=True
    )


def _reserve(cluster: "EmbeddedCluster", pod: Body) -> None:
    """A pod that got its node by another way than kube-scheduler is reserved for, once allocated (G28)."""
    if not text(pod, "spec", "nodeName") or is_done(pod):
        return
    for entry in items(pod, "spec", "resourceClaims"):
        claim = claim_of(cluster, pod, entry)
        if claim is not None and is_allocated(claim) and not is_reserved(claim, pod):
            add_consumer(cluster, claim, pod)


def add_consumer(cluster: "EmbeddedCluster", claim: Body, pod: Body) -> None:
    """Append the pod to the claim's consumers, as one PUT on the status."""
    consumers = [*items(claim, "status", "reservedFor"), consumer_for(pod)]
    _put_status(cluster, claim, part(claim, "status") | {"reservedFor": consumers})


def _release(cluster: "EmbeddedCluster", claim: Body, pods: Mapping[tuple[str, str], Body]) -> None:
    """Consumers that are gone or done leave; after the last one the devices are free (L3 to L20)."""
    consumers = items(claim, "status", "reservedFor")
    left = [consumer for consumer in consumers if _still_consumes(claim, consumer, pods)]
    protected = FINALIZER in items(claim, "metadata", "finalizers")
    idle = not left and (bool(consumers) or is_terminating(claim))
    if len(left) < len(consumers) or (idle and protected and is_allocated(claim)):
        status = {name: value for name, value in part(claim, "status").items() if name != "reservedFor"}
        if left:
            status["reservedFor"] = left
        elif protected:
            status.pop("allocation", None)
        claim = _put_status(cluster, claim, status)
    if idle and protected and not is_allocated(claim):
        claim = _without_finalizer(cluster, claim)
    _delete_when_done(cluster, claim, left, pods)


def _still_consumes(claim: Body, consumer: Body, pods: Mapping[tuple[str, str], Body]) -> bool:
    if consumer.get("apiGroup") or consumer.get("resource") != "pods":
        return True
    pod = pods.get((namespace_of(claim), consumer.get("name", "")))
    return pod is not None and uid_of(pod) == consumer.get("uid") and not is_done(pod)


def _delete_when_done(
    cluster: "EmbeddedCluster", claim: Body, consumers: list[Body], pods: Mapping[tuple[str, str], Body]
) -> None:
    """A claim whose pod is done, or has a successor of the same name, is deleted (L20)."""
    kind = cluster.kinds.named("ResourceClaim")
    owner = controller_of(claim)
    if consumers or owner.get("kind") != "Pod" or cluster.store.find(kind, key_of(claim)) is None:
        return
    pod = pods.get((namespace_of(claim), owner.get("name", "")))
    if pod is not None and (uid_of(pod) != owner.get("uid") or is_done(pod)) and not is_terminating(claim):
        cluster.writer.delete(kind, key_of(claim))


def _put_status(cluster: "EmbeddedCluster", claim: Body, status: Body) -> Body:
    kind = cluster.kinds.named("ResourceClaim")
    return cluster.writer.replace(kind, key_of(claim), dict(claim) | {"status": status}, "status")


def _without_finalizer(cluster: "EmbeddedCluster", claim: Body) -> Body:
    kind = cluster.kinds.named("ResourceClaim")
    kept = [entry for entry in items(claim, "metadata", "finalizers") if entry != FINALIZER]
    slim = dict(claim) | {"metadata": claim["metadata"] | {"finalizers": kept}}
    return cluster.writer.replace(kind, key_of(claim), slim)
