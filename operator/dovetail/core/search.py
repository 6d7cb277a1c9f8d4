"""First fit: the first assignment in kube-scheduler's order, found without trying what cannot work.

Claims, requests and devices are tried in order, devices of a request as combinations (allocation-rules 2.2).
What is passed over contains no solution and no error: devices that equal one that failed, states that
failed before, requests that too few devices are left for.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from dovetail.core.attempt import Attempt, BrokenDevice, Chosen
from dovetail.core.board import asked_by, size_of
from dovetail.core.budget import Budget
from dovetail.core.requests import MOST_ALTERNATIVES, Alternative, Asked, Request


@dataclass(frozen=True, slots=True)
class Found:
    """A complete assignment: the devices of each claim in order, the rank of each request's alternative."""

    chosen: tuple[tuple[Chosen, ...], ...]
    ranks: tuple[tuple[int, ...], ...]
    score: int


class _Step(enum.Enum):
    """What came of going on: everything is placed, something failed, or there were too many devices."""

    DONE = enum.auto()
    FAILED = enum.auto()
    TOO_MANY = enum.auto()


@dataclass(slots=True)
class _Cursor:
    """The next thing to decide: a device of an alternative, or first which alternative."""

    claim: int = 0
    request: int = 0
    alternative: Alternative | None = None
    index: int = 0
    start: int = 0


@dataclass(slots=True)
class _DeviceChoice:
    """A device to be chosen; `rest` are the candidates that were not tried."""

    alternative: Alternative
    index: int
    rest: int
    boundary: object = None
    failed: set[int] = field(default_factory=set)

    @property
    def claim(self) -> int:
        return self.alternative.claim


@dataclass(slots=True)
class _RankChoice:
    """An alternative to be chosen."""

    claim: int
    request: int
    options: Request
    boundary: object = None
    rank: int = 0
    only_too_many: bool = True


class Search:
    """One search over a fresh attempt. `domains` narrows the usable devices of each alternative."""

    def __init__(self, attempt: Attempt, budget: Budget, domains: tuple[int, ...] | None = None) -> None:
        self._attempt = attempt
        self._board = attempt.board
        self._claims = attempt.board.asked.claims
        self._budget = budget
        self._domains = domains or tuple(board.usable for board in attempt.board.alternatives)
        self._choices: list[_DeviceChoice | _RankChoice] = []
        self._cursor = _Cursor()
        self._boundary: object = None
        self._dead: set[object] = set()
        self._ahead: dict[tuple[int, int], tuple[int, ...]] = {}
        board = attempt.board
        self._remembers = not board.is_ordered and not any(a.admin for a in board.asked.alternatives)
        self._weights: dict[int, int] = {}
        self._dearest = max(map(len, board.costs.values()), default=0) // 8
        self.failures = 0

    def run(self, failures: int | None = None) -> Found | None:
        """The first solution, or None where there is none.

        Raises `BudgetSpent`, and what `Attempt.take` raises.
        With a limit on failures the answer None may also mean that the limit was reached: see `is_over`.
        """
        while True:
            step = self._go_on()
            if step is _Step.DONE:
                return self._found()
            self.failures += 1
            if failures is not None and self.failures > failures:
                return None
            if not self._turn_back(too_many=step is _Step.TOO_MANY):
                self._choices.clear()
                return None

    @property
    def is_over(self) -> bool:
        """Whether everything was tried."""
        return not self._choices

    # -- going on --------------------------------------------------------------------------------

    def _go_on(self) -> _Step:
        while True:
            cursor = self._cursor
            if cursor.claim == len(self._claims):
                return _Step.DONE
            claim = self._claims[cursor.claim]
            if cursor.request == len(claim.requests):
                self._enter(_Cursor(cursor.claim + 1))
            elif cursor.alternative is None:
                if self.failures and not self._is_promising():
                    return _Step.FAILED
                self._open(claim.requests[cursor.request])
            else:
                step = self._choose(cursor, cursor.alternative)
                if step is not None:
                    return step

    def _enter(self, cursor: _Cursor) -> None:
        self._cursor = cursor
        self._boundary = None

    def _open(self, request: Request) -> None:
        cursor = self._cursor
        if request.has_alternatives:
            self._choices.append(_RankChoice(cursor.claim, cursor.request, request, self._boundary))
            self._boundary = None
        self._cursor = _Cursor(cursor.claim, cursor.request, request.alternatives[0])

    def _choose(self, cursor: _Cursor, alternative: Alternative) -> _Step | None:
        """Take the next device of an alternative, or go on to the next request; None where that worked."""
        size = size_of(alternative, self._board.alternatives[alternative.number])
        if alternative.wanted is None and size == 0:
            return _Step.FAILED
        if cursor.index >= size:
            self._enter(_Cursor(cursor.claim, cursor.request + 1))
            return None
        if size - cursor.index > self._board.most_results - len(self._attempt.results[cursor.claim]):
            return _Step.TOO_MANY
        rest = self._candidates(alternative, cursor.index, cursor.start)
        choice = _DeviceChoice(alternative, cursor.index, rest, self._boundary)
        if not self._are_enough(choice, size - cursor.index) or not self._try(choice):
            self._note_dead(choice.boundary)
            return _Step.FAILED
        self._choices.append(choice)
        return None

    def _are_enough(self, choice: _DeviceChoice, wanted: int) -> bool:
        if self._board.is_delicate or choice.alternative.wanted is None:
            return True
        return choice.rest.bit_count() >= wanted

    def _candidates(self, alternative: Alternative, index: int, start: int) -> int:
        """The devices to try, in the order of their numbers."""
        self._budget.look(self._weight(alternative))
        board, attempt = self._board.alternatives[alternative.number], self._attempt
        available = attempt.available(alternative)
        if alternative.wanted is None:
            return board.usable & available & 1 << board.all[index]
        if self._board.is_delicate:
            broken = sum(1 << number for number in board.broken)
            return (board.usable | broken) & available & -1 << start
        domain = self._domains[alternative.number]
        return domain & available & attempt.admitted(alternative) & -1 << start

    def _try(self, choice: _DeviceChoice) -> bool:
        """Take the first candidate that works, and go on behind it."""
        attempt, alternative = self._attempt, choice.alternative
        weight = self._weight(alternative)
        while choice.rest:
            lowest = choice.rest & -choice.rest
            number = lowest.bit_length() - 1
            choice.rest ^= lowest
            if self._kind(number) in choice.failed and not self._is_special(number):
                continue
            self._budget.spend()
            if weight > 1:
                self._budget.look(weight)
            if number in (broken := self._board.alternatives[alternative.number].broken):
                raise BrokenDevice(alternative.claim, asked_by(alternative, broken[number]), number)
            if attempt.take(alternative, number, must=alternative.wanted is None):
                self._cursor = _Cursor(
                    alternative.claim, alternative.request, alternative, choice.index + 1, number + 1
                )
                self._boundary = None
                return True
            self._note_failed(choice, number)
        return False

    def _weight(self, alternative: Alternative) -> int:
        """What looking at a device can cost: it grows with the values of constraints, and with counters."""
        weight = self._weights.get(alternative.number)
        if weight is None:
            values = self._board.values
            many = sum(len(values[rule, alternative.number].groups) for rule in alternative.constraints)
            weight = self._weights[alternative.number] = 1 + many // 64 + self._dearest
        return weight

    def _is_special(self, number: int) -> bool:
        """Whether the device differs from its equals by what is in use of it."""
        return bool(self._attempt.shared_outside >> number & 1) or number in self._attempt.shares

    def _note_failed(self, choice: _DeviceChoice, number: int) -> None:
        if not self._board.is_ordered and not self._is_special(number):
            choice.failed.add(self._kind(number))

    def _kind(self, number: int) -> int:
        """Equal for interchangeable devices: for administrators, one in use is not like one that is free."""
        return self._board.profiles[number] << 1 | (self._attempt.free >> number & 1)

    # -- turning back ----------------------------------------------------------------------------

    def _turn_back(self, *, too_many: bool) -> bool:
        """Undo the newest decision that has another way to go, and go it.

        Too many devices is the fault of alternatives, so single devices are not tried again;
        it does not reach beyond the claim (allocation-rules 2.2).
        """
        claim = self._cursor.claim
        while self._choices:
            choice = self._choices[-1]
            too_many = too_many and choice.claim == claim
            if isinstance(choice, _RankChoice):
                if self._next_rank(choice, too_many=too_many):
                    return True
                too_many = choice.only_too_many
            else:
                chosen = self._attempt.give_back()
                if not too_many:
                    self._note_failed(choice, chosen.device)
                    if self._try(choice):
                        return True
            self._choices.pop()
            if not too_many:
                self._note_dead(choice.boundary)
        return False

    def _next_rank(self, choice: _RankChoice, *, too_many: bool) -> bool:
        choice.only_too_many = choice.only_too_many and too_many
        choice.rank += 1
        if choice.rank == len(choice.options.alternatives):
            return False
        self._cursor = _Cursor(choice.claim, choice.request, choice.options.alternatives[choice.rank])
        self._boundary = None
        return True

    # -- what is known to fail -------------------------------------------------------------------

    def _is_promising(self) -> bool:
        """Whether the requests to come may still be served: not so in a state that failed before."""
        if not self._remembers:
            return True
        self._boundary = self._state()
        if self._boundary in self._dead:
            return False
        return self._board.is_delicate or all(
            map(self._has_enough, self._claims[self._cursor.claim].requests)
        )

    def _has_enough(self, request: Request) -> bool:
        alternative = request.alternatives[0]
        if request.has_alternatives or alternative.wanted is None:
            return True
        if alternative.request < self._cursor.request:
            return True
        return self._candidates(alternative, 0, 0).bit_count() >= alternative.wanted

    def _state(self) -> object:
        """What matters of the decisions so far; devices that are interchangeable only count."""
        attempt, profiles = self._attempt, self._board.profiles
        counts: dict[int, int] = {}
        used = attempt.used
        while used:
            lowest = used & -used
            profile = profiles[lowest.bit_length() - 1]
            counts[profile] = counts.get(profile, 0) + 1
            used ^= lowest
        shares = tuple(
            (number, tuple(tuple(sorted(amounts.items())) for amounts in shares))
            for number, shares in sorted(attempt.shares.items())
        )
        results = len(attempt.results[self._cursor.claim])
        position = (self._cursor.claim, self._cursor.request, results)
        states = tuple(attempt.states[number] for number in self._constraints_ahead())
        return (position, tuple(sorted(counts.items())), shares, states)

    def _constraints_ahead(self) -> tuple[int, ...]:
        """The constraints that have a say in the rest of the claim."""
        place = (self._cursor.claim, self._cursor.request)
        known = self._ahead.get(place)
        if known is None:
            ahead = self._claims[place[0]].requests[place[1] :]
            numbers = {n for request in ahead for option in request.alternatives for n in option.constraints}
            known = self._ahead[place] = tuple(sorted(numbers))
        return known

    def _note_dead(self, boundary: object) -> None:
        if boundary is not None:
            self._dead.add(boundary)

    # -- the end ---------------------------------------------------------------------------------

    def _found(self) -> Found:
        ranks = {(c.claim, c.request): c.rank for c in self._choices if isinstance(c, _RankChoice)}
        chosen = tuple(map(tuple, self._attempt.results))
        per_claim = tuple(
            tuple(ranks.get((index, request), 0) for request in range(len(claim.requests)))
            for index, claim in enumerate(self._claims)
        )
        return Found(chosen, per_claim, score_of(ranks.values()))


def score_of(ranks: Iterable[int]) -> int:
    """The points of an assignment: 8 for each first choice, down to 1 (allocation-rules 2.6)."""
    return sum(MOST_ALTERNATIVES - rank for rank in ranks)


def most_points(asked: Asked) -> int:
    """The points if every request got its first choice."""
    return score_of(0 for claim in asked.claims for request in claim.requests if request.has_alternatives)
