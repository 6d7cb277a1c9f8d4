"""The objects and their history: one counter of versions, and who wants to hear of changes.

Everything here is synchronous, so that each write is atomic on the event loop.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from dovetail.embedded.answers import expired
from dovetail.embedded.bodies import Body, Key, key_of
from dovetail.embedded.kinds import Kind

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True)
class Change:
    """One committed write. `body` is the object afterwards (of a deletion: its last state)."""

    kind: Kind
    version: int
    type: ChangeType
    body: Body
    before: Body | None

    @cached_property
    def encoded(self) -> bytes:
        """The object as JSON; encoded once, however many watch it."""
        return json.dumps(self.body, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All objects as of a version."""

    version: int
    objects: dict[Kind, dict[Key, Body]]


class Store:
    """All objects. What is handed out is shared: callers must not change it."""

    def __init__(self, history_limit: int = 50_000) -> None:
        self.version = 100
        self.oldest = self.version
        self._objects: dict[Kind, dict[Key, Body]] = {}
        self._history: deque[Change] = deque()
        self._history_limit = history_limit
        self._listeners: list[Callable[[Change], None]] = []

    def find(self, kind: Kind, key: Key) -> Body | None:
        """The object, if it is there."""
        return self._objects.get(kind, {}).get(key)

    def objects(self, kind: Kind, namespace: str = "") -> list[Body]:
        """The objects of a kind by key, of one namespace or of all."""
        objects = self._objects.get(kind, {})
        return [objects[key] for key in sorted(objects) if not namespace or key[0] == namespace]

    def kinds(self) -> Iterable[Kind]:
        """The kinds of which there has been an object."""
        return tuple(self._objects)

    def put(self, kind: Kind, body: Body) -> Body:
        """Keep the object as the newest version; the answer carries its resourceVersion."""
        objects = self._objects.setdefault(kind, {})
        before = objects.get(key_of(body))
        stored = self._stamped(body)
        objects[key_of(body)] = stored
        self._commit(Change(kind, self.version, "MODIFIED" if before else "ADDED", stored, before))
        return stored

    def remove(self, kind: Kind, key: Key) -> Body:
        """Forget the object; the answer is its last state, with the version of the deletion."""
        before = self._objects[kind].pop(key)
        last = self._stamped(before)
        self._commit(Change(kind, self.version, "DELETED", last, before))
        return last

    def since(self, kind: Kind, version: int) -> list[Change]:
        """What happened to a kind after a version; raises the 410 answer where that is no longer known."""
        if version < self.oldest:
            raise expired(self.oldest, version)
        return [change for change in self._history if change.kind == kind and change.version > version]

    def compact(self) -> None:
        """Forget the history: every version before the present one is too old from now on."""
        self._history.clear()
        # Compacting moves the version on, so that a reader of the last write is too old as well.
        self.version += 1
        self.oldest = self.version

    def snapshot(self) -> "Snapshot":
        """What there is now, for `restore`."""
        return Snapshot(self.version, {kind: dict(objects) for kind, objects in self._objects.items()})

    def restore(self, snapshot: "Snapshot") -> None:
        """Be what was there then, with the version of then: nobody is told."""
        self.version = self.oldest = snapshot.version
        self._objects = {kind: dict(objects) for kind, objects in snapshot.objects.items()}
        self._history.clear()

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Call `listener` with each change as it is committed."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[Change], None]) -> None:
        """Call it no longer."""
        self._listeners.remove(listener)

    async def changed(self, after: int) -> int:
        """Wait until the version is beyond `after`; the answer is the version then."""
        if self.version <= after:
            arrived = asyncio.Event()

            def tell(_: Change) -> None:
                arrived.set()

            self.listen(tell)
            try:
                await arrived.wait()
            finally:
                self.unlisten(tell)
        return self.version

    def _stamped(self, body: Body) -> Body:
        self.version += 1
        metadata = dict(body["metadata"]) | {"resourceVersion": str(self.version)}
        return dict(body) | {"metadata": metadata}

    def _commit(self, change: Change) -> None:
        self._history.append(change)
        while len(self._history) > self._history_limit:
            self.oldest = self._history.popleft().version
        for listener in tuple(self._listeners):
            listener(change)
