"""Complete lists: before the first decision, after every gap of a watch, and every few minutes."""

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic

import structlog

from dovetail.api.kinds import OPTIONAL, STREAMED, WATCHED, Kind
from dovetail.cluster.reader import Reader
from dovetail.errors import ClusterError, NotFound
from dovetail.services.echoes import Echoes
from dovetail.services.metrics import Metrics
from dovetail.services.picture import Picture, number
from dovetail.services.served import Served

log = structlog.get_logger(__name__)

SETTLE_SECONDS = 0.3
"""A relist of a watch arrives object by object: one list after the last of them is enough."""

SECOND_LOOK_SECONDS = 5.0
"""What vanished between our first list and the watch's own first list is found by a second one."""

RETRY_SECONDS = 5.0

DEAF_SECONDS = 10.0
"""How often everything is listed while watches of Kopf's are of no use."""


class Healing:
    """Keeps the picture true where watches cannot."""

    def __init__(
        self,
        *,
        reader: Reader,
        picture: Picture,
        echoes: Echoes,
        metrics: Metrics,
        served: Served,
        resync_seconds: float,
    ) -> None:
        self._reader = reader
        self._picture = picture
        self._echoes = echoes
        self._metrics = metrics
        self._served = served
        self._resync = resync_seconds
        self._healed: Callable[[], None] = lambda: None
        self._gone_back: Callable[[Kind], None] = lambda _: None
        self._deaf: dict[Kind, int] = {}
        """Kinds that Kopf watches from a version that is still to come: they are listed instead."""
        self._gaps: set[Kind] = set()
        self._gap = asyncio.Event()
        self._listed_at: dict[Kind, str] = {}
        self._attempted = monotonic()
        self.last_success = monotonic()

    def note_gap(self, kind: Kind) -> None:
        """A watch of the kind began anew: what vanished meanwhile was not reported."""
        self._gaps.add(kind)
        self._gap.set()

    def on_healed(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever everything was compared with complete lists."""
        self._healed = listener

    async def first(self) -> None:
        """List everything for the first time; raises where that is not possible."""
        await self._heal(WATCHED)

    async def list_anew(self, kind: Kind) -> str:
        """Compare one kind with a complete list, and return the version of the list.

        Empty where the cluster does not serve the kind, which then counts as having no objects.
        """
        await self._heal_kind(kind)
        return self.listed_at(kind)

    def listed_at(self, kind: Kind) -> str:
        """The version of the last complete list of a kind; empty where it was never listed."""
        return self._listed_at.get(kind, "")

    async def run(self) -> None:
        """Heal for ever."""
        pause = SECOND_LOOK_SECONDS
        while True:
            kinds = await self._next(pause)
            try:
                await self._heal(kinds)
                pause = min(DEAF_SECONDS, self._resync) if self._deaf else self._resync
                if kinds is WATCHED:
                    self._healed()
            except ClusterError as error:
                log.warning("list_failed", error=str(error))
                self._attempted = monotonic()
                pause = min(RETRY_SECONDS, self._resync)

    async def is_behind(self, kind: Kind) -> bool:
        """Whether the API server is at an older version of the kind than was seen: it was restored."""
        known = self._picture.newest(kind)
        version = number(await self._reader.version_of(kind))
        return known is not None and version is not None and version < known

    def on_going_back(self, listener: Callable[[Kind], None]) -> None:
        """Call `listener` with a kind whose versions have become lower."""
        self._gone_back = listener

    async def _next(self, pause: float) -> Iterable[Kind]:
        """Wait for a gap, or until everything is due."""
        due = self._attempted + pause - monotonic()
        try:
            await asyncio.wait_for(self._gap.wait(), timeout=max(due, 0.05))
        except TimeoutError:
            return WATCHED
        await asyncio.sleep(SETTLE_SECONDS)
        self._gap.clear()
        kinds, self._gaps = self._gaps, set()
        return kinds

    async def _heal(self, kinds: Iterable[Kind]) -> None:
        if kinds is WATCHED:
            self._attempted = monotonic()
        for kind in kinds:
            await self._heal_kind(kind)
        if kinds is WATCHED:
            self.last_success = monotonic()

    async def _heal_kind(self, kind: Kind) -> None:
        known = self._picture.newest(kind)
        try:
            listing = await self._reader.list_all(kind)
        except NotFound:
            if kind not in OPTIONAL:
                raise
            await self._do_without(kind)
            return
        self._served.note(kind, True)
        version = number(listing.resource_version)
        if known is not None and version is not None and version < known:
            vanished = self._picture.rebuild(kind, listing.items, listing.resource_version)
            self._go_back(kind, known, version)
        else:
            vanished = self._picture.heal(kind, listing.items, listing.resource_version)
        self._listed_at[kind] = listing.resource_version
        if version is not None:
            self._echoes.heard(kind, version)
            if version >= self._deaf.get(kind, 0):
                self._deaf.pop(kind, None)
        if vanished:
            self._metrics.vanished.labels(kind.name).inc(vanished)
            log.info("vanished_unseen", kind=kind.name, objects=vanished)

    async def _do_without(self, kind: Kind) -> None:
        """There is no such kind, unless an API server that has just started does not know of it yet."""
        if await self._reader.is_served(kind):
            log.warning("list_failed", kind=kind.name, error="not found, although it is served")
            return
        self._served.note(kind, False)
        self._listed_at.pop(kind, None)
        self._picture.heal(kind, (), "")

    def _go_back(self, kind: Kind, known: int, version: int) -> None:
        """A list is older than what was seen before it was asked for: the cluster was restored (etcd).

        What was seen since is not so: everything is read anew, and whoever waits for newer versions
        than there are begins anew.
        """
        log.error("cluster_went_back", kind=kind.name, seen=known, listed=version)
        self._echoes.go_back(kind, version)
        if kind not in STREAMED:
            self._deaf[kind] = known
        self._gone_back(kind)
        self._gaps.update(each for each in WATCHED if each is not kind)
        self._gap.set()
