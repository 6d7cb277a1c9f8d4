"""How far watches have come: when one shows a write of ours, it has shown all earlier writes of others."""

import asyncio
from collections import defaultdict

from dovetail.api.kinds import Kind


class Echoes:
    """Lets a writer wait until the watch of a kind has shown what was written (R-A15).

    A watch reports a kind's changes in order, so whoever wrote before us has been seen by then.
    """

    def __init__(self) -> None:
        self._reached: defaultdict[Kind, int] = defaultdict(int)
        self._waiting: defaultdict[Kind, list[tuple[int, asyncio.Future[None]]]] = defaultdict(list)

    def heard(self, kind: Kind, version: int | None) -> None:
        """A watch reported this version."""
        if version is None or version <= self._reached[kind]:
            return
        self._reached[kind] = version
        still: list[tuple[int, asyncio.Future[None]]] = []
        for wanted, future in self._waiting.pop(kind, []):
            if wanted <= version and not future.done():
                future.set_result(None)
            elif not future.done():
                still.append((wanted, future))
        if still:
            self._waiting[kind] = still

    def go_back(self, kind: Kind, version: int) -> None:
        """The cluster was restored: nothing newer than this version has been shown yet."""
        self._reached[kind] = version

    def has_reached(self, kind: Kind, version: int) -> bool:
        """Whether a watch has come to this version."""
        return version <= self._reached[kind]

    async def await_version(self, kind: Kind, version: int | None, *, seconds: float) -> bool:
        """Wait until a watch has come to this version; False where it has not in time."""
        if version is None or version <= self._reached[kind]:
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[kind].append((version, future))
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            return False
        return True
