"""The answer for one state of one node: quickly tried, then proved impossible, then searched through."""

from dataclasses import dataclass

from dovetail.core.attempt import AllRefused, Attempt, BrokenDevice
from dovetail.core.board import Board
from dovetail.core.bounds import glance, narrow
from dovetail.core.budget import Budget
from dovetail.core.search import Found, Search
from dovetail.core.usage import Usage

QUICK_FAILURES = 12
"""So many dead ends are met before anything is proved: most searches end sooner."""


@dataclass(frozen=True, slots=True)
class NotFound:
    """There is no solution."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """The claim cannot be judged, or not on this node.

    `{device}` and `{pool}` in the reason stand for what the numbers `device` and `pool` mean on a node.
    """

    claim: int
    reason: str
    of_node: bool
    device: int | None = None
    pool: int | None = None
    constraint: int | None = None
    """The constraint that leaves out one of all devices that are asked for."""


Answer = Found | NotFound | Wrong


def solve(board: Board, usages: tuple[Usage, ...], starts: tuple[int, ...], budget: Budget) -> Answer:
    """The first solution in kube-scheduler's order, or that there is none. Raises `BudgetSpent`."""
    if board.upfront is not None:
        known = board.upfront
        return Wrong(known.claim, known.reason, known.of_node, known.device, known.pool)
    try:
        return _solve(board, usages, starts, budget)
    except BrokenDevice as broken:
        return Wrong(broken.claim, broken.reason, of_node=False, device=broken.number)
    except AllRefused as refused:
        return Wrong(
            refused.claim, refused.reason, of_node=True, device=refused.number, constraint=refused.constraint
        )


def _solve(board: Board, usages: tuple[Usage, ...], starts: tuple[int, ...], budget: Budget) -> Answer:
    search = Search(Attempt(board, usages, starts), budget)
    if board.is_delicate:
        return search.run() or NotFound()
    # Most claims fit at once: nothing is proved before the first dead end, little before a dozen.
    if (found := search.run(0)) is not None:
        return found
    seen = None if search.is_over else glance(Attempt(board, usages, starts), budget)
    if seen is None or seen.impossible:
        return NotFound()
    if (found := search.run(QUICK_FAILURES)) is not None:
        return found
    narrowed = None if search.is_over else narrow(Attempt(board, usages, starts), seen, budget)
    if narrowed is None or narrowed.impossible:
        return NotFound()
    rest = Search(Attempt(board, usages, starts), budget, tuple(narrowed.domains))
    return rest.run() or NotFound()
