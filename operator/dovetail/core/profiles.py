"""Which devices are interchangeable for a set of claims: those with the same number."""

from collections.abc import Mapping, Sequence

from dovetail.core.board import AlternativeBoard, ValueBoard
from dovetail.core.budget import Budget
from dovetail.core.capacity import Taking
from dovetail.core.offers import NodeOffer
from dovetail.core.published import OfferedDevice


def profiles_of(
    boards: Sequence[AlternativeBoard],
    values: Mapping[tuple[int, int], ValueBoard],
    offer: NodeOffer,
    takings: Mapping[tuple[int, int], Taking],
    budget: Budget,
) -> tuple[int, ...]:
    """The number of each device of the offer. Raises `BudgetSpent`."""
    known: dict[object, int] = {}
    profiles = []
    different = list({id(board): board for board in boards}.values())
    values_once = list({id(board): board for board in values.values()}.values())
    weight = 1 + (len(different) + len(values_once)) // 8
    for index, (pool, start) in enumerate(zip(offer.pools, offer.starts, strict=True)):
        for number, device in enumerate(pool.devices, start):
            budget.look(weight + (len(boards) // 4 if device.multi else 0))
            key = (
                (index, device.consumes) if device.consumes else (),
                _shared_profile(device, number, len(boards), takings) if device.multi else (),
                tuple(
                    [
                        (b.usable >> number & 1, b.fitting >> number & 1, b.broken.get(number))
                        for b in different
                    ]
                ),
                tuple([_value_profile(board, number) for board in values_once]),
            )
            profiles.append(known.setdefault(key, len(known)))
    return tuple(profiles)


def _shared_profile(
    device: OfferedDevice, number: int, alternatives: int, takings: Mapping[tuple[int, int], Taking]
) -> object:
    capacity = tuple(sorted((name, capacity.value) for name, capacity in device.capacity.items()))
    takes = tuple(
        (alternative, tuple(sorted(takings[alternative, number].nano.items())))
        for alternative in range(alternatives)
        if (alternative, number) in takings
    )
    return (capacity, takes)


def _value_profile(board: ValueBoard, number: int) -> object:
    value = board.values.get(number)
    if value is None:
        return board.broken.get(number)
    return (value.elements, value.lone)
