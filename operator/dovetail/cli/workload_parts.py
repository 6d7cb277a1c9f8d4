"""What controllers of workloads make: names, pods and claims for volumes; and reading what they are told."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

Body = Mapping[str, Any]

LONGEST_BASE = 58
"""The API server cuts what it appends five characters to."""

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names: no vowels, so that no words appear."""


class FieldWrong(Exception):
    """A field has no value that a controller could use; the message names it."""

    def __init__(self, path: Iterable[str], reason: str) -> None:
        super().__init__(f"{'.'.join(path)}: {reason}")


def mapping(body: Body, *path: str) -> Body:
    """The mapping at a path; empty where nothing is there."""
    for index, field in enumerate(path):
        value = body.get(field)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise FieldWrong(path[: index + 1], "a mapping is expected")
        body = value
    return body


def number(body: Body, *path: str, default: int) -> int:
    """The whole number at a path, never below zero."""
    value = mapping(body, *path[:-1]).get(path[-1])
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise FieldWrong(path, "a whole number from 0 to 2147483647 is expected")
    return value


def mappings(body: Body, *path: str) -> list[Body]:
    """The list of mappings at a path; empty where nothing is there."""
    value = mapping(body, *path[:-1]).get(path[-1])
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise FieldWrong(path, "a list of mappings is expected")
    return value


def is_true(body: Body, *conditions: str) -> bool:
    """Whether one of the object's conditions holds."""
    return any(
        condition.get("type") in conditions and condition.get("status") == "True"
        for condition in mappings(body, "status", "conditions")
    )


def short_hash(text: str, length: int) -> str:
    """Characters for a name, the same for the same text."""
    digest = hashlib.sha256(text.encode(errors="replace")).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:length])


def template_hash(template: Body) -> str:
    """What tells the ReplicaSets of a Deployment apart."""
    return short_hash(json.dumps(template, sort_keys=True, default=str), 10)


def generated(base: str, which: object) -> str:
    """A name as the API server makes it from `generateName`; `which` tells the makings apart."""
    return base[:LONGEST_BASE] + short_hash(f"{base}\0{which}", 5)


def owned(owner: Body, kind: str, name: str, **content: Any) -> dict[str, Any]:
    """An object that a controller makes for its owner, in the same namespace."""
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner.get("apiVersion", ""),
        "kind": owner.get("kind", ""),
        "name": metadata["name"],
        "uid": metadata.get("uid") or "",
        "controller": True,
    }
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": metadata["namespace"], "ownerReferences": [reference]},
        **content,
    }


def pod_of(
    owner: Body, name: str, template: Body, labels: Mapping[str, str], annotations: Mapping[str, str] = {}
) -> dict[str, Any]:
    """A pod made from a template, with what its controller adds."""
    metadata = mapping(template, "metadata")
    pod = owned(owner, "Pod", name, apiVersion="v1", spec=dict(mapping(template, "spec")))
    pod["metadata"]["labels"] = {**mapping(metadata, "labels"), **labels}
    pod["metadata"]["annotations"] = {**mapping(metadata, "annotations"), **annotations}
    return pod


def template_of(body: Body) -> Body:
    """The pod template of a workload; raises `FieldWrong` without one, or where its selector misses it."""
    template = mapping(body, "spec", "template")
    if not mapping(body, "spec", "template", "spec"):
        raise FieldWrong(("spec", "template", "spec"), "there is no pod template")
    selector = mapping(body, "spec", "selector")
    wanted = mapping(selector, "matchLabels") if "matchLabels" in selector else {}
    labels = mapping(body, "spec", "template", "metadata", "labels")
    missed = [key for key, value in wanted.items() if labels.get(key) != value]
    if missed:
        raise FieldWrong(
            ("spec", "template", "metadata", "labels"), f"{missed[0]} is not what spec.selector asks for"
        )
    return template


def indexes(text: object) -> set[int]:
    """The indexes of a Job's status, such as `0-2,5`; what is no such list counts as none."""
    found: set[int] = set()
    for part in str(text or "").split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (last or first).isdecimal() and len(part) < 24:
            found.update(range(int(first), min(int(last or first), int(first) + 100_000) + 1))
    return found
