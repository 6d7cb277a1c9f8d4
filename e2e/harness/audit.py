"""Who wrote what, read from the API server's audit log."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from typing_extensions import override

from e2e.harness.errors import NotSeen


@dataclass(frozen=True, slots=True)
class Write:
    """One write request and its answer; `subresource` is empty for the object itself.

    `at` is when the API server received it, in seconds since 1970.
    """

    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    dry_run: bool
    at: float

    @override
    def __str__(self) -> str:
        target = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        return f"{self.verb} {target} {self.namespace}/{self.name} -> {self.code}"


class AuditLog:
    """The log of all writes of a plane, except those of its admin and of KWOK."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def mark(self) -> int:
        """The place that the log has reached, for `since`."""
        return self._path.stat().st_size if self._path.exists() else 0

    def writes(self, user: str, *, since: int = 0) -> tuple[Write, ...]:
        """What one user wrote, refused writes included, in the order of the answers.

        A ServiceAccount's name is `system:serviceaccount:NAMESPACE:NAME`.
        A request's line is there within milliseconds of its answer: wait for what you count with `seen`.
        """
        return tuple(write for write in self._read(since) if write.user == user)

    async def seen(
        self,
        user: str,
        predicate: Callable[[tuple[Write, ...]], bool],
        *,
        since: int = 0,
        within: float = 5,
    ) -> tuple[Write, ...]:
        """Wait until the writes of a user satisfy the predicate; return them."""
        deadline = time.monotonic() + within
        while True:
            writes = self.writes(user, since=since)
            if predicate(writes):
                return writes
            if time.monotonic() > deadline:
                raise NotSeen(f"writes of {user}", within, "\n".join(map(str, writes)) or "nothing")
            # The log is a file that others write; nothing tells of a new line.
            await asyncio.sleep(0.02)

    def _read(self, since: int) -> Iterator[Write]:
        if not self._path.exists():
            return
        with self._path.open("rb") as log:
            log.seek(since)
            for line in log:
                if line.endswith(b"\n"):
                    yield _write_of(json.loads(line))


def _write_of(event: dict[str, object]) -> Write:
    target = _mapping(event.get("objectRef"))
    return Write(
        user=str(_mapping(event.get("user")).get("username", "")),
        verb=str(event["verb"]),
        resource=str(target.get("resource", "")),
        subresource=str(target.get("subresource", "")),
        namespace=str(target.get("namespace", "")),
        name=str(target.get("name", "")),
        code=int(str(_mapping(event.get("responseStatus")).get("code", 0))),
        dry_run="dryRun=All" in str(event.get("requestURI", "")),
        at=datetime.fromisoformat(str(event["requestReceivedTimestamp"])).timestamp(),
    )


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
