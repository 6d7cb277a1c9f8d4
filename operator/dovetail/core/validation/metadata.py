"""What the API server refuses of an object's metadata."""

from collections.abc import Mapping
from typing import Any, Final

from dovetail.core.validation import names
from dovetail.core.validation.faults import Fault, Faults, missing, size

MOST_ANNOTATION_BYTES: Final = 256 * 1024
_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_STANDARD: Final = (_ORPHAN, _FOREGROUND, "kubernetes")
_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid")


def metadata(found: Mapping[str, Any], *, generated: bool = True, counted: bool = False) -> Faults:
    """`generated`: what a name is generated from is judged beside the name.

    `counted`: the API server leaves `generation` of a new object to whoever creates it.
    """
    name, prefix = found.get("name", ""), found.get("generateName", "")
    if prefix and generated and (reason := names.subdomain(_without_dash(prefix))):
        yield Fault("metadata.generateName", reason)
    if not name:
        yield missing("metadata.name")
    elif reason := names.subdomain(name):
        yield Fault("metadata.name", reason)
    if (namespace := found.get("namespace")) and (reason := names.label(namespace)):
        yield Fault("metadata.namespace", reason)
    if counted and found.get("generation", 0) < 0:
        yield Fault("metadata.generation", "it is negative")
    yield from labels(found, "metadata")
    yield from _owners(found.get("ownerReferences", ()))
    yield from _finalizers(found.get("finalizers", ()))


def template_metadata(found: Mapping[str, Any], at: str) -> Faults:
    """The metadata that objects made from a template get: labels and annotations."""
    yield from labels(found, at)
    for field, value in found.items():
        if field not in ("labels", "annotations") and value != "" and (field, value) != ("generation", 0):
            yield Fault(f"{at}.{field}", "it cannot be set in a template")


def labels(found: Mapping[str, Any], at: str) -> Faults:
    """Labels and annotations."""
    for key, value in found.get("labels", {}).items():
        if reason := names.key(key) or names.label_value(value):
            yield Fault(f"{at}.labels", reason)
    annotations = found.get("annotations", {})
    for key in annotations:
        if reason := names.key(key.lower()):
            yield Fault(f"{at}.annotations", reason)
    total = sum(size(key) + size(value) for key, value in annotations.items())
    if total > MOST_ANNOTATION_BYTES:
        yield Fault(f"{at}.annotations", f"they are longer than {MOST_ANNOTATION_BYTES} bytes")


def _owners(owners: list[Mapping[str, Any]]) -> Faults:
    at = "metadata.ownerReferences"
    for index, owner in enumerate(_distinct(owners)):
        for field in _OWNER_FIELDS:
            if not owner.get(field):
                yield missing(f"{at}[{index}].{field}")
        if owner.get("apiVersion", "").count("/") > 1 or owner.get("apiVersion", "").endswith("/"):
            yield Fault(f"{at}[{index}].apiVersion", "GROUP/VERSION or VERSION is expected")
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            yield Fault(f"{at}[{index}]", "an Event cannot be an owner")
    if sum(owner.get("controller", False) for owner in _distinct(owners)) > 1:
        yield Fault(at, "only one owner can be the controller")


def _distinct(owners: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The API server leaves out owners that are there twice."""
    given = [{field: value for field, value in owner.items() if value != ""} for owner in owners]
    return [owner for index, owner in enumerate(owners) if given[index] not in given[:index]]


def _finalizers(finalizers: list[str]) -> Faults:
    for index, finalizer in enumerate(finalizers):
        if reason := names.key(finalizer):
            yield Fault("metadata.finalizers", reason)
        if "/" not in finalizer and finalizer not in _STANDARD:
            yield Fault(f"metadata.finalizers[{index}]", f"{finalizer!r} has no domain")
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        yield Fault("metadata.finalizers", f"{_ORPHAN} and {_FOREGROUND} exclude each other")


def _without_dash(prefix: str) -> str:
    """What is generated goes on after a dash at the end."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix
