"""Watches: the changes of one kind as JSON lines, from a version on, until somebody ends them."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dovetail.embedded.answers import StatusError
from dovetail.embedded.bodies import Body
from dovetail.embedded.events import as_new
from dovetail.embedded.filters import Filter
from dovetail.embedded.kinds import EVENT, NEW_EVENT, Kind
from dovetail.embedded.store import Change, ChangeType, Store

DEFAULT_TIMEOUT_SECONDS = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """What a watch asks for. `since` is None where it wants to begin with what there is."""

    kind: Kind
    namespace: str
    accepts: Filter
    since: int | None = None
    bookmarks: bool = False
    initial_bookmark: bool = False
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS


class Watches:
    """All open watches."""

    def __init__(self, store: Store, bookmark_seconds: float = 10.0) -> None:
        self.bookmark_seconds = bookmark_seconds
        self._store = store
        self._open: set[_Watch] = set()
        self._silent = False

    def __len__(self) -> int:
        return len(self._open)

    def close(self) -> None:
        """End all watches, as an API server does that stops; clients come back by themselves."""
        for watch in tuple(self._open):
            watch.close()

    @contextmanager
    def silenced(self, *, lose: bool = False) -> Iterator[None]:
        """Watches stay open and say nothing; afterwards the changes come late, or (`lose`) never."""
        self._silent = True
        try:
            yield
        finally:
            self._silent = False
            for watch in tuple(self._open):
                watch.resume(lose=lose)

    async def lines(self, options: WatchOptions) -> AsyncIterator[bytes]:
        """The lines of one watch, several at a time; ends at its time-out or when it is closed."""
        watch = _Watch(options, self)
        self._store.listen(watch.hear)
        self._open.add(watch)
        try:
            yield watch.beginning(self._store)
            async for lines in watch.following(self._store, self.bookmark_seconds):
                yield lines
        except StatusError as error:
            yield _line("ERROR", json.dumps(error.body).encode())
        finally:
            self._open.discard(watch)
            self._store.unlisten(watch.hear)

    @property
    def silent(self) -> bool:
        """Whether watches say nothing at present."""
        return self._silent


class _Watch:
    """One watch. What it hears waits in a queue; None ends it."""

    def __init__(self, options: WatchOptions, watches: Watches) -> None:
        self._options = options
        self._watches = watches
        self._kept_kind = EVENT if options.kind == NEW_EVENT else options.kind
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._held: list[bytes] = []

    def hear(self, change: Change) -> None:
        """Take in a change, if it is one that was asked for."""
        if change.version <= (self._options.since or 0):
            # A watch from a version that is still to come is silent until then.
            return
        if change.kind != self._kept_kind or not (line := self._told(change)):
            return
        if self._watches.silent:
            self._held.append(line)
        else:
            self._queue.put_nowait(line)

    def resume(self, *, lose: bool) -> None:
        """Say what was held back, or forget it."""
        for line in [] if lose else self._held:
            self._queue.put_nowait(line)
        self._held = []

    def close(self) -> None:
        """End the watch after what is waiting."""
        self._queue.put_nowait(None)

    def beginning(self, store: Store) -> bytes:
        """What happened since the version asked for, or everything that there is."""
        if self._options.since is not None:
            changes = store.since(self._kept_kind, self._options.since)
            return b"".join(line for change in changes if (line := self._told(change)))
        bodies = store.objects(self._kept_kind, self._options.namespace)
        lines = [_line("ADDED", self._encoded(body)) for body in bodies if self._options.accepts(body)]
        if self._options.initial_bookmark:
            lines.append(self._bookmark(store, {"k8s.io/initial-events-end": "true"}))
        return b"".join(lines)

    async def following(self, store: Store, bookmark_seconds: float) -> AsyncIterator[bytes]:
        """What happens from now on."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._options.timeout_seconds
        while (left := deadline - clock()) > 0:
            try:
                async with asyncio.timeout(min(left, bookmark_seconds)):
                    lines = [await self._queue.get()]
            except TimeoutError:
                if self._options.bookmarks and not self._watches.silent:
                    yield self._bookmark(store, {})
                continue
            while not self._queue.empty():
                lines.append(self._queue.get_nowait())
            yield b"".join(line for line in lines if line)
            if None in lines:
                return

    def _told(self, change: Change) -> bytes:
        """The line for a change; one that moves the object in or out of the selection changes its type."""
        namespace = change.body["metadata"].get("namespace", "")
        if self._options.namespace not in ("", namespace):
            return b""
        was = change.before is not None and self._options.accepts(change.before)
        is_now = change.type != "DELETED" and self._options.accepts(change.body)
        if not was and not is_now:
            return b""
        kind: ChangeType = "MODIFIED" if was and is_now else "ADDED" if is_now else "DELETED"
        encoded = change.encoded if self._options.kind == change.kind else self._encoded(change.body)
        return _line(kind, encoded)

    def _encoded(self, body: Body) -> bytes:
        shown = as_new(body) if self._options.kind == NEW_EVENT else body
        return json.dumps(shown, separators=(",", ":")).encode()

    def _bookmark(self, store: Store, annotations: dict[str, str]) -> bytes:
        metadata: Body = {"resourceVersion": str(store.version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        kind = self._options.kind
        body = {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata}
        return _line("BOOKMARK", json.dumps(body).encode())


def _line(kind: str, encoded: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + encoded + b"}\n"
