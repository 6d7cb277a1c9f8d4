"""Searches for devices that do not end quickly: they cost their own pods time, and nobody else's.

A search is first tried briefly: how briefly, the allowance for such searches says (`core/allowance.py`).
One that is cut goes on at length when its turn has come: one such search runs at a time, and after one that
was cut again nine times its duration belongs to others.
Turns go to the namespace that has used least, then to the one that waits longest; in it to the pod that has
used least.
In between nothing brings the pod back but a change that its claims could use, and that not at any rate.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from dovetail.core.allowance import BRIEF_SECONDS
from dovetail.core.changes import Change
from dovetail.services.picture import Key
from dovetail.services.waiting import Rank

REST = 9.0
"""After a search that was cut others have so many times its duration: cut searches get a tenth."""

CUT_PAUSE_SECONDS = 5.0
LONGEST_CUT_PAUSE_SECONDS = 300.0

SHORTEST_PAUSE_SECONDS = 1.0
"""However much changes, a pod that was cut is left alone for so long."""

TURN_SECONDS = 10.0
"""How long a turn stays with a pod that does not use it."""


@dataclass(slots=True)
class _Cut:
    """A pod whose search was cut. `state` is what of the pod and its claims matters for the search."""

    state: object
    due: float
    ended: float
    cost: float = 0.0
    cuts: int = 0
    spent: float = 0.0
    nodes: Collection[str] = field(default=frozenset(), repr=False)
    """The nodes that the pod could use when it was cut."""

    @property
    def pause(self) -> float:
        """How long the pod is left alone, whatever changes."""
        return max(SHORTEST_PAUSE_SECONDS, REST * self.cost)


class Searches:
    """Says how long the search for a pod may take now. It belongs to the event loop."""

    def __init__(
        self, *, clock: Callable[[], float], rank: Callable[[Key], Rank], mark: Callable[[Key], None]
    ) -> None:
        self._clock = clock
        self._rank = rank
        self._mark = mark
        self._cuts: dict[Key, _Cut] = {}
        self._used: defaultdict[str, float] = defaultdict(float)
        """Seconds of long searches, by namespace, while any pod is here.

        A namespace keeps what it has used when its pods go: others do not gain by making pods anew.
        """
        self._free_at = 0.0
        self._turn: tuple[Key, float] | None = None
        self._running: Key | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def cut(self) -> Collection[Key]:
        """The pods whose searches were cut: they come back in their own time."""
        return self._cuts.keys()

    def may_take(self, key: Key, state: object) -> float:
        """How many seconds of CPU time a search may take at most: 0 for not now; infinite for a long one."""
        known = self._cuts.get(key)
        if known is not None and known.state != state:
            self.forget(key)
            known = None
        if known is None:
            return BRIEF_SECONDS
        if self._turn is None or self._turn[0] != key:
            self._give_turn()
        if self._running is not None or self._turn is None or self._turn[0] != key:
            return 0.0
        self._turn, self._running = None, key
        return inf

    def was_brief(self, key: Key, state: object) -> None:
        """The brief search was not enough."""
        now = self._clock()
        self._enter(key, _Cut(state, due=now, ended=now))
        self._wake()

    def was_cut(self, key: Key, state: object, seconds: float) -> None:
        """A search has used its whole budget in vain."""
        now = self._clock()
        known = self._cuts.get(key)
        if known is None:
            known = _Cut(state, due=now, ended=now)
            self._enter(key, known)
        known.cuts += 1
        known.cost, known.ended = seconds, now
        known.spent += seconds
        self._used[key[0]] += seconds
        known.due = now + min(CUT_PAUSE_SECONDS * 2 ** (known.cuts - 1), LONGEST_CUT_PAUSE_SECONDS)
        self._over(key, now + REST * seconds)

    def was_answered(self, key: Key, seconds: float) -> None:
        """A search has come to an end."""
        was_long = self._running == key
        self._drop(key)
        if was_long:
            self._over(key, self._clock() + seconds)

    def was_not_made(self, key: Key) -> None:
        """Nothing was searched, after all."""
        if self._running == key:
            self._over(key, self._free_at)

    def saw(self, key: Key, nodes: Collection[str]) -> None:
        """These nodes the pod could use when it was cut."""
        if key in self._cuts:
            self._cuts[key].nodes = nodes

    def views(self) -> tuple[tuple[Key, Collection[str]], ...]:
        """The pods whose searches were cut, each with the nodes that it could use then."""
        return tuple((key, cut.nodes) for key, cut in self._cuts.items())

    def hear(self, keys: Iterable[Key]) -> None:
        """Something has changed that these pods could use: they come back earlier."""
        now = self._clock()
        for key in keys:
            if (cut := self._cuts.get(key)) is not None:
                cut.due = min(cut.due, max(now, cut.ended + cut.pause))
        self._wake()

    def forget(self, key: Key) -> None:
        """The pod is gone, or another one."""
        self._drop(key)
        if self._turn is not None and self._turn[0] == key:
            self._turn = None
            self._wake()

    def _enter(self, key: Key, cut: _Cut) -> None:
        here = {namespace for namespace, _ in self._cuts}
        if key[0] not in here:
            # Who comes late has no claim on the time before.
            least = min((self._used[namespace] for namespace in here), default=0.0)
            self._used[key[0]] = max(self._used[key[0]], least)
            for namespace in [each for each, used in self._used.items() if used <= least]:
                if namespace not in here and namespace != key[0]:
                    del self._used[namespace]
        self._cuts[key] = cut

    def _drop(self, key: Key) -> None:
        self._cuts.pop(key, None)
        if not self._cuts:
            self._used.clear()

    def _over(self, key: Key, free_at: float) -> None:
        self._free_at = max(self._free_at, free_at)
        if self._running == key:
            self._running = None
        self._wake()

    def _give_turn(self) -> None:
        """Give the turn to a pod that is due, if nobody has it."""
        now = self._clock()
        if self._turn is not None and self._turn[1] <= now:
            # It cannot be decided about at present, and is tried briefly when it can.
            self._drop(self._turn[0])
            self._turn = None
        if self._turn is not None or self._running is not None or now < self._free_at:
            return
        due = [key for key, cut in self._cuts.items() if cut.due <= now]
        if due:
            self._turn = (self._first_of(due), now + TURN_SECONDS)

    def _first_of(self, due: Iterable[Key]) -> Key:
        """Whose turn it is; priority counts within a namespace only."""
        since: dict[str, float] = {}
        for key in due:
            since[key[0]] = min(since.get(key[0], inf), self._cuts[key].due)
        namespace = min(since, key=lambda name: (self._used[name], since[name]))
        return min(
            (key for key in due if key[0] == namespace),
            key=lambda key: (self._cuts[key].spent, self._rank(key)),
        )

    def _wake(self) -> None:
        """Come back when there is a turn to give."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._running is not None or not self._cuts:
            return
        now = self._clock()
        next_due = min(cut.due for cut in self._cuts.values())
        at = self._turn[1] if self._turn is not None else max(self._free_at, next_due)
        self._timer = asyncio.get_running_loop().call_later(max(at - now, 0.0), self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._give_turn()
        if self._turn is not None:
            self._mark(self._turn[0])
        self._wake()


class News:
    """Gathers changes, and asks now and then which of the pods that were cut they could help."""

    PAUSE_SECONDS: Final = 0.5
    MOST: Final = 256
    """Of more changes at once it is not asked whom they concern: they may concern all."""

    def __init__(
        self, searches: Searches, tell: Callable[[tuple[Change, ...]], Coroutine[None, None, None]]
    ) -> None:
        self._searches = searches
        self._tell = tell
        self._changes: list[Change] = []
        self._telling: asyncio.Task[None] | None = None

    def add(self, changes: Iterable[Change]) -> None:
        """Take note; without pods that were cut there is nothing to note."""
        if not self._searches.cut:
            return
        self._changes.extend(changes)
        del self._changes[self.MOST + 1 :]
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell_soon(), name="news for pods that were cut")
            self._telling.add_done_callback(self._told)

    async def _tell_soon(self) -> None:
        await asyncio.sleep(self.PAUSE_SECONDS)
        changes, self._changes = tuple(self._changes), []
        if len(changes) > self.MOST:
            self._searches.hear(tuple(self._searches.cut))
        else:
            await self._tell(changes)

    def _told(self, _: asyncio.Task[None]) -> None:
        self._telling = None
        if self._changes:
            self.add(())
