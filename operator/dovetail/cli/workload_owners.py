"""Who controls what in an input, and what a workload still lacks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.cli.known_kinds import WORKLOADS
from dovetail.cli.manifests import Key, Manifest
from dovetail.cli.workload_parts import Body
from dovetail.core.nodes import NodeBook

HASH_LABEL = "pod-template-hash"


@dataclass(frozen=True, slots=True)
class Batch:
    """How many pods are missing, and the objects to make for them: pods, each behind its volumes' claims.

    `why` says why a workload that is there asks for none; `later` counts pods that are made once others end.
    """

    total: int
    objects: Iterator[Body]
    why: str = ""
    later: int = 0


def nothing(why: str = "") -> Batch:
    """No pod is missing."""
    return Batch(0, iter(()), why)


@dataclass(frozen=True, slots=True)
class Owner:
    """Who controls an object; no UID where the reference says none."""

    key: Key
    uid: str


class Known:
    """The input, by owner and by name; what else a controller looks at."""

    def __init__(self, manifests: Mapping[Key, Manifest], nodes: NodeBook) -> None:
        self.manifests = manifests
        self.nodes = nodes
        self._owned: dict[Key, list[Manifest]] = {}
        self._of_absent_sets: dict[Key, list[Manifest]] = {}
        self._ordinals: dict[Key, set[int]] = {}
        for manifest in manifests.values():
            if (owner := owner_in(manifest)) is not None:
                self._owned.setdefault(owner.key, []).append(manifest)
                self._note_absent_set(manifest, owner.key)
            base, _, ordinal = manifest.name.rpartition("-")
            if manifest.kind in ("Pod", "StatefulSet", "Job") and _is_ordinal(ordinal):
                key = (manifest.kind, (manifest.namespace, base))
                self._ordinals.setdefault(key, set()).add(int(ordinal))

    def has(self, kind: str, namespace: str, name: str) -> bool:
        """Whether the input has the object."""
        return (kind, (namespace, name)) in self.manifests

    def ordinals(self, kind: str, namespace: str, base: str) -> set[int]:
        """The numbers behind the dash in the names of objects that begin like this."""
        return self._ordinals.get((kind, (namespace, base)), set())

    def owner_of(self, manifest: Manifest) -> Manifest | None:
        """The workload of the input that controls an object."""
        owner = owner_in(manifest)
        found = self.manifests.get(owner.key) if owner is not None else None
        return found if found is not None and found.kind in WORKLOADS and _is_owned(manifest, found) else None

    def owned_by(self, owner: Manifest, kind: str) -> list[Manifest]:
        """The objects of a kind that a workload controls."""
        owned = self._owned.get(owner.key, ())
        return [each for each in owned if each.kind == kind and _is_owned(each, owner)]

    def pods_of(self, owner: Manifest) -> list[Manifest]:
        """The pods of a workload that are neither done nor going."""
        return [pod for pod in self.owned_by(owner, "Pod") if is_active(pod.body)]

    def pods_of_absent_sets(self, deployment: Manifest) -> list[Manifest]:
        """The pods of a Deployment whose ReplicaSets the input lacks."""
        return [pod for pod in self._of_absent_sets.get(deployment.key, ()) if is_active(pod.body)]

    def _note_absent_set(self, pod: Manifest, owner: Key) -> None:
        """A ReplicaSet is named after its Deployment and the hash that its pods have as label."""
        kind, (namespace, name) = owner
        hashed = f"-{label(pod.body, HASH_LABEL)}"
        if pod.kind == "Pod" and kind == "ReplicaSet" and owner not in self.manifests:
            deployment = name.removesuffix(hashed)
            self._of_absent_sets.setdefault(("Deployment", (namespace, deployment)), []).append(pod)


def is_active(pod: Body) -> bool:
    """Whether a controller counts the pod among those that it has."""
    return not pod["metadata"].get("deletionTimestamp") and phase(pod) not in ("Succeeded", "Failed")


def phase(pod: Body) -> Any:
    """What the status says; a malformed one says nothing."""
    status = pod.get("status")
    return status.get("phase") if isinstance(status, Mapping) else None


def label(body: Body, name: str, field: str = "labels") -> Any:
    """A label, or an annotation; None where there is none to read."""
    found = body["metadata"].get(field)
    return found.get(name) if isinstance(found, Mapping) else None


def owner_in(manifest: Manifest) -> Owner | None:
    """Who controls an object, else the first that owns it: a hand-written reference may not say more."""
    references = manifest.body["metadata"].get("ownerReferences")
    known = [each for each in references if isinstance(each, Mapping)] if isinstance(references, list) else []
    for each in sorted(known, key=lambda reference: reference.get("controller") is not True):
        key = (str(each.get("kind")), (manifest.namespace, str(each.get("name"))))
        return Owner(key, str(each.get("uid") or ""))
    return None


def _is_ordinal(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 12 and str(int(text)) == text


def _is_owned(manifest: Manifest, owner: Manifest) -> bool:
    """The reference means this very owner: a UID that either lacks speaks against nothing."""
    uid, reference = str(owner.body["metadata"].get("uid") or ""), owner_in(manifest)
    return reference is not None and (not uid or not reference.uid or uid == reference.uid)
