"""Complete lists: before the first decision, after every gap of a watch, and every few minutes."""

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic

import structlog

from dovetail.api.kinds import OPTIONAL, WATCHED, Kind
from dovetail.cluster.reader import Reader
from dovetail.errors import ClusterError, NotFound
from dovetail.services.echoes import Echoes
from dovetail.services.metrics import Metrics
from dovetail.services.picture import Json, Picture

log = structlog.get_logger(__name__)

SETTLE_SECONDS = 0.3
"""A relist of a watch arrives object by object: one list after the last of them is enough."""

SECOND_LOOK_SECONDS = 5.0
"""What vanished between our first list and the watch's own first list is found by a second one."""

RETRY_SECONDS = 5.0


class Healing:
    """Keeps the picture true where watches cannot."""

    def __init__(
        self,
        *,
        reader: Reader,
        picture: Picture,
        echoes: Echoes,
        metrics: Metrics,
        resync_seconds: float,
    ) -> None:
        self._reader = reader
        self._picture = picture
        self._echoes = echoes
        self._metrics = metrics
        self._resync = resync_seconds
        self._healed: Callable[[], None] = lambda: None
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
        """Compare one kind with a complete list, and return the version of the list."""
        await self._heal_kind(kind)
        return self._listed_at[kind]

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
                pause = self._resync
                if kinds is WATCHED:
                    self._healed()
            except ClusterError as error:
                log.warning("list_failed", error=str(error))
                self._attempted = monotonic()
                pause = min(RETRY_SECONDS, self._resync)

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
        try:
            listing = await self._reader.list_all(kind)
        except NotFound:
            if kind not in OPTIONAL:
                raise
            self._picture.heal(kind, (), "")
            return
        items: tuple[Json, ...] = listing.items
        vanished = self._picture.heal(kind, items, listing.resource_version)
        self._listed_at[kind] = listing.resource_version
        if listing.resource_version.isdecimal():
            self._echoes.heard(kind, int(listing.resource_version))
        if vanished:
            self._metrics.vanished.labels(kind.name).inc(vanished)
            log.info("vanished_unseen", kind=kind.name, objects=vanished)
