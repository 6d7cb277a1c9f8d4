"""What can be read from, and is written into, the raw JSON of a ResourceClaim."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dovetail.api.claims import DELETE_PROTECTION
from dovetail.api.mappings import ALIGNMENT_ANNOTATION
from dovetail.core.outcome import Alignment

Json = dict[str, Any]

CONSUMER_LIMIT = 256
"""How many consumers `reservedFor` can hold."""


def controller_of(claim: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The entry of `ownerReferences` that controls a claim; None where nothing does, or there is no claim."""
    owners = (claim["metadata"].get("ownerReferences") or ()) if claim else ()
    return next((owner for owner in owners if owner.get("controller")), None)


def controlling_pod(claim: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The same where it is a pod: the claim was made for that one."""
    owner = controller_of(claim)
    return owner if owner is not None and owner.get("kind") == "Pod" else None


def is_allocated(claim: Mapping[str, Any]) -> bool:
    """Whether the claim has devices."""
    return bool((claim.get("status") or {}).get("allocation"))


def is_written_by_us(claim: Mapping[str, Any]) -> bool:
    """Whether Dovetail wrote the claim's last allocation: it leaves the alignment with the finalizer."""
    return ALIGNMENT_ANNOTATION in (claim["metadata"].get("annotations") or {})


def consumers(claim: Mapping[str, Any]) -> frozenset[str]:
    """The uids in `reservedFor`."""
    return consumers_in(claim.get("status") or {})


def consumers_in(status: Mapping[str, Any]) -> frozenset[str]:
    """The uids in `reservedFor` of a status."""
    return frozenset(entry["uid"] for entry in status.get("reservedFor") or ())


def is_protected(claim: Mapping[str, Any]) -> bool:
    """Whether the claim carries the finalizer of allocated claims."""
    return DELETE_PROTECTION in (claim["metadata"].get("finalizers") or ())


def consumer(pod: Mapping[str, Any]) -> Json:
    """The entry of `reservedFor` for a pod."""
    metadata = pod["metadata"]
    return {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}


def reserves_itself(pod: Mapping[str, Any]) -> bool:
    """Whether a reservation for the pod is left to kube-scheduler: a member of a PodGroup, without a node.

    A group cycle takes a reservation away that it finds, and does not write it again; where it finds none,
    it writes one before it binds (T37-11, T37-12). So an empty `reservedFor` says nothing about such a pod.
    """
    return bool(pod["spec"].get("schedulingGroup")) and not pod["spec"].get("nodeName")


def status_with(
    claim: Mapping[str, Any], pod: Mapping[str, Any], *, allocation: Mapping[str, Any] | None, now: str
) -> Json:
    """The claim's status with the pod as consumer, and, where given, with an allocation.

    A pod that `reserves_itself` becomes no consumer.
    Everything else in the status stays as it was read (A7).
    """
    status = dict(claim.get("status") or {})
    if allocation is not None:
        status["allocation"] = {**allocation, "allocationTimestamp": now}
    reserved = list(status.get("reservedFor") or ())
    if not reserves_itself(pod) and pod["metadata"]["uid"] not in {entry["uid"] for entry in reserved}:
        reserved.append(consumer(pod))
    return status | {"reservedFor": reserved} if reserved else status


def joining(claim: Mapping[str, Any], pod: Mapping[str, Any]) -> tuple[Json, ...]:
    """A JSON patch of the claim's status that adds the pod as consumer, whatever else is written meanwhile.

    It applies where the claim is the same one and has the same devices on the same nodes, and has other
    consumers if it had. Empty where there is nothing to add, or no allocation to hold on to.
    """
    status = claim.get("status") or {}
    allocation, known = status.get("allocation"), status.get("reservedFor") or ()
    if not allocation or reserves_itself(pod) or pod["metadata"]["uid"] in consumers(claim):
        return ()
    # Opaque parameters of the allocation are left out: the API server may spell them in another way.
    # A test for null holds where there is no such field.
    held = {
        "/metadata/uid": claim["metadata"]["uid"],
        "/status/allocation/devices/results": (allocation.get("devices") or {}).get("results"),
        "/status/allocation/nodeSelector": allocation.get("nodeSelector"),
    }
    added: Json = {"path": "/status/reservedFor/-", "value": consumer(pod)}
    if not known:
        held["/status/reservedFor"] = None
        added = {"path": "/status/reservedFor", "value": [consumer(pod)]}
    tests = ({"op": "test", "path": path, "value": value} for path, value in held.items())
    return (*tests, {"op": "add", **added})


def status_without(claim: Mapping[str, Any], uids: frozenset[str], *, keep_allocation: bool) -> Json:
    """The claim's status without some consumers, and without the allocation unless it is kept.

    `status.devices` stays: the API server drops what belonged to the allocation (L15), for which no
    right on drivers is needed (A10).
    """
    status = dict(claim.get("status") or {})
    rest = [entry for entry in status.pop("reservedFor", None) or () if entry["uid"] not in uids]
    if rest:
        status["reservedFor"] = rest
    if not keep_allocation:
        status.pop("allocation", None)
    return status


def protected(claim: Mapping[str, Any], alignment: Sequence[Alignment]) -> Json | None:
    """The claim with finalizer and alignment, to be put in its place; None where both are there already.

    A patch would not do: the API server spells opaque parameters anew while it applies one,
    and then refuses them as changed where a client had written them with blanks.
    """
    metadata = claim["metadata"]
    value = json.dumps([entry.as_json() for entry in alignment], separators=(",", ":"))
    annotations = metadata.get("annotations") or {}
    if annotations.get(ALIGNMENT_ANNOTATION) == value and is_protected(claim):
        return None
    finalizers = list(metadata.get("finalizers") or ())
    if DELETE_PROTECTION not in finalizers:
        finalizers.append(DELETE_PROTECTION)
    changed = {"finalizers": finalizers, "annotations": {**annotations, ALIGNMENT_ANNOTATION: value}}
    return {**claim, "metadata": {**metadata, **changed}}


def unprotected(claim: Mapping[str, Any]) -> Json:
    """The claim without the finalizer."""
    metadata = claim["metadata"]
    rest = [name for name in metadata["finalizers"] if name != DELETE_PROTECTION]
    return {**claim, "metadata": {**metadata, "finalizers": rest}}


def devices_of(claim: Mapping[str, Any]) -> frozenset[tuple[str, str, str]]:
    """The devices that the claim holds for itself alone: no shares, no admin access."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return frozenset(
        (result["driver"], result["pool"], result["device"])
        for result in results
        if not result.get("adminAccess") and not result.get("shareID")
    )


def node_of(claim: Mapping[str, Any]) -> str | None:
    """The one node that the claim's allocation is confined to, in the form of S82."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    terms: Sequence[Mapping[str, Any]] = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    if len(terms) != 1:
        return None
    (term,) = terms
    for field in term.get("matchFields") or ():
        if field.get("key") == "metadata.name" and len(field.get("values") or ()) == 1:
            return str(field["values"][0])
    return None
