"""Following what changes with every pod, and what may not be there, by watches of our own.

Kopf's way through an event is made for handlers that patch the object concerned, and takes a millisecond
of the only thread that there is.
A pod and its claim change ten times until the pod runs, which made Kopf's way half of all that a pod costs.
And where a kind is not served any more, Kopf ends.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

import structlog

from dovetail.api.kinds import OPTIONAL, Kind
from dovetail.cluster.reader import Reader
from dovetail.cluster.watch import Event
from dovetail.errors import ClusterError, Gone, NotFound, Throttled
from dovetail.services.healing import Healing

log = structlog.get_logger(__name__)

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0

LONGEST_WISH_SECONDS = 30.0
"""A server that asks for more patience (429) is asked all the same."""

ABSENT_SECONDS = 5.0
"""How often is looked whether a kind is served by now."""

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
        self._limits: dict[Kind, asyncio.Timeout] = {}
        """By kind, what ends the watch that is open."""
        self._anew: set[Kind] = set()

    def begin_anew(self, kind: Kind) -> None:
        """Do not go on from the version that was last told, but list the kind."""
        self._anew.add(kind)
        if limit := self._limits.get(kind):
            limit.reschedule(asyncio.get_running_loop().time())

    async def follow(self, kind: Kind) -> None:
        """Follow a kind for ever; raises the last `ClusterError` where nothing helps any more.

        A kind that the cluster may lack is waited for, however long that takes.
        """
        since = self._healing.listed_at(kind)
        failures = 0
        while True:
            pause = FIRST_PAUSE_SECONDS
            try:
                since = await self._beginning(kind, since)
                if not since and kind in OPTIONAL:
                    await asyncio.sleep(ABSENT_SECONDS)
                    continue
                async with self._limited(kind), aclosing(self._reader.watch(kind, since)) as batches:
                    async for events in batches:
                        failures = 0
                        if events:
                            self._observe(kind, events)
                            since = events[-1].version
            except TimeoutError:
                continue
            except ClusterError as error:
                failures += 1
                log.warning("watch_failed", kind=kind.name, error=str(error))
                if failures > PATIENCE and kind not in OPTIONAL:
                    raise
                pause = _pause(failures, error)
                if isinstance(error, Gone) or (isinstance(error, NotFound) and kind in OPTIONAL):
                    since = ""
            await asyncio.sleep(pause)

    async def _beginning(self, kind: Kind, since: str) -> str:
        """The version to watch from: the last one that was told, unless the cluster has gone back since."""
        if kind in self._anew or not since or await self._healing.is_behind(kind):
            self._anew.discard(kind)
            return await self._healing.list_anew(kind)
        return since

    @asynccontextmanager
    async def _limited(self, kind: Kind) -> AsyncIterator[None]:
        """For as long as the block lasts it can be ended from outside, by `TimeoutError`."""
        async with asyncio.timeout(None) as self._limits[kind]:
            try:
                yield
            finally:
                del self._limits[kind]


def _pause(failures: int, error: ClusterError) -> float:
    """What the server asks for, within reason; else longer with every failure in a row."""
    asked = error.retry_after_seconds if isinstance(error, Throttled) else 0.0
    grown = min(FIRST_PAUSE_SECONDS * 2.0**failures, LONGEST_PAUSE_SECONDS)
    return max(grown, min(asked, LONGEST_WISH_SECONDS))
