"""Which of the pods that wait are asked about next: few at a time, and each of them some day."""

import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from dovetail.core.decisions import ObjectKey

FIRST_REST_SECONDS = 2.0
LONGEST_REST_SECONDS = 60.0
"""For so long a pod that could not be helped leaves its place among the most urgent to others."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pod that waits."""

    pod: ObjectKey
    uid: str
    rank: tuple[int, str, str, str]
    """By priority (negated), age, namespace and name."""
    owed: float = 0.0
    """The seconds for which devices were held in vain for its namespace lately."""
    is_held_for: bool = False
    is_news: bool = False
    """It was refused since it was asked about last."""

    @property
    def turn(self) -> tuple[int, float, tuple[int, str, str, str]]:
        """Sorts by priority, then by what was in vain, then by age."""
        return (self.rank[0], self.owed, self.rank)


@dataclass(slots=True)
class _Try:
    """How often the pod was asked about in vain in a row, and when last."""

    at: float
    vain: int = 0

    def rests(self, now: float) -> bool:
        """Whether it is too early to ask again."""
        return self.vain > 0 and now < self.at + min(
            FIRST_REST_SECONDS * 2.0 ** (min(self.vain, 16) - 1), LONGEST_REST_SECONDS
        )


class Contest:
    """Picks those for which devices are held, half of the others by urgency and half of them in turn.

    A pod that cannot be helped rests from the first half, so that it keeps its place from nobody.
    The second half goes through the namespaces by name, and through each one's pods, whoever rests:
    however many pods that can never be helped come, each pod is asked about after a while.
    """

    def __init__(self) -> None:
        self._tries: dict[str, _Try] = {}
        self._last = ""

    def pick(self, waiting: Collection[Candidate], places: int, now: float) -> list[Candidate]:
        """So many of them at most."""
        known = {each.uid for each in waiting}
        self._tries = {uid: each for uid, each in self._tries.items() if uid in known}
        held = [each for each in waiting if each.is_held_for]
        highest = {each.pod[0]: each.rank[0] for each in held}
        # Beside the pod of its namespace for which devices are held, only one of higher priority counts.
        others = [
            each
            for each in waiting
            if not each.is_held_for and each.rank[0] < highest.get(each.pod[0], each.rank[0] + 1)
        ]
        places = max(places - len(held), 0)
        urgent = self._urgent(others, (places + 1) // 2, now)
        picked = {each.uid for each in urgent}
        rest = [each for each in others if each.uid not in picked]
        return [*held, *urgent, *self._in_turn(rest, places - len(urgent))]

    def tried(self, asked: Iterable[Candidate], helped: Collection[str], now: float) -> None:
        """They have been asked about; `helped` are the UIDs of those that could be helped."""
        for each in asked:
            before = self._tries.get(each.uid)
            vain = 0 if each.uid in helped else (before.vain if before is not None else 0) + 1
            self._tries[each.uid] = _Try(now, vain)

    def _urgent(self, others: Sequence[Candidate], places: int, now: float) -> list[Candidate]:
        """The most urgent ones that do not rest, one of each namespace."""
        first: dict[str, Candidate] = {}
        for each in others:
            there = first.get(each.pod[0])
            if (there is None or each.turn < there.turn) and not self._rests(each, now):
                first[each.pod[0]] = each
        return heapq.nsmallest(places, first.values(), key=lambda each: each.turn)

    def _in_turn(self, others: Sequence[Candidate], places: int) -> list[Candidate]:
        """Of the next namespaces, by name, the pod that was asked about the longest ago."""
        best: dict[str, Candidate] = {}
        for each in others:
            there = best.get(each.pod[0])
            if there is None or self._since(each) < self._since(there):
                best[each.pod[0]] = each
        names = sorted(best)
        after = [name for name in names if name > self._last]
        before = [name for name in names if name <= self._last]
        chosen = list(chain(after, before))[:places]
        if chosen:
            self._last = chosen[-1]
        return [best[name] for name in chosen]

    def _since(self, each: Candidate) -> tuple[bool, float, tuple[int, str, str, str]]:
        tried = self._tries.get(each.uid)
        return (not each.is_news, tried.at if tried is not None else float("-inf"), each.rank)

    def _rests(self, each: Candidate, now: float) -> bool:
        tried = self._tries.get(each.uid)
        return tried is not None and tried.rests(now)
