"""Whose decision comes next: a few are with the mind at a time, and of the rest the first in rank follows."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from dovetail.services.picture import Key
from dovetail.services.waiting import Rank

AT_ONCE = 2
"""One is decided about, the next one waits for the thread, so that it never waits for the event loop."""


class Turns:
    """Lets decisions through in the order of their rank, whoever asked first."""

    def __init__(self, rank: Callable[[Key], Rank]) -> None:
        self._rank = rank
        self._free = AT_ONCE
        self._waiting: list[tuple[Key, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, key: Key) -> AsyncIterator[None]:
        """Wait for the pod's turn, and keep it while the block lasts."""
        await self._enter(key)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, key: Key) -> None:
        if self._free:
            self._free -= 1
            return
        mine = (key, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        try:
            await mine[1]
        except asyncio.CancelledError:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:
                self._leave()
            raise

    def _leave(self) -> None:
        if not self._waiting:
            self._free += 1
            return
        first = min(self._waiting, key=lambda waiter: self._rank(waiter[0]))
        self._waiting.remove(first)
        first[1].set_result(None)
