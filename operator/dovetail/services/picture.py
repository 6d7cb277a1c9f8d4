"""The cluster as it was last seen: fed by watches, by the answers to our own writes, and healed by lists."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.api.kinds import NODE, OPTIONAL, WATCHED, Kind

Json = dict[str, Any]
Key = tuple[str, str]
"""Namespace (empty where cluster-scoped) and name."""

TOMBSTONES = 10_000
"""How many deletions are remembered, so that a late answer does not bring an object back."""


@dataclass(frozen=True, slots=True)
class Change:
    """An object appeared (`before` is None), changed, or went (`after` is None)."""

    kind: Kind
    key: Key
    before: Json | None
    after: Json | None


def key_of(body: Mapping[str, Any]) -> Key:
    """The key of an object."""
    metadata = body["metadata"]
    return (metadata.get("namespace", ""), metadata["name"])


def number(resource_version: str) -> int | None:
    """A resourceVersion as a number, or None where it is none: only numbers can be compared (KEP-5504)."""
    return int(resource_version) if resource_version.isdecimal() else None


def version_of(body: Mapping[str, Any] | None) -> int | None:
    """The resourceVersion of an object as a number, or None where it has none that is one."""
    return number(str(body["metadata"].get("resourceVersion", ""))) if body else None


class Picture:
    """What is known of the cluster.

    It belongs to the event loop; whoever wants to follow it registers a listener,
    which is called at once with every `Change`.
    An older version of an object never replaces a newer one, unless the cluster itself went back.
    """

    def __init__(self) -> None:
        self._objects: dict[Kind, dict[Key, Json]] = {kind: {} for kind in WATCHED}
        self._gone: dict[tuple[Kind, Key], int] = {}
        self._listeners: list[Callable[[Change], None]] = []
        self._complete: set[Kind] = set()
        self._newest: dict[Kind, int] = {}

    def follow(self, listener: Callable[[Change], None]) -> None:
        """Call `listener` with every change from now on."""
        self._listeners.append(listener)

    @property
    def is_complete(self) -> bool:
        """Whether every kind was listed once: no decision is right before that (R8)."""
        return self._complete.issuperset(kind for kind in WATCHED if kind not in OPTIONAL)

    def newest(self, kind: Kind) -> int | None:
        """The newest version that was seen of a kind; None where none could be compared."""
        return self._newest.get(kind)

    def reach(self, kind: Kind, version: int | None) -> None:
        """A watch or a list has come to this version."""
        if version is not None:
            self._newest[kind] = max(version, self._newest.get(kind, 0))

    def find(self, kind: Kind, key: Key) -> Json | None:
        """One object; not to be changed."""
        return self._objects[kind].get(key)

    def all(self, kind: Kind) -> Iterable[Json]:
        """All objects of a kind; not to be changed."""
        return tuple(self._objects[kind].values())

    def see(self, kind: Kind, body: Json) -> bool:
        """Take in an object; False where nothing newer is learnt."""
        key = key_of(body)
        before = self._objects[kind].get(key)
        if not self._is_news(kind, key, before, body):
            return False
        self.reach(kind, version_of(body))
        self._take(kind, key, body)
        return True

    def forget(self, kind: Kind, body: Json) -> bool:
        """Take in that an object is gone; False where a newer one of the same name is known."""
        key = key_of(body)
        before = self._objects[kind].get(key)
        if before is not None and before["metadata"].get("uid") != body["metadata"].get("uid"):
            return False
        self.reach(kind, version_of(body))
        self._bury(kind, key, version_of(body))
        return self._drop(kind, key)

    def heal(self, kind: Kind, bodies: Iterable[Json], resource_version: str) -> int:
        """Take in a complete list: what is not in it, and not newer than it, is gone.

        Returns how many objects had vanished unseen.
        """
        listed = {key_of(body): body for body in bodies}
        as_of = number(resource_version)
        vanished = [
            key for key in self._objects[kind] if key not in listed and self._is_old(kind, key, as_of)
        ]
        for key in vanished:
            self._bury(kind, key, as_of)
            self._drop(kind, key)
        for body in listed.values():
            self.see(kind, body)
        self.reach(kind, as_of)
        self._complete.add(kind)
        return len(vanished)

    def rebuild(self, kind: Kind, bodies: Iterable[Json], resource_version: str) -> int:
        """The cluster was restored: the list counts, whatever newer versions were seen of the kind.

        Returns how many objects are gone.
        """
        for gone in [gone for gone in self._gone if gone[0] is kind]:
            del self._gone[gone]
        self._newest.pop(kind, None)
        listed = {key_of(body): body for body in bodies}
        vanished = [key for key in self._objects[kind] if key not in listed]
        for key in vanished:
            self._drop(kind, key)
        for key, body in listed.items():
            self.reach(kind, version_of(body))
            if self.find(kind, key) != slim(kind, body):
                self._take(kind, key, body)
        self.reach(kind, number(resource_version))
        return len(vanished)

    def _take(self, kind: Kind, key: Key, body: Json) -> None:
        before, after = self._objects[kind].get(key), slim(kind, body)
        self._objects[kind][key] = after
        self._tell(Change(kind, key, before, after))

    def _is_old(self, kind: Kind, key: Key, as_of: int | None) -> bool:
        version = version_of(self._objects[kind][key])
        return as_of is None or version is None or version <= as_of

    def _is_news(self, kind: Kind, key: Key, before: Json | None, body: Json) -> bool:
        version = version_of(body)
        if version is None:
            return before is None or before["metadata"].get("resourceVersion") != body["metadata"].get(
                "resourceVersion"
            )
        if version <= self._gone.get((kind, key), -1):
            return False
        known = version_of(before)
        return known is None or version > known

    def _bury(self, kind: Kind, key: Key, version: int | None) -> None:
        if version is None:
            return
        known = self._objects[kind].get(key)
        self._gone.pop((kind, key), None)
        self._gone[(kind, key)] = max(version, version_of(known) or 0)
        if len(self._gone) > TOMBSTONES:
            del self._gone[next(iter(self._gone))]

    def _drop(self, kind: Kind, key: Key) -> bool:
        before = self._objects[kind].pop(key, None)
        if before is None:
            return False
        self._tell(Change(kind, key, before, None))
        return True

    def _tell(self, change: Change) -> None:
        for listener in self._listeners:
            listener(change)


def slim(kind: Kind, body: Json) -> Json:
    """The object without what nobody here reads and the API server keeps by itself."""
    metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    kept = {"apiVersion": kind.api_version, "kind": kind.name, **body, "metadata": metadata}
    if kind is NODE and isinstance(body.get("status"), Mapping):
        kept["status"] = {name: value for name, value in body["status"].items() if name != "images"}
    return kept
