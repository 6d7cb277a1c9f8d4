"""What a change of an object means for waiting pods, and what is wrong with objects that cannot be read."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.api.meta import KubernetesObject
from dovetail.core.decisions import ObjectKey
from dovetail.errors import ObjectInvalid


class Effect(enum.Enum):
    """Whom a change concerns."""

    POD = "pod"
    """Only the pod itself: look at it again."""

    CONSUMERS = "consumers"
    """The pods that use a claim or template, or share a claim with the pod."""

    EVERYONE = "everyone"
    """Every waiting pod: something that was missing may be there now."""


@dataclass(frozen=True, slots=True)
class Change:
    """What an object that appeared, changed or vanished means for waiting pods."""

    kind: str
    key: ObjectKey
    effect: Effect
    before: KubernetesObject | None = None
    """What was known of the object until then, as far as somebody asked for it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An object that cannot be read, and why."""

    kind: str
    key: ObjectKey
    reason: str


def key_in(body: Mapping[str, Any]) -> ObjectKey:
    """The key of an object as it was read; a part that is missing or no text is empty."""
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping):
        return ("", "")
    namespace, name = metadata.get("namespace"), metadata.get("name")
    return (namespace if isinstance(namespace, str) else "", name if isinstance(name, str) else "")


def same(before: KubernetesObject, after: KubernetesObject) -> bool:
    """Nothing that a decision reads has changed: versions, generations and finalizers count for nothing."""
    return _ageless(before) == _ageless(after)


def _ageless(parsed: KubernetesObject) -> KubernetesObject:
    blank = parsed.metadata.model_copy(update={"resource_version": "", "generation": 0, "finalizers": ()})
    return parsed.model_copy(update={"metadata": blank})


def parsed_as(model: type[KubernetesObject], body: Mapping[str, Any]) -> KubernetesObject:
    """The object as it was read, as a model; raises `ObjectInvalid` where it is malformed or has no name."""
    parsed = model.parse(body)
    if not parsed.metadata.name:
        raise ObjectInvalid(model.__name__, "?", "metadata.name: it has none")
    return parsed
