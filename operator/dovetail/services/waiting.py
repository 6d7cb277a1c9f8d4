"""Which pods are to be looked at next: the most urgent first, each once, none in a hot loop.

Namespaces share: how each stands is asked for anew at every choice, and none takes the last workers.
"""

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress

from dovetail.core.shares import FRESH, Standing
from dovetail.services.picture import Key

Urgency = tuple[int, str, str, str]
"""Sorts by priority (negated), creation time, namespace and name."""

Place = tuple[int, int, str, str, str]
"""Sorts pods of one namespace: by priority, what the pod itself has used, and age."""

Rank = tuple[int, int, int, int, str, str, str]
"""Sorts pods of all namespaces: by waste, then by priority, use of the namespace, and as above."""

CROWD = 3
"""One namespace may keep so many workers busy for each one that is free: of 48 it never gets the last 12."""

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


def account_of(key: Key) -> str:
    """Under which name is counted what a pod has used; that of a namespace has no slash."""
    return "/".join(key)


def rank_of(place: Place, standing: Standing) -> Rank:
    """Where a pod stands among those of all namespaces."""
    return (standing.waste, place[0], standing.level, *place[1:])


class Waiting:
    """The pods to look at. It belongs to the event loop.

    A key that is marked while it is being worked on comes back when that is done,
    so that one pod is never served twice at a time and no mark is lost.
    """

    def __init__(
        self,
        urgency: Callable[[Key], Urgency],
        patience: Callable[[Key], float] = lambda _: 0.0,
        *,
        standing: Callable[[str], Standing] = lambda _: FRESH,
        workers: int = 1 << 16,
    ) -> None:
        """`patience` says how many seconds a look may wait, so that one look serves several marks.

        `standing` says how a namespace, or one pod (`account_of`), stands;
        `workers` is how many pods may be busy at a time.
        """
        self._urgency = urgency
        self._patience = patience
        self._standing = standing
        self._workers = workers
        self._heaps: dict[str, list[tuple[Place, Key]]] = {}
        self._crowds: Counter[str] = Counter()
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

    def rank(self, key: Key) -> Rank:
        """Where the pod stands at this moment."""
        return rank_of(self._place(key), self._standing(key[0]))

    def mark_in_turn(self, keys: Iterable[Key]) -> None:
        """Look at all these pods, in the order of their urgency: something that they wait for may be there.

        One that is being worked on at this moment is waited for, for a short while,
        by the less urgent: else they would get what it has not seen yet.
        """
        until = asyncio.get_running_loop().time() + TURN_SECONDS
        for key in keys:
            if key in self._busy:
                # News that keeps coming does not make the others wait for ever.
                self._first.setdefault(key, until)
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
        _, namespace = min(self._heads())
        heap = self._heaps[namespace]
        _, key = heapq.heappop(heap)
        if not heap:
            del self._heaps[namespace]
        self._marked.discard(key)
        self._busy.add(key)
        self._crowds[namespace] += 1
        return key

    def put_back(self, key: Key) -> None:
        """The pod has not been served: it is still to be looked at."""
        self._leave(key)
        self._again.discard(key)
        self._push(key)

    def done(self, key: Key) -> None:
        """The pod has been served."""
        self._leave(key)
        self._first.pop(key, None)
        self._some.set()
        if key in self._again:
            self._again.discard(key)
            self.mark(key)

    def _seconds_until_turn(self) -> float | None:
        """How long the most urgent pod lets busy ones go first that are more urgent still.

        None where there is no pod: only a mark helps.
        """
        best = min(self._heads(), default=None)
        if best is None:
            return None
        now = asyncio.get_running_loop().time()
        waits = (until - now for key, until in self._first.items() if self.rank(key) < best[0])
        return max(0.0, max(waits, default=0.0))

    def _heads(self) -> Iterable[tuple[Rank, str]]:
        """The most urgent pod of each namespace that may have one more worker."""
        most = max(1, CROWD * (self._workers - len(self._busy) - 1))
        for namespace, heap in self._heaps.items():
            if self._crowds[namespace] < most:
                yield rank_of(heap[0][0], self._standing(namespace)), namespace

    def _place(self, key: Key) -> Place:
        priority, created, namespace, name = self._urgency(key)
        return (priority, self._standing(account_of(key)).level, created, namespace, name)

    def _leave(self, key: Key) -> None:
        self._busy.discard(key)
        self._crowds[key[0]] -= 1
        if self._crowds[key[0]] <= 0:
            del self._crowds[key[0]]

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
        heapq.heappush(self._heaps.setdefault(key[0], []), (self._place(key), key))
        self._some.set()
