"""What is to blame where each request finds enough devices and the claims do not fit all the same.

A cause is named only if the claims fit once it is lifted, everything else being as it is.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from dovetail.core.attempt import Chosen
from dovetail.core.board import Board, PooledCounter
from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.groups import Companions, joined
from dovetail.core.offers import NodeOffer
from dovetail.core.refusals import Blame, CapacityLack, CounterLack, GroupLack, Lack, ResultLack
from dovetail.core.relaxing import Lift, Limit, lifted, limits_of, only_claim, steps_of, without_constraints
from dovetail.core.search import Found
from dovetail.core.solving import solve
from dovetail.core.usage import Usage

MOST_LOOKS = 4
"""So many constraints that differ are left out one at a time, and put back one at a time."""

MOST_TRIES = 4
"""So many times a counter is tried with less than was found to do."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A node with claims that did not fit there."""

    board: Board
    usages: tuple[Usage, ...]
    offer: NodeOffer
    budget: Budget

    def found(self, board: Board, lift: Lift | None = None) -> Found | None:
        """What the claims would get under other terms. Raises `BudgetSpent`."""
        usages = self.usages
        if lift is not None:
            board, usages = lifted(board, usages, lift)
        self.budget.spend(steps_of(board))
        answer = solve(board, usages, self.offer.starts, self.budget)
        return answer if isinstance(answer, Found) else None

    def without(self, dropped: Collection[int]) -> Board:
        """The board without some constraints."""
        return without_constraints(self.board, dropped, self.budget, self.offer)


def blame(trial: Trial) -> Blame | None:
    """What is to blame on the node; None where the budget does not suffice to tell."""
    every = sorted({number for a in trial.board.asked.alternatives for number in a.constraints})
    try:
        bare = trial.without(every) if every else trial.board
        if every and trial.found(bare) is not None:
            return _constraints(trial, every)
        return _lacking(trial, bare) or Blame(claims=tuple(_claims_apart(trial)))
    except BudgetSpent:
        return None


def _constraints(trial: Trial, every: Sequence[int]) -> Blame:
    """The claims fit without their constraints: which of these have to go."""
    needed, alike = set(every), _alike(trial, every)
    try:
        alone = tuple(one[0] for one in alike if trial.found(trial.without({one[0]})) is not None)
        if alone:
            return Blame(constraints=alone, any_of=True)
        for group in alike:
            if trial.found(trial.without(needed.difference(group))) is not None:
                needed.difference_update(group)
    except BudgetSpent:
        pass
    return Blame(constraints=tuple(sorted(needed)), any_of=len(needed) == 1)


def _alike(trial: Trial, every: Sequence[int]) -> list[list[int]]:
    """Constraints that look alike, such as those of eight pairs, together: one of them stands for all."""
    looks: dict[object, list[int]] = {}
    for number in every:
        constraint = trial.board.asked.constraints[number]
        look = (constraint.claim, constraint.attribute, constraint.distinct, len(constraint.requests))
        looks.setdefault(look, []).append(number)
    return list(looks.values())[:MOST_LOOKS]


# -- limits ------------------------------------------------------------------------------------------


def _lacking(trial: Trial, bare: Board) -> Blame | None:
    """The fewest limits that have to be lifted, with the constraints as they are if that is possible."""
    limits = limits_of(trial.board)
    for size in range(1, len(limits) + 1):
        for chosen in combinations(limits, size):
            for board in (trial.board, bare) if bare is not trial.board else (trial.board,):
                found = trial.found(board, Lift(chosen))
                if found is not None:
                    lacks = tuple(_lacks(trial, board, found, chosen))
                    return Blame(lacks=lacks, beyond=board is not trial.board)
    return None


def _lacks(trial: Trial, board: Board, found: Found, limits: Sequence[Limit]) -> Iterator[Lack]:
    if Limit.COUNTERS in limits:
        others = [limit for limit in limits if limit is not Limit.COUNTERS]
        yield from _counters(trial, board, found, others)
    chosen = [one for claim in found.chosen for one in claim]
    if Limit.CAPACITY in limits:
        yield from _capacities(trial, chosen)
    if Limit.GROUPS in limits:
        yield GroupLack(tuple(sorted(set(_disputed(trial, chosen)))))
    if Limit.RESULTS in limits:
        yield ResultLack(board.most_results, max(map(len, found.chosen)))


def _counters(trial: Trial, board: Board, found: Found, limits: Sequence[Limit]) -> Iterator[CounterLack]:
    """The counters that the devices overdraw: one alone, and by as little as possible, where that is seen."""
    short = _overdrawn(trial, found)
    for counter in list(short)[:MOST_TRIES] if len(short) > 1 else ():
        other = trial.found(board, Lift(limits, {counter: short[counter]}))
        if other is not None:
            short = {counter: short[counter]}
            break
    if len(short) == 1:
        ((counter, needed),) = short.items()
        for _ in range(MOST_TRIES):
            less = trial.found(board, Lift(limits, {counter: needed - 1}))
            if less is None:
                break
            needed = _overdrawn(trial, less).get(counter, needed)
        short = {counter: needed}
    for (pool, (counter_set, name)), needed in short.items():
        left = trial.usages[pool].left.get((counter_set, name), 0)
        yield CounterLack(trial.offer.pools[pool].key, counter_set, name, left, needed)


def _overdrawn(trial: Trial, found: Found) -> dict[PooledCounter, int]:
    """What the devices take together of each counter of which there is less; a shared device pays once."""
    total: dict[PooledCounter, int] = {}
    for number in sorted({one.device for claim in found.chosen for one in claim if _pays(trial, one)}):
        for counter, amount in trial.board.costs.get(number, ()):
            total[counter] = total.get(counter, 0) + amount
    return {
        (pool, key): amount
        for (pool, key), amount in sorted(total.items())
        if amount > trial.usages[pool].left.get(key, 0)
    }


def _pays(trial: Trial, chosen: Chosen) -> bool:
    if trial.board.asked.alternatives[chosen.alternative].admin:
        return False
    pool, position = _place(trial, chosen.device)
    return not (trial.board.sharing >> chosen.device & 1 and trial.usages[pool].shared >> position & 1)


def _capacities(trial: Trial, chosen: Sequence[Chosen]) -> Iterator[CapacityLack]:
    wanted: dict[tuple[int, str], int] = {}
    for one in chosen:
        taking = trial.board.takings.get((one.alternative, one.device))
        if taking is not None and not trial.board.asked.alternatives[one.alternative].admin:
            for name, amount in taking.nano.items():
                wanted[one.device, name] = wanted.get((one.device, name), 0) + amount
    for (number, name), needed in sorted(wanted.items()):
        pool, position = _place(trial, number)
        in_use = trial.usages[pool].consumed.get(position, {}).get(name, 0)
        left = trial.board.devices[number].capacity[name].value.nano - in_use
        if needed > left:
            yield CapacityLack(trial.offer.key_of(number), name, left, needed)


def _disputed(trial: Trial, chosen: Sequence[Chosen]) -> Iterator[str]:
    """The counter sets whose devices do not go together."""
    known: dict[tuple[int, str], Companions | None] = {
        (pool, name): companions
        for pool, usage in enumerate(trial.usages)
        for name, companions in usage.companions.items()
    }
    for number in sorted({one.device for one in chosen if _pays(trial, one)}):
        pool, _ = _place(trial, number)
        for part in trial.board.devices[number].consumes:
            companions = known.get((pool, part.counter_set))
            if companions is not None and not companions.admits(part.groups):
                yield part.counter_set
            known[pool, part.counter_set] = joined(companions, part.groups)


def _place(trial: Trial, number: int) -> tuple[int, int]:
    pool = max(index for index, start in enumerate(trial.offer.starts) if start <= number)
    return pool, number - trial.offer.starts[pool]


# -- claims ------------------------------------------------------------------------------------------


def _claims_apart(trial: Trial) -> Iterator[int]:
    """All claims, where each fits by itself: they are in each other's way."""
    claims = range(len(trial.board.asked.claims))
    if len(claims) > 1 and all(trial.found(only_claim(trial.board, claim)) for claim in claims):
        yield from claims
