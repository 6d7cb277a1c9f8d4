"""The same claims under fewer limits: what has to be lifted so that they fit is what stands in the way."""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from dovetail.core.board import Board, PooledCounter
from dovetail.core.budget import Budget
from dovetail.core.offers import NodeOffer
from dovetail.core.profiles import profiles_of
from dovetail.core.requests import Alternative, Asked, ClaimRequests
from dovetail.core.usage import Usage

UNLIMITED = 1 << 200
"""More of a counter than any claim can ask for."""


PAIRS_A_STEP = 16
"""So many pairs of device and request count as one step of a budget."""


class Limit(enum.Enum):
    """What keeps devices apart that each could be taken alone."""

    COUNTERS = enum.auto()
    CAPACITY = enum.auto()
    GROUPS = enum.auto()
    RESULTS = enum.auto()


@dataclass(frozen=True, slots=True)
class Lift:
    """Limits that are left out; `counters` are raised to these values, whatever is in use of them."""

    limits: Collection[Limit] = ()
    counters: Mapping[PooledCounter, int] = field(default_factory=dict)


def steps_of(board: Board) -> int:
    """What one more try costs: proofs cost as much as searches, and grow with devices and requests."""
    return 1 + len(board.devices) * len(board.asked.alternatives) // PAIRS_A_STEP


def without_constraints(
    board: Board, dropped: Collection[int], budget: Budget, offer: NodeOffer | None = None
) -> Board:
    """The board as if the claims did not have these constraints; nothing else of the claims changes.

    With the offer, devices that only these constraints told apart become interchangeable.
    Raises `BudgetSpent`.
    """
    budget.look(1 + len(board.asked.alternatives) // 4)
    rest = tuple(
        replace(a, constraints=tuple(n for n in a.constraints if n not in dropped))
        for a in board.asked.alternatives
    )
    values = {key: board for key, board in board.values.items() if key[0] not in dropped}
    is_ordered = any(a.wanted is None and a.constraints for a in rest)
    is_broken = any(one.broken for one in board.alternatives) or any(one.broken for one in values.values())
    return replace(
        board,
        asked=_with_alternatives(board.asked, rest),
        values=values,
        is_ordered=is_ordered,
        is_delicate=is_ordered or is_broken,
        profiles=profiles_of(board.alternatives, values, offer, board.takings, budget)
        if offer
        else board.profiles,
    )


def only_claim(board: Board, claim: int) -> Board:
    """The board as if the pod had this claim alone."""
    claims = tuple(
        one if index == claim else replace(one, requests=()) for index, one in enumerate(board.asked.claims)
    )
    return replace(board, asked=replace(board.asked, claims=claims))


def limits_of(board: Board) -> tuple[Limit, ...]:
    """The limits that can matter on a board."""
    found = {
        Limit.COUNTERS: bool(board.costs),
        Limit.CAPACITY: bool(board.sharing),
        Limit.GROUPS: bool(board.costs) and board.uses_groups,
        Limit.RESULTS: any(r.has_alternatives for claim in board.asked.claims for r in claim.requests),
    }
    return tuple(limit for limit, matters in found.items() if matters)


def lifted(board: Board, usages: tuple[Usage, ...], lift: Lift) -> tuple[Board, tuple[Usage, ...]]:
    """Board and usages without these limits."""
    if Limit.CAPACITY in lift.limits:
        board = replace(board, takings={})
    if Limit.GROUPS in lift.limits:
        board = replace(board, uses_groups=False)
    if Limit.RESULTS in lift.limits:
        board = replace(board, most_results=UNLIMITED)
    return board, tuple(_raised(pool, usage, lift) for pool, usage in enumerate(usages))


def _raised(pool: int, usage: Usage, lift: Lift) -> Usage:
    if Limit.COUNTERS in lift.limits:
        return replace(usage, left=dict.fromkeys(usage.left, UNLIMITED))
    raised = {key: amount for (where, key), amount in lift.counters.items() if where == pool}
    return replace(usage, left={**usage.left, **raised}) if raised else usage


def _with_alternatives(asked: Asked, alternatives: tuple[Alternative, ...]) -> Asked:
    def again(claim: ClaimRequests) -> ClaimRequests:
        requests = tuple(
            replace(request, alternatives=tuple(alternatives[a.number] for a in request.alternatives))
            for request in claim.requests
        )
        return replace(claim, requests=requests)

    return replace(asked, claims=tuple(map(again, asked.claims)), alternatives=alternatives)
