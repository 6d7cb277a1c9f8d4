"""The devices taken so far in one attempt: taking one, and giving it back exactly."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.core.board import Board, PooledCounter
from dovetail.core.capacity import fits_beside
from dovetail.core.constraints import State, admitted, after
from dovetail.core.groups import Companions, joined
from dovetail.core.refusals import Cause
from dovetail.core.requests import Alternative
from dovetail.core.usage import Usage

_NOTHING: Mapping[str, int] = {}


class BrokenDevice(Exception):
    """The search came upon a device that cannot be judged; the claim cannot be allocated."""

    def __init__(self, claim: int, reason: str, number: int) -> None:
        super().__init__(reason)
        self.claim = claim
        self.reason = reason
        self.number = number


class AllRefused(Exception):
    """A constraint refuses one of the devices that make up "all"."""

    def __init__(self, claim: int, reason: str, number: int, constraint: int) -> None:
        super().__init__(reason)
        self.claim = claim
        self.reason = reason
        self.number = number
        self.constraint = constraint


@dataclass(frozen=True, slots=True)
class Chosen:
    """A device taken for an alternative; numbers as on the board."""

    alternative: int
    device: int


@dataclass(slots=True)
class _Taken:
    """What taking a device changed, as it was before."""

    chosen: Chosen
    claim: int
    claimed: int
    states: tuple[State, ...]
    companions: tuple[tuple[tuple[int, str], Companions | None], ...] = ()
    paid: tuple[tuple[PooledCounter, int], ...] = ()
    is_share: bool = False


@dataclass(slots=True, eq=False)
class Attempt:
    """The state of one search. `usages` are those of the node's pools, `starts` as in the offer."""

    board: Board
    usages: tuple[Usage, ...]
    starts: tuple[int, ...]
    free: int = field(init=False)
    """Devices that nobody outside holds exclusively."""
    shared_outside: int = field(init=False)
    claimed: list[int] = field(init=False)
    """Devices that each claim of the attempt has, shared ones left out."""
    states: list[State] = field(init=False)
    """What each constraint knows."""
    shares: dict[int, list[Mapping[str, int]]] = field(default_factory=dict)
    """The amounts of each share that was taken, by device; those with admin access count nothing."""
    results: list[list[Chosen]] = field(init=False)
    """What each claim has, in the order of taking."""
    _left: dict[PooledCounter, int] = field(init=False)
    _companions: dict[tuple[int, str], Companions] = field(init=False)
    _taken: list[_Taken] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = self.shared_outside = 0
        for usage, start in zip(self.usages, self.starts, strict=True):
            self.free |= usage.free << start
            self.shared_outside |= usage.shared << start
        self.claimed = [0] * len(self.board.asked.claims)
        self.states = [None] * len(self.board.asked.constraints)
        self.results = [[] for _ in self.board.asked.claims]
        self._left = {
            (pool, key): left for pool, usage in enumerate(self.usages) for key, left in usage.left.items()
        }
        self._companions = {
            (pool, name): companions
            for pool, usage in enumerate(self.usages)
            for name, companions in usage.companions.items()
        }

    @property
    def used(self) -> int:
        """Devices that the attempt took, shared ones left out."""
        mask = 0
        for claimed in self.claimed:
            mask |= claimed
        return mask

    def available(self, alternative: Alternative) -> int:
        """Devices that are not in use, as far as the alternative minds (allocation-rules 2.2)."""
        if alternative.admin:
            return ~self.claimed[alternative.claim]
        return self.free & ~self.used

    def left(self, counter: PooledCounter) -> int:
        """What is left of a counter."""
        return self._left.get(counter, 0)

    def admitted(self, alternative: Alternative) -> int:
        """Devices that all constraints over the alternative admit next."""
        mask, constraints = -1, self.board.asked.constraints
        for number in alternative.constraints:
            values = self.board.values[number, alternative.number]
            mask &= admitted(values, self.states[number], distinct=constraints[number].distinct)
        return mask

    def take(self, alternative: Alternative, number: int, *, must: bool) -> bool:
        """Take a usable device, unless counters, groups, capacity or constraints are against it.

        `must` says that no other device would do, so that a constraint's refusal is an error.
        """
        taken = _Taken(
            Chosen(alternative.number, number),
            alternative.claim,
            self.claimed[alternative.claim],
            tuple(self.states[constraint] for constraint in alternative.constraints),
        )
        is_shared = bool(self.board.sharing >> number & 1)
        amounts = self._amounts(alternative, number) if is_shared else _NOTHING
        has_room = not is_shared or alternative.admin or self._has_room(number, amounts)
        # Where all devices are wanted, upstream asks for room last, so that a constraint's error comes first.
        if not has_room and not must:
            return False
        if not alternative.admin and not self._pay(taken, number, is_shared=is_shared):
            return False
        if not self._constrain(alternative, number, must=must) or not has_room:
            self._undo(taken)
            return False
        if is_shared:
            if not alternative.admin:
                taken.is_share = True
                self.shares.setdefault(number, []).append(amounts)
        else:
            self.claimed[alternative.claim] |= 1 << number
        self.results[alternative.claim].append(taken.chosen)
        self._taken.append(taken)
        return True

    def obstacle(self, alternative: Alternative, number: int) -> Cause:
        """What keeps a device from being taken that selectors, taints and constraints would let pass."""
        if self.board.sharing >> number & 1 and not self._has_room(
            number, self._amounts(alternative, number)
        ):
            return Cause.NO_CAPACITY
        costs = self.board.costs.get(number, ())
        if any(self.left(counter) < amount for counter, amount in costs):
            return Cause.NO_COUNTERS
        return Cause.INCOMPATIBLE

    def give_back(self) -> Chosen:
        """Undo the newest `take`."""
        taken = self._taken.pop()
        self.results[taken.claim].pop()
        if taken.is_share:
            number = taken.chosen.device
            self.shares[number].pop()
            if not self.shares[number]:
                del self.shares[number]
        self._undo(taken)
        return taken.chosen

    def _amounts(self, alternative: Alternative, number: int) -> Mapping[str, int]:
        taking = self.board.takings.get((alternative.number, number))
        return _NOTHING if taking is None else taking.nano

    def _has_room(self, number: int, amounts: Mapping[str, int]) -> bool:
        pool, position = self._locate(number)
        outside = self.usages[pool].consumed.get(position, _NOTHING)
        return fits_beside(self.board.devices[number], amounts, outside, *self.shares.get(number, ()))

    def _pay(self, taken: _Taken, number: int, *, is_shared: bool) -> bool:
        """Take counters and join groups; a further share of a device costs nothing (allocation-rules 2.5)."""
        costs = self.board.costs.get(number)
        if costs is None or (is_shared and (number in self.shares or self.shared_outside >> number & 1)):
            return True
        if not self._join(taken, number):
            return False
        paid: dict[PooledCounter, int] = {}
        for counter, amount in costs:
            paid[counter] = paid.get(counter, 0) + amount
        if any(self._left.get(counter, 0) < amount for counter, amount in paid.items()):
            self._undo(taken)
            return False
        taken.paid = tuple(paid.items())
        for counter, amount in taken.paid:
            self._left[counter] -= amount
        return True

    def _join(self, taken: _Taken, number: int) -> bool:
        if not self.board.uses_groups:
            return True
        pool, _ = self._locate(number)
        for part in self.board.devices[number].consumes:
            place = (pool, part.counter_set)
            companions = self._companions.get(place)
            if companions is not None and not companions.admits(part.groups):
                self._undo(taken)
                return False
            taken.companions = ((place, companions), *taken.companions)
            self._companions[place] = joined(companions, part.groups)
        return True

    def _constrain(self, alternative: Alternative, number: int, *, must: bool) -> bool:
        for constraint in alternative.constraints:
            values = self.board.values[constraint, alternative.number]
            rule = self.board.asked.constraints[constraint]
            if number in values.broken:
                reason = f"{rule.attribute} of {{device}}: {values.broken[number]}"
                raise BrokenDevice(alternative.claim, reason, number)
            state = self.states[constraint]
            if not admitted(values, state, distinct=rule.distinct) >> number & 1:
                if must:
                    reason = (
                        f"asks for all devices, and its constraint on {rule.attribute} leaves out {{device}}"
                    )
                    raise AllRefused(alternative.claim, reason, number, constraint)
                return False
            self.states[constraint] = after(values, state, number, distinct=rule.distinct)
        return True

    def _undo(self, taken: _Taken) -> None:
        alternative = self.board.asked.alternatives[taken.chosen.alternative]
        self.claimed[taken.claim] = taken.claimed
        for constraint, state in zip(alternative.constraints, taken.states, strict=True):
            self.states[constraint] = state
        for place, companions in taken.companions:
            if companions is None:
                del self._companions[place]
            else:
                self._companions[place] = companions
        for counter, amount in taken.paid:
            self._left[counter] += amount
        taken.companions, taken.paid = (), ()

    def _locate(self, number: int) -> tuple[int, int]:
        for pool in range(len(self.starts) - 1, -1, -1):
            if number >= self.starts[pool]:
                return pool, number - self.starts[pool]
        raise IndexError(number)
