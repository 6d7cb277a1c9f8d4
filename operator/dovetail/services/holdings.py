"""What a pod holds: its claims as the picture shows them, and whether it has all that it needs."""

from collections.abc import Mapping
from typing import Any

from dovetail.api.kinds import CLAIM
from dovetail.services import claims
from dovetail.services.gates import is_gated
from dovetail.services.picture import Json, Picture


def claim_names(pod: Mapping[str, Any]) -> dict[str, str | None]:
    """The claim of each entry; None where it does not exist yet; entries that need none are left out (G5)."""
    made = {
        status["name"]: status.get("resourceClaimName")
        for status in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    names: dict[str, str | None] = {}
    for entry in pod["spec"].get("resourceClaims") or ():
        if entry.get("resourceClaimName"):
            names[entry["name"]] = entry["resourceClaimName"]
        elif entry["name"] not in made:
            names[entry["name"]] = None
        elif made[entry["name"]] is not None:
            names[entry["name"]] = made[entry["name"]]
    return names


def claims_of(picture: Picture, pod: Mapping[str, Any]) -> list[Json]:
    """The pod's claims, as far as they exist."""
    namespace = pod["metadata"]["namespace"]
    found = (picture.find(CLAIM, (namespace, name)) for name in claim_names(pod).values() if name)
    return [claim for claim in found if claim is not None]


def lacking_reservation(picture: Picture, pod: Mapping[str, Any]) -> list[Json]:
    """The allocated claims of ours that a pod with a node is not a consumer of."""
    uid = pod["metadata"]["uid"]
    return [
        claim
        for claim in claims_of(picture, pod)
        if is_bound(pod)
        and claims.is_allocated(claim)
        and claims.is_written_by_us(claim)
        and uid not in claims.consumers(claim)
        and len(claims.consumers(claim)) < claims.CONSUMER_LIMIT
    ]


def is_bound(pod: Mapping[str, Any]) -> bool:
    """Whether the pod has a node."""
    return bool(pod["spec"].get("nodeName"))


def is_satisfied(picture: Picture, pod: Mapping[str, Any]) -> bool:
    """Whether nothing is left to do for the pod: no gate of ours, and every claim has devices.

    Once the pod has a node, every claim has to be reserved for it as well.
    """
    names = claim_names(pod)
    mine = claims_of(picture, pod)
    if is_gated(pod) or len(mine) < len(names):
        return False
    uid = pod["metadata"]["uid"]
    return all(
        claims.is_allocated(claim) and (not is_bound(pod) or uid in claims.consumers(claim)) for claim in mine
    )


def is_joining(picture: Picture, pod: Mapping[str, Any]) -> bool:
    """Whether kube-scheduler has yet to add the pod, not gated and without a node, to a claim of ours."""
    uid = pod["metadata"]["uid"]
    return not (is_gated(pod) or is_bound(pod)) and any(
        claims.is_allocated(claim) and claims.is_written_by_us(claim) and uid not in claims.consumers(claim)
        for claim in claims_of(picture, pod)
    )


def holds_a_part(picture: Picture, pod: Mapping[str, Any]) -> bool:
    """Whether some claims were allocated for this pod alone while others lack devices (R-B9)."""
    mine = claims_of(picture, pod)
    return any(not claims.is_allocated(claim) for claim in mine) and any(
        claims.is_allocated(claim)
        and claims.is_written_by_us(claim)
        and claims.consumers(claim) <= {pod["metadata"]["uid"]}
        for claim in mine
    )
