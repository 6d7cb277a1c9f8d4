"""Raw objects as JSON says them: how to reach into them and how to copy them."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Body = dict[str, Any]
"""An object as JSON says it. What the store holds is never changed in place."""

Key = tuple[str, str]
"""Namespace (empty where cluster-scoped) and name."""


def copied(body: Body) -> Body:
    """A deep copy; JSON is faster than `copy.deepcopy` and holds nothing else."""
    copy: Body = json.loads(json.dumps(body))
    return copy


def now() -> str:
    """The time as `metadata.creationTimestamp` says it: RFC 3339, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def metadata_of(body: Mapping[str, Any]) -> Body:
    """The metadata; an empty map where the object has none."""
    found = body.get("metadata")
    return found if isinstance(found, dict) else {}


def name_of(body: Mapping[str, Any]) -> str:
    """The name; empty where the object has none."""
    return str(metadata_of(body).get("name") or "")


def namespace_of(body: Mapping[str, Any]) -> str:
    """The namespace; empty where the object has none."""
    return str(metadata_of(body).get("namespace") or "")


def uid_of(body: Mapping[str, Any]) -> str:
    """The UID; empty where the object has none."""
    return str(metadata_of(body).get("uid") or "")


def version_of(body: Mapping[str, Any]) -> int:
    """The resourceVersion as a number; 0 where the object has none."""
    return int(metadata_of(body).get("resourceVersion") or 0)


def key_of(body: Mapping[str, Any]) -> Key:
    """Where the object is kept."""
    return (namespace_of(body), name_of(body))


def is_terminating(body: Mapping[str, Any]) -> bool:
    """Whether somebody asked for its deletion."""
    return bool(metadata_of(body).get("deletionTimestamp"))


def part(body: Mapping[str, Any], *path: str) -> Body:
    """The map at a path; an empty one where there is none or where it is null."""
    found: Any = body
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def items(body: Mapping[str, Any], *path: str) -> list[Any]:
    """The list at a path; an empty one where there is none or where it is null."""
    found = part(body, *path[:-1]).get(path[-1])
    return found if isinstance(found, list) else []


def text(body: Mapping[str, Any], *path: str) -> str:
    """The string at a path; empty where there is none."""
    found = part(body, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""


def controller_of(body: Mapping[str, Any]) -> Body:
    """The owner reference that controls the object; an empty map where there is none."""
    return next(
        (owner for owner in items(body, "metadata", "ownerReferences") if owner.get("controller")), {}
    )
