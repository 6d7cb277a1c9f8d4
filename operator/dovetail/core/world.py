"""The picture of the cluster: objects by kind, fed one at a time, with an inventory kept up to date."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.core.decisions import ObjectKey
from dovetail.core.features import Features


class Effect(enum.Enum):
    """Whom a change concerns."""

    POD = "pod"
    """Only the pod itself: look at it again."""

    CONSUMERS = "consumers"
    """The pods of a claim or template."""

    EVERYONE = "everyone"
    """Every waiting pod: something that was missing may be there now."""


@dataclass(frozen=True, slots=True)
class Change:
    """What an object that appeared, changed or vanished means for waiting pods."""

    kind: str
    key: ObjectKey
    effect: Effect


@dataclass(frozen=True, slots=True)
class Problem:
    """An object that cannot be read, and why."""

    kind: str
    key: ObjectKey
    reason: str


class World:
    """Objects by kind, as of the last `put` and `drop`; decisions read it and never change it.

    Kinds are named as in manifests: Pod, Node, ResourceClaim, ResourceClaimTemplate, DeviceClass,
    ResourceSlice, DerivedAttribute, DeviceTaintRule, Namespace, PriorityClass, PersistentVolumeClaim, PersistentVolume,
    StorageClass, CSINode; other kinds are ignored.
    """

    problems: Mapping[tuple[str, ObjectKey], Problem]

    def __init__(
        self, features: Features, *, shipped_mappings: bool = True, assume_nodes: bool = False
    ) -> None:
        """`assume_nodes`: nodes that only slices name exist, and what a Node does not report suffices."""

    def put(self, kind: str, body: Mapping[str, Any]) -> Change | None:
        """Take in an object as read from the API server; None where no decision can depend on the change.

        A malformed object is recorded in `problems` and counts as absent, except that the devices of a claim
        that is allocated stay taken as far as its allocation can be read.
        Whether `body` is newer than what is known is the caller's concern.
        """
        raise NotImplementedError

    def drop(self, kind: str, namespace: str, name: str) -> Change | None:
        """Forget an object; an unknown one is ignored."""
        raise NotImplementedError

    def raw(self, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """The JSON as read, for writing back: kept for claims, templates, pods and mappings."""
        raise NotImplementedError
