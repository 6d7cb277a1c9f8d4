"""Following what changes with every pod: pods and claims, by watches of our own.

Kopf's way through an event is made for handlers that patch the object concerned, and takes a millisecond
of the only thread that there is.
A pod and its claim change ten times until the pod runs, which made Kopf's way half of all that a pod costs.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing

import structlog

from dovetail.api.kinds import CLAIM, POD, Kind
from dovetail.cluster.reader import Reader
from dovetail.cluster.watch import Event
from dovetail.errors import ClusterError, Gone, Throttled
from dovetail.services.healing import Healing

log = structlog.get_logger(__name__)

STREAMED: tuple[Kind, ...] = (POD, CLAIM)
"""The kinds that are followed here; all others are followed by Kopf."""

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0

LONGEST_WISH_SECONDS = 30.0
"""A server that asks for more patience (429) is asked all the same."""

PATIENCE = 120
"""How many times in a row a watch may fail before the error ends the process."""


class Streams:
    """Keeps one watch per kind open, and goes on from the last version that was told.

    `observe` is called with whatever is told, in the order in which it happened.
    """

    def __init__(
        self, *, reader: Reader, healing: Healing, observe: Callable[[Kind, Sequence[Event]], None]
    ) -> None:
        self._reader = reader
        self._healing = healing
        self._observe = observe

    async def follow(self, kind: Kind) -> None:
        """Follow a kind for ever; raises the last `ClusterError` where nothing helps any more."""
        since = self._healing.listed_at(kind)
        failures = 0
        while True:
            try:
                since = since or await self._healing.list_anew(kind)
                async with aclosing(self._reader.watch(kind, since)) as batches:
                    async for events in batches:
                        failures = 0
                        if events:
                            self._observe(kind, events)
                            since = events[-1].version
                pause = FIRST_PAUSE_SECONDS
            except ClusterError as error:
                failures += 1
                log.warning("watch_failed", kind=kind.name, error=str(error))
                if failures > PATIENCE:
                    raise
                pause = _pause(failures, error)
                if isinstance(error, Gone):
                    since = ""
            await asyncio.sleep(pause)


def _pause(failures: int, error: ClusterError) -> float:
    """What the server asks for, within reason; else longer with every failure in a row."""
    asked = error.retry_after_seconds if isinstance(error, Throttled) else 0.0
    grown = min(FIRST_PAUSE_SECONDS * 2.0**failures, LONGEST_PAUSE_SECONDS)
    return max(grown, min(asked, LONGEST_WISH_SECONDS))
