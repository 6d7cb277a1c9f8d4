"""Cheap proofs that nothing fits, and the devices that can be left out of the search (design, section 7).

All bounds hold for every assignment, so the search that follows loses no solution.
Requests with alternatives are left out of all sums, since they may end up anywhere.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dovetail.core.attempt import Attempt
from dovetail.core.board import Board, ValueBoard, size_of
from dovetail.core.budget import Budget
from dovetail.core.masks import bits
from dovetail.core.matching import Demand, shortage
from dovetail.core.requests import Alternative, Constraint
from dovetail.core.sources import Element

Wanted = tuple[Alternative, int]
"""An alternative that must be served, and how many devices it needs."""


@dataclass(slots=True)
class Narrowed:
    """The devices that each alternative may still have, by its number; and what turned out impossible."""

    domains: list[int]
    impossible: bool = False


def glance(attempt: Attempt, budget: Budget) -> Narrowed:
    """What counting tells, whatever the constraints are; for a fresh attempt, and a board not delicate.

    Like all that follows it raises `BudgetSpent` where time is up.
    """
    board = attempt.board
    narrowed = Narrowed([startable(attempt, alternative, budget) for alternative in board.asked.alternatives])
    narrowed.impossible = _is_short(board, narrowed.domains, needed(board))
    return narrowed


def narrow(attempt: Attempt, narrowed: Narrowed, budget: Budget) -> Narrowed:
    """What can be told before any device is chosen, besides what a glance told."""
    board = attempt.board
    before: list[int] = []
    wanted = needed(board)
    scopes = [_scope(board, constraint, wanted) for constraint in board.asked.constraints]
    while before != narrowed.domains and not narrowed.impossible:
        before = list(narrowed.domains)
        for scope in scopes:
            _apply(scope, narrowed, board.sharing, budget)
    if not narrowed.impossible:
        narrowed.impossible = (
            _is_short(board, narrowed.domains, wanted)
            or _bundles_short(board, narrowed.domains, wanted, budget)
            or _counters_short(attempt, narrowed.domains, wanted, budget)
        )
    return narrowed


def needed(board: Board) -> list[Wanted]:
    """The alternatives that must be served, each with its size."""
    return [
        (
            request.alternatives[0],
            size_of(request.alternatives[0], board.alternatives[request.alternatives[0].number]),
        )
        for claim in board.asked.claims
        for request in claim.requests
        if not request.has_alternatives
    ]


def startable(attempt: Attempt, alternative: Alternative, budget: Budget) -> int:
    """The devices that could be taken first: what is left only shrinks while others are taken."""
    board = attempt.board
    mask = board.alternatives[alternative.number].usable & attempt.available(alternative)
    mask &= attempt.admitted(alternative)
    for number in bits(mask):
        if number in board.costs or board.sharing >> number & 1:
            budget.look(_weight(board, number))
            if attempt.take(alternative, number, must=False):
                attempt.give_back()
            else:
                mask &= ~(1 << number)
    return mask


def _weight(board: Board, number: int) -> int:
    """What looking at all counters of a device costs."""
    return 1 + len(board.costs.get(number, ())) // 8


# -- constraints -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Scope:
    """A constraint with the values of the alternatives that it covers, and those that must be served."""

    constraint: Constraint
    covered: Mapping[int, ValueBoard]
    wanted: Sequence[Wanted]


def _scope(board: Board, constraint: Constraint, wanted: Sequence[Wanted]) -> _Scope:
    covered = {number: values for (rule, number), values in board.values.items() if rule == constraint.number}
    return _Scope(constraint, covered, [(a, size) for a, size in wanted if a.number in covered and size])


def _apply(scope: _Scope, narrowed: Narrowed, sharing: int, budget: Budget) -> None:
    budget.look(1 + len(scope.covered))
    if scope.constraint.distinct:
        possible = _distinct_possible(scope.covered, scope.wanted, narrowed.domains, budget)
    else:
        possible = _match(scope.covered, scope.wanted, narrowed.domains, sharing, budget)
    if not possible:
        narrowed.impossible = True


def _match(
    covered: Mapping[int, ValueBoard],
    wanted: Sequence[Wanted],
    domains: list[int],
    sharing: int,
    budget: Budget,
) -> bool:
    """Leave only devices of values that can serve all requests; False where there is none."""
    together = sum(size for _, size in wanted)
    if together < 1:
        return True
    # Requests whose devices get their values from the same source share one board.
    boards = {id(values): values for values in covered.values()}
    elements: set[Element] = set()
    for values in boards.values():
        budget.look(1 + len(values.groups) // 64)
        elements.update(values.groups)
    feasible = [
        element
        for element in elements
        if _can_serve(
            [
                Demand(domains[a.number] & covered[a.number].groups.get(element, 0), size)
                for a, size in wanted
            ],
            sharing,
            budget,
        )
    ]
    is_single = together == 1 and len(covered) == 1
    masks: dict[int, int] = {}
    for known, values in boards.items():
        budget.look(1 + len(feasible) // 64)
        masks[known] = values.lone if is_single else 0
        for element in feasible:
            masks[known] |= values.groups.get(element, 0)
    for number, values in covered.items():
        domains[number] &= masks[id(values)]
    return all(domains[a.number].bit_count() >= size for a, size in wanted)


def _can_serve(demands: Sequence[Demand], sharing: int, budget: Budget) -> bool:
    budget.look(1 + len(demands) // 4)
    if any(demand.devices.bit_count() < demand.size for demand in demands):
        return False
    alone = [demand for demand in demands if not demand.devices & sharing]
    budget.look(sum(demand.size for demand in alone))
    return shortage(alone) is None


def _distinct_possible(
    covered: Mapping[int, ValueBoard], wanted: Sequence[Wanted], domains: list[int], budget: Budget
) -> bool:
    """Whether there are as many values as devices are wanted: each device takes at least one."""
    for a, _ in wanted:
        budget.look(1 + len(covered[a.number].groups) // 64)
    values = {
        element
        for a, _ in wanted
        for element, mask in covered[a.number].groups.items()
        if mask & domains[a.number]
    }
    lone = any(covered[a.number].lone & domains[a.number] for a, _ in wanted)
    return sum(size for _, size in wanted) <= len(values) + lone


# -- all requests together ---------------------------------------------------------------------------


def _is_short(board: Board, domains: Sequence[int], wanted: Sequence[Wanted]) -> bool:
    """Whether the requests together want more devices than there are for them."""
    demands = [
        Demand(domains[a.number], size)
        for a, size in wanted
        if not a.admin and not domains[a.number] & board.sharing
    ]
    too_few = any(domains[a.number].bit_count() < size for a, size in wanted)
    return too_few or shortage(demands) is not None


def _bundles_short(board: Board, domains: Sequence[int], needs: Sequence[Wanted], budget: Budget) -> bool:
    """Whether constraints that ask for the same again and again find too few places for all of them."""
    bundles: dict[object, list[tuple[Constraint, list[Wanted]]]] = {}
    for constraint in board.asked.constraints:
        wanted = [(a, size) for a, size in needs if constraint.number in a.constraints and size]
        if constraint.distinct or not wanted or not _is_bundle(board, domains, wanted):
            continue
        budget.look(1 + len(board.values[constraint.number, wanted[0][0].number].groups) // 8)
        shape = tuple(sorted((domains[a.number], size) for a, size in wanted))
        attribute = tuple(_groups(board, constraint, a) for a, _ in wanted[:1])
        bundles.setdefault((constraint.attribute, shape, attribute), []).append((constraint, wanted))
    return any(_places(board, domains, *same[0]) < len(same) for same in bundles.values() if len(same) > 1)


def _is_bundle(board: Board, domains: Sequence[int], wanted: Iterable[Wanted]) -> bool:
    return all(
        len(a.constraints) == 1 and not a.admin and not domains[a.number] & board.sharing for a, _ in wanted
    )


def _groups(board: Board, constraint: Constraint, alternative: Alternative) -> object:
    groups = board.values[constraint.number, alternative.number].groups
    return tuple(sorted(groups.items(), key=repr))


def _places(board: Board, domains: Sequence[int], constraint: Constraint, wanted: Iterable[Wanted]) -> int:
    """How many times the values have room for one bundle, each value for itself."""
    sizes: dict[int, int] = {}
    for alternative, size in wanted:
        sizes[domains[alternative.number]] = sizes.get(domains[alternative.number], 0) + size
    any_alternative = next(a for a, _ in wanted)
    groups = board.values[constraint.number, any_alternative.number].groups
    return sum(
        min((domain & mask).bit_count() // size for domain, size in sizes.items()) for mask in groups.values()
    )


# -- counters ----------------------------------------------------------------------------------------


def _counters_short(
    attempt: Attempt, domains: Sequence[int], wanted: Sequence[Wanted], budget: Budget
) -> bool:
    """Whether counter sets have too little left for all devices that requests with one domain need.

    A device that is shared serves any number of requests and pays once, so it proves nothing.
    """
    sizes: dict[int, int] = {}
    for alternative, size in wanted:
        domain = domains[alternative.number]
        if not alternative.admin and not domain & attempt.board.sharing:
            sizes[domain] = sizes.get(domain, 0) + size
    return any(_hosted(attempt, domain, budget) < size for domain, size in sizes.items())


def _hosted(attempt: Attempt, domain: int, budget: Budget) -> int:
    """At most how many devices of the domain can be taken, as far as counters tell."""
    board, hosted = attempt.board, 0
    by_set: dict[object, list[int]] = {}
    for number in bits(domain):
        budget.look(2 * _weight(board, number))
        sets = {(pool, key[0]) for (pool, key), _ in board.costs.get(number, ())}
        if len(sets) == 1:
            by_set.setdefault(sets.pop(), []).append(number)
        else:
            hosted += 1
    return hosted + sum(min(len(devices), _room(attempt, devices)) for devices in by_set.values())


def _room(attempt: Attempt, devices: Sequence[int]) -> int:
    """How many of the cheapest device the counters of one set have room for."""
    costs = [dict(attempt.board.costs[number]) for number in devices]
    room = len(devices)
    for counter in set.intersection(*(set(cost) for cost in costs)):
        cheapest = min(cost[counter] for cost in costs)
        if cheapest > 0:
            room = min(room, max(attempt.left(counter), 0) // cheapest)
    return room
