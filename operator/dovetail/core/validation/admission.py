"""One object on its way into the API server: read, filled in, stripped of gates that are off, judged."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.core.features import Features
from dovetail.core.validation import fields
from dovetail.core.validation.defaults import fill
from dovetail.core.validation.expressions import Rules
from dovetail.core.validation.faults import Fault, Faults
from dovetail.core.validation.gates import drop
from dovetail.core.validation.kinds import KINDS

ADMIN_LABEL = "resource.kubernetes.io/admin-access"
"""The label of namespaces whose claims may ask for admin access."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What becomes of an object.

    `body` is the object as the API server would store it: filled in, without unknown fields.
    `faults` are why it would be refused, `unknown` the fields that Kubernetes does not know;
    with `unreadable` a value has a type from which nothing can be made.
    `dropped` are the fields that are left out of it, by the gate that is off.
    """

    body: Mapping[str, Any]
    faults: tuple[Fault, ...] = ()
    unknown: tuple[Fault, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    unreadable: bool = False


def admit(
    api_version: str,
    kind: str,
    body: Mapping[str, Any],
    features: Features,
    *,
    admin: bool = True,
    keep_lists: bool = False,
    stored: bool = False,
) -> Admission:
    """What the API server makes of an object; a kind that is not known is taken as it is.

    `admin`: the namespace of the object allows admin access.
    `stored`: an API server has the object already; it was judged then, and keeps the fields of gates that
    are off. `keep_lists`: a slice keeps its attributes with lists.
    """
    if not fields.knows(api_version, kind):
        return Admission(body)
    reading = fields.Reading(body, api_version, kind)
    unknown = tuple(reading.unknown)
    if reading.wrong:
        return Admission(body, tuple(reading.wrong), unknown, unreadable=True)
    fill(kind, reading.body)
    if stored:
        return Admission(reading.body, unknown=unknown)
    dropped = tuple(dict.fromkeys(drop(kind, reading.body, features, keep_lists=keep_lists)))
    judge = KINDS.get(kind)
    faults = tuple(judge(reading.body, Rules(features))) if judge else ()
    if not admin:
        faults = (*_admin_access(kind, reading.body), *faults)
    return Admission(reading.body, faults, unknown, dropped)


def is_stored(body: Mapping[str, Any]) -> bool:
    """Whether an object comes from a cluster: it has what only an API server or a controller gives."""
    metadata, status = (_mapping(body.get(field)) for field in ("metadata", "status"))
    owners = metadata.get("ownerReferences")
    return bool(
        all(metadata.get(field) for field in ("uid", "resourceVersion", "creationTimestamp"))
        or any(_mapping(owner).get("controller") for owner in (owners if isinstance(owners, list) else ()))
        or (body.get("kind") == "ResourceClaim" and status.get("allocation"))
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _admin_access(kind: str, body: Mapping[str, Any]) -> Faults:
    """The first request for admin access; the path is the same for claims and templates."""
    spec = body.get("spec", {})
    if kind == "ResourceClaimTemplate":
        spec = spec.get("spec", {})
    elif kind != "ResourceClaim":
        return
    for index, request in enumerate(spec.get("devices", {}).get("requests", [])):
        if request.get("exactly", {}).get("adminAccess"):
            sentence = f'the namespace lacks the label {ADMIN_LABEL}: "true"'
            yield Fault(f"spec.devices.requests[{index}].adminAccess", sentence)
            return
