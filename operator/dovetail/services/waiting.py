"""Which pods are to be looked at next: the most urgent first, each once, none in a hot loop."""

import asyncio
import heapq
from collections.abc import Callable, Iterable
from contextlib import suppress

from dovetail.services.picture import Key

Urgency = tuple[int, str, str, str]
"""Sorts by priority (negated), creation time, namespace and name."""

BURST = 8
"""How many looks a pod may have at once before it is slowed down to one per `PAUSE_SECONDS`."""

PAUSE_SECONDS = 1.0

TURN_SECONDS = 1.0
"""How long less urgent pods wait for a more urgent one that is being worked on."""


class Pacer:
    """Lets a key pass `burst` times at once, then once per `pause_seconds`."""

    def __init__(
        self, clock: Callable[[], float], *, burst: int = BURST, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self._clock = clock
        self._burst = burst
        self._pause = pause_seconds
        self._full_at: dict[Key, float] = {}

    def delay(self, key: Key) -> float:
        """Count a pass and return how many seconds it has to wait."""
        now = self._clock()
        earliest = max(self._full_at.get(key, now), now)
        wait = earliest - now - (self._burst - 1) * self._pause
        if wait <= 0:
            self._full_at[key] = earliest + self._pause
        return max(wait, 0.0)

    def forget(self, key: Key) -> None:
        """The key is gone."""
        self._full_at.pop(key, None)


class Waiting:
    """The pods to look at. It belongs to the event loop.

    A key that is marked while it is being worked on comes back when that is done,
    so that one pod is never served twice at a time and no mark is lost.
    """

    def __init__(
        self, urgency: Callable[[Key], Urgency], patience: Callable[[Key], float] = lambda _: 0.0
    ) -> None:
        """`patience` says how many seconds a look may wait, so that one look serves several marks."""
        self._urgency = urgency
        self._patience = patience
        self._heap: list[tuple[Urgency, Key]] = []
        self._marked: set[Key] = set()
        self._busy: set[Key] = set()
        self._again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._held: dict[Key, float] = {}
        self._first: dict[Key, float] = {}
        self._some = asyncio.Event()
        self._pacer = Pacer(lambda: asyncio.get_running_loop().time())

    def __len__(self) -> int:
        return len(self._marked) + len(self._again)

    @property
    def is_idle(self) -> bool:
        """Nothing is marked or under way; timers do not count."""
        return not (self._marked or self._busy or self._again)

    def mark_in_turn(self, keys: Iterable[Key]) -> None:
        """Look at all these pods, in the order of their urgency: something that they wait for may be there.

        One that is being worked on at this moment is waited for, for a short while,
        by the less urgent: else they would get what it has not seen yet.
        """
        until = asyncio.get_running_loop().time() + TURN_SECONDS
        for key in keys:
            if key in self._busy:
                self._first[key] = until
            self.mark(key)

    def mark(self, key: Key) -> None:
        """Look at the pod as soon as possible, or as soon as its patience is over."""
        if key in self._busy:
            self._again.add(key)
        elif key not in self._marked:
            wait = self._rest_of_hold(key) or self._patience(key) or self._pacer.delay(key)
            if wait > 0:
                self.mark_later(key, wait)
            else:
                self._push(key)

    def mark_later(self, key: Key, seconds: float) -> None:
        """Look at the pod after a while, or earlier where it is marked before; the earlier timer wins."""
        loop = asyncio.get_running_loop()
        at = loop.time() + max(seconds, self._rest_of_hold(key))
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= at:
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = loop.call_at(at, self._due, key)

    def hold(self, key: Key, seconds: float) -> None:
        """Look at the pod after a while, and not before, whatever happens: it has failed."""
        self._held[key] = asyncio.get_running_loop().time() + seconds
        self.mark_later(key, seconds)

    def forget(self, key: Key) -> None:
        """The pod is gone."""
        self._held.pop(key, None)
        self._first.pop(key, None)
        self._pacer.forget(key)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    async def next(self) -> Key:
        """The most urgent pod; it is busy until `done` is called."""
        while (turn := self._seconds_until_turn()) != 0.0:
            self._some.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(turn):
                    await self._some.wait()
        _, key = heapq.heappop(self._heap)
        self._marked.discard(key)
        self._busy.add(key)
        return key

    def put_back(self, key: Key) -> None:
        """The pod has not been served: it is still to be looked at."""
        self._busy.discard(key)
        self._again.discard(key)
        self._push(key)

    def done(self, key: Key) -> None:
        """The pod has been served."""
        self._busy.discard(key)
        if self._first.pop(key, None) is not None:
            self._some.set()
        if key in self._again:
            self._again.discard(key)
            self.mark(key)

    def _seconds_until_turn(self) -> float | None:
        """How long the most urgent pod lets busy ones go first that are more urgent still.

        None where there is no pod: only a mark helps.
        """
        if not self._heap:
            return None
        urgency, now = self._heap[0][0], asyncio.get_running_loop().time()
        waits = (until - now for key, until in self._first.items() if self._urgency(key) < urgency)
        return max(0.0, max(waits, default=0.0))

    def _rest_of_hold(self, key: Key) -> float:
        until = self._held.get(key)
        if until is None:
            return 0.0
        rest = until - asyncio.get_running_loop().time()
        if rest <= 0:
            del self._held[key]
        return max(rest, 0.0)

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        if key in self._busy:
            self._again.add(key)
        elif rest := self._rest_of_hold(key):
            self.mark_later(key, rest)
        elif key not in self._marked:
            self._push(key)

    def _push(self, key: Key) -> None:
        self._marked.add(key)
        heapq.heappush(self._heap, (self._urgency(key), key))
        self._some.set()
