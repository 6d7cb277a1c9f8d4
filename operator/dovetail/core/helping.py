"""What would make claims fit: devices that other claims would have to give back."""

from collections.abc import Callable, Sequence
from itertools import combinations

from dovetail.core.board import Board
from dovetail.core.budget import Budget
from dovetail.core.holdings import Hold
from dovetail.core.inventory import Inventory
from dovetail.core.offers import NodeOffer
from dovetail.core.refusals import Release
from dovetail.core.relaxing import steps_of
from dovetail.core.search import Found
from dovetail.core.solving import solve
from dovetail.core.usage import usage_without

Holder = tuple[str, str]
"""A claim by namespace and name."""

MOST_TRIES = 256
"""So many sets of holders are tried before the answer is no longer certain to be the smallest."""


def smallest(holders: Sequence[Holder], fits: Callable[[Sequence[Holder]], bool]) -> Sequence[Holder] | None:
    """The fewest claims that would have to give something back; None where even all do not help."""
    if not holders or not fits(holders):
        return None
    tries = 0
    for size in range(1, len(holders)):
        for chosen in combinations(holders, size):
            tries += 1
            if tries > MOST_TRIES:
                return _thinned(holders, fits)
            if fits(chosen):
                return chosen
    return holders


def _thinned(holders: Sequence[Holder], fits: Callable[[Sequence[Holder]], bool]) -> Sequence[Holder]:
    """A set from which nobody can be left out."""
    needed = list(holders)
    for holder in holders:
        fewer = [other for other in needed if other != holder]
        if fits(fewer):
            needed = fewer
    return needed


def release_on(inventory: Inventory, offer: NodeOffer, board: Board, budget: Budget) -> Release | None:
    """The fewest claims, and of what they hold only what would make the claims fit. Raises `BudgetSpent`."""

    def found(released: Sequence[Hold]) -> Found | None:
        usages = tuple(
            usage_without(pool, [h for h in released if h.device.pool_key == pool.key], inventory.features)
            for pool in offer.pools
        )
        budget.spend(steps_of(board))
        answer = solve(board, usages, offer.starts, budget)
        return answer if isinstance(answer, Found) else None

    held = _held_on(inventory, offer)
    holders = smallest(sorted(held), lambda some: found([h for one in some for h in held[one]]) is not None)
    if holders is None:
        return None
    holds = _needed(offer, [hold for holder in holders for hold in held[holder]], found)
    return Release(tuple(holders), tuple(sorted({hold.device for hold in holds})), offer.node)


def _needed(
    offer: NodeOffer, holds: Sequence[Hold], found: Callable[[Sequence[Hold]], Found | None]
) -> list[Hold]:
    """Of these, which have to come back: those in place of which others would do are left out."""
    answer = found(holds)
    chosen = {offer.key_of(one.device) for claim in answer.chosen for one in claim} if answer else set()
    taken = [hold for hold in holds if hold.device in chosen]
    needed = taken if taken and found(taken) is not None else list(holds)
    for hold in needed[:MOST_TRIES] if len(needed) > 1 else ():
        fewer = [other for other in needed if other is not hold]
        if found(fewer) is not None:
            needed = fewer
    return needed


def _held_on(inventory: Inventory, offer: NodeOffer) -> dict[Holder, list[Hold]]:
    """What claims hold of the pools that the node can use, by claim."""
    pools = {pool.key for pool in offer.pools}
    devices = (pool.key_of(position) for pool in offer.pools for position in range(len(pool.devices)))
    holders = {(holder.namespace, holder.claim) for device in devices for holder in inventory.holders(device)}
    return {
        holder: [hold for hold in inventory.holds(*holder) if hold.device.pool_key in pools]
        for holder in sorted(holders)
    }
