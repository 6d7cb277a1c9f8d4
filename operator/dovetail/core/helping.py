"""What would make claims fit: a constraint to drop, claims whose devices would have to come back."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from dovetail.api.claims import ResourceClaim
from dovetail.core.board import Board
from dovetail.core.budget import Budget
from dovetail.core.inventory import Inventory
from dovetail.core.offers import NodeOffer
from dovetail.core.refusals import Release
from dovetail.core.search import Found
from dovetail.core.solving import solve
from dovetail.core.usage import usage_without
from dovetail.core.values import DeviceKey

Holder = tuple[str, str]
"""A claim by namespace and name."""

MOST_TRIES = 256
"""So many sets of holders are tried before the answer is no longer certain to be the smallest."""

MOST_CONSTRAINTS = 4
"""So many constraints are left out, one at a time."""

Fits = Callable[[frozenset[Holder]], Sequence[DeviceKey] | None]
"""The devices that the claims would get if these holders gave everything back; None where they do not fit."""


def smallest_release(node: str, holders: Sequence[Holder], fits: Fits) -> Release | None:
    """The fewest claims that would have to give their devices back; None where even all do not help."""
    if not holders or fits(frozenset(holders)) is None:
        return None
    tries = 0
    for size in range(1, len(holders)):
        for chosen in combinations(holders, size):
            tries += 1
            if tries > MOST_TRIES:
                return _thinned(node, holders, fits)
            devices = fits(frozenset(chosen))
            if devices is not None:
                return Release(chosen, tuple(devices), node)
    return _release(node, holders, fits)


def _thinned(node: str, holders: Sequence[Holder], fits: Fits) -> Release:
    """A set from which nobody can be left out."""
    needed = list(holders)
    for holder in holders:
        fewer = frozenset(needed) - {holder}
        if fits(fewer) is not None:
            needed.remove(holder)
    return _release(node, needed, fits)


def _release(node: str, holders: Sequence[Holder], fits: Fits) -> Release:
    return Release(tuple(holders), tuple(fits(frozenset(holders)) or ()), node)


def release_on(inventory: Inventory, offer: NodeOffer, board: Board, budget: Budget) -> Release | None:
    """The fewest claims whose devices would make the claims fit on the node. Raises `BudgetSpent`."""

    def fits(released: frozenset[Holder]) -> Sequence[DeviceKey] | None:
        holds = [hold for holder in released for hold in inventory.holds(*holder)]
        usages = tuple(
            usage_without(pool, [h for h in holds if h.device.pool_key == pool.key], inventory.features)
            for pool in offer.pools
        )
        answer = solve(board, usages, offer.starts, budget)
        if not isinstance(answer, Found):
            return None
        chosen = {offer.key_of(one.device) for claim in answer.chosen for one in claim}
        return sorted(chosen.intersection(hold.device for hold in holds))

    return smallest_release(offer.node, _holders_on(inventory, offer), fits)


def without_constraints(claims: Sequence[ResourceClaim]) -> Iterator[tuple[int, str, list[ResourceClaim]]]:
    """For some constraints, the claim that has it, its attribute, and the claims as they are without it.

    Of constraints that look alike, such as those of eight pairs, only the first is tried.
    """
    seen: set[object] = set()
    for index, claim in enumerate(claims):
        constraints = claim.spec.devices.constraints
        for number, constraint in enumerate(constraints):
            attribute = constraint.match_attribute or constraint.distinct_attribute or ""
            look = (index, attribute, constraint.match_attribute is None, len(constraint.requests))
            if look in seen or len(seen) >= MOST_CONSTRAINTS:
                continue
            seen.add(look)
            rest = (*constraints[:number], *constraints[number + 1 :])
            devices = claim.spec.devices.model_copy(update={"constraints": rest})
            spec = claim.spec.model_copy(update={"devices": devices})
            changed = [*claims[:index], claim.model_copy(update={"spec": spec}), *claims[index + 1 :]]
            yield index, attribute, changed


def _holders_on(inventory: Inventory, offer: NodeOffer) -> list[Holder]:
    """The claims that hold devices which the node can use, sorted."""
    devices = (pool.key_of(position) for pool in offer.pools for position in range(len(pool.devices)))
    return sorted(
        {(holder.namespace, holder.claim) for device in devices for holder in inventory.holders(device)}
    )
