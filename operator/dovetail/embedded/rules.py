"""What the API server refuses, by kind and by what is written."""

import re
from collections.abc import Callable, Iterator, Mapping

from dovetail.embedded import rules_claims, rules_pods
from dovetail.embedded.bodies import Body, is_terminating, items, metadata_of, part
from dovetail.embedded.kinds import Kind

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})

Created = Callable[[Body], Iterator[str]]
Changed = Callable[[Body, Body], Iterator[str]]

_CREATED: Mapping[str, Created] = {
    "Pod": rules_pods.pod_created,
    "ResourceClaim": rules_claims.claim_created,
    "ResourceClaimTemplate": rules_claims.template_created,
    "ResourceSlice": rules_claims.slice_created,
}
_CHANGED: Mapping[str, Changed] = {
    "Pod": rules_pods.pod_changed,
    "ResourceClaim": rules_claims.spec_changed,
    "ResourceClaimTemplate": rules_claims.spec_changed,
    "ResourceSlice": rules_claims.slice_changed,
}
_STATUS_CHANGED: Mapping[str, Changed] = {
    "Pod": rules_pods.pod_status_changed,
    "ResourceClaim": rules_claims.claim_status_changed,
}


def created(kind: Kind, body: Body) -> list[str]:
    """Why this object may not be created; nothing where it may."""
    causes = list(_metadata_causes(body))
    return causes + list(_CREATED[kind.name](body) if kind.builtin and kind.name in _CREATED else ())


def changed(kind: Kind, old: Body, new: Body) -> list[str]:
    """Why an object may not become another."""
    causes = list(_metadata_causes(new))
    if is_terminating(old):
        added = set(items(new, "metadata", "finalizers")) - set(items(old, "metadata", "finalizers"))
        if added:
            wanted = f"no new finalizers can be added if the object is being deleted, found {sorted(added)}"
            causes.append(f"metadata.finalizers: Forbidden: {wanted}")
    if kind.name == "DerivedAttribute" and _attribute(old) != _attribute(new):
        causes.append("spec.attribute: Invalid value: field is immutable")
    return causes + list(_CHANGED[kind.name](old, new) if kind.builtin and kind.name in _CHANGED else ())


def status_changed(kind: Kind, old: Body, new: Body) -> list[str]:
    """Why a status may not become another."""
    return list(_STATUS_CHANGED[kind.name](old, new) if kind.builtin and kind.name in _STATUS_CHANGED else ())


def _attribute(body: Body) -> object:
    return part(body, "spec").get("attribute")


def _metadata_causes(body: Body) -> Iterator[str]:
    name = metadata_of(body).get("name") or ""
    if not name:
        yield "metadata.name: Required value: name or generateName is required"
    elif len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        wanted = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
        )
        yield f'metadata.name: Invalid value: "{name}": {wanted}'
    for index, finalizer in enumerate(items(body, "metadata", "finalizers")):
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            wanted = "name is neither a standard finalizer name nor is it fully qualified"
            yield f'metadata.finalizers[{index}]: Invalid value: "{finalizer}": {wanted}'
    for index, owner in enumerate(items(body, "metadata", "ownerReferences")):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield f"metadata.ownerReferences[{index}].{field}: Invalid value: must not be empty"
    for field in ("labels", "annotations"):
        for key, value in part(body, "metadata", field).items():
            if not isinstance(value, str):
                yield f"metadata.{field}.{key}: Invalid value: must be a string"
