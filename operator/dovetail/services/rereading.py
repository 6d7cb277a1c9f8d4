"""Seeing what others wrote before us: by the watch of claims where it is quick, by a list where it is not."""

import asyncio
from collections.abc import Callable, Iterable

import structlog

from dovetail.api.kinds import CLAIM
from dovetail.services.echoes import Echoes
from dovetail.services.healing import Healing

log = structlog.get_logger(__name__)

ECHO_SECONDS = 2.0
"""How long the watch of claims may take to show a write of ours before all claims are listed."""

LAGGING_ECHO_SECONDS = 0.2
LAGGING_SECONDS = 30.0
"""A watch that was late is given less time for a while."""

FRESH_SECONDS = 0.5
"""A list that began so long ago still counts as read now."""


class Rereading:
    """Reads all claims again; whoever asks while a list is awaited shares the next one."""

    def __init__(self, *, healing: Healing, echoes: Echoes, clock: Callable[[], float]) -> None:
        self._healing = healing
        self._echoes = echoes
        self._clock = clock
        self._turn = asyncio.Lock()
        self._began = float("-inf")
        self._late_until = float("-inf")

    async def catch_up(self, versions: Iterable[int | None]) -> None:
        """Wait until everything that was written before these versions is in the picture.

        A version that is no number can be waited for by nobody: then all claims are read.
        """
        version = 0
        for each in versions:
            if each is None:
                await self._read(lambda: False)
                return
            version = max(version, each)
        lags = self._clock() < self._late_until
        seconds = LAGGING_ECHO_SECONDS if lags else ECHO_SECONDS
        if await self._echoes.await_version(CLAIM, version, seconds=seconds):
            return
        self._late_until = self._clock() + LAGGING_SECONDS
        log.info("watch_is_late", seconds=seconds)
        await self._read(lambda: self._echoes.has_reached(CLAIM, version))

    async def everything(self) -> None:
        """Read all claims, unless that was done a moment ago."""
        asked = self._clock()
        await self._read(lambda: self._began >= asked - FRESH_SECONDS)

    async def _read(self, is_done: Callable[[], bool]) -> None:
        async with self._turn:
            if is_done():
                return
            began = self._clock()
            await self._healing.list_anew(CLAIM)
            self._began = began
