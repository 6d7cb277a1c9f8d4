"""Watching one kind from a version on: what the API server tells, in batches, as it arrives."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from random import randrange
from typing import Any, Literal

from dovetail.api.kinds import Kind
from dovetail.cluster.json_text import read_json
from dovetail.cluster.wire import Wire, failure
from dovetail.errors import Unavailable

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]

SHORTEST_SECONDS, LONGEST_SECONDS = 300, 600
"""How long a watch is asked to last: at random, so that replicas and kinds do not come back together."""

SILENCE_SECONDS = 150.0
"""A connection that brings nothing for so long is dead: the server sends a bookmark about every minute."""


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to an object; the body of a bookmark has nothing but a version.

    A watch can go on from `version`, the resourceVersion that the event is of.
    """

    type: EventType
    body: dict[str, Any]
    version: str


async def watch(wire: Wire, kind: Kind, since: str) -> AsyncGenerator[Sequence[Event], None]:
    """What happens to all objects of a kind after a version, until the server ends the watch.

    The first batch is empty, and comes when the server has taken up the watch.
    Raises `Gone` where the server does not remember the version (list again),
    and other `ClusterError`s where watching fails; a connection that breaks or falls silent is `Unavailable`.
    """
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": since,
        "timeoutSeconds": str(randrange(SHORTEST_SECONDS, LONGEST_SECONDS)),  # noqa: S311 - no secret
    }
    rest = b""
    async with aclosing(wire.stream(kind.path(), query=query, silence_seconds=SILENCE_SECONDS)) as chunks:
        async for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            yield [_read(kind, line) for line in lines if line]


def _read(kind: Kind, line: bytes) -> Event:
    action = f"watching {kind.plural}"
    try:
        told = read_json(line)
        if told["type"] == "ERROR":
            raise failure(
                action, told["object"]["code"], str(told["object"].get("message") or "no reason given")
            )
        return Event(told["type"], told["object"], str(told["object"]["metadata"]["resourceVersion"]))
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(action, "the answer is no watch event") from error
