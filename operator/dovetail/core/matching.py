"""Whether demands can be served from overlapping sets of devices, each device once (Hall's theorem)."""

from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.core.masks import bits


@dataclass(frozen=True, slots=True)
class Demand:
    """So many different devices out of these."""

    devices: int
    size: int


def shortage(demands: Sequence[Demand]) -> tuple[int, ...] | None:
    """Demands that cannot be served together, by index: they want more devices than they have; else None.

    Devices are given out one by one; a demand that finds none looks for others that can make room.
    """
    if not _overlap(demands):
        return next(((i,) for i, one in enumerate(demands) if one.devices.bit_count() < one.size), None)
    holder: dict[int, int] = {}
    for index in sorted(range(len(demands)), key=lambda i: demands[i].devices.bit_count()):
        if demands[index].devices.bit_count() < demands[index].size:
            return (index,)
        for _ in range(demands[index].size):
            reached = _make_room(index, demands, holder)
            if reached is not None:
                return tuple(sorted(reached))
    return None


def _overlap(demands: Sequence[Demand]) -> bool:
    """Whether any device is wanted by two."""
    seen = 0
    for demand in demands:
        if demand.devices & seen:
            return True
        seen |= demand.devices
    return False


def _make_room(start: int, demands: Sequence[Demand], holder: dict[int, int]) -> set[int] | None:
    """Give one more device to a demand, moving others over; the demands in the way where none is left."""
    wanted_by: dict[int, int] = {}
    found_through: dict[int, int] = {}
    waiting, seen = [start], 0
    while waiting:
        index = waiting.pop()
        for device in bits(demands[index].devices & ~seen):
            seen |= 1 << device
            wanted_by[device] = index
            owner = holder.get(device)
            if owner is None:
                _move_over(device, start, holder, wanted_by, found_through)
                return None
            if owner != start and owner not in found_through:
                found_through[owner] = device
                waiting.append(owner)
    return {start, *found_through}


def _move_over(
    free: int, start: int, holder: dict[int, int], wanted_by: dict[int, int], found_through: dict[int, int]
) -> None:
    device = free
    while True:
        index = holder[device] = wanted_by[device]
        if index == start:
            return
        device = found_through[index]
