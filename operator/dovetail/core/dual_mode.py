"""A driver whose devices on a node are offered by device plugin and by DRA, as data."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plugged:
    """Devices of one driver that a device plugin offers as `resource`; `mask` has their bits."""

    driver: str
    resource: str
    mask: int


@dataclass(frozen=True, slots=True, order=True)
class DualMode:
    """A driver whose devices on a node are offered by device plugin too, as these extended resources."""

    driver: str
    resources: tuple[str, ...]
    devices: int
    """How many devices are concerned."""


def dual_modes(plugged: Iterable[Plugged]) -> tuple[DualMode, ...]:
    """The same by driver, sorted; a device counts once, however many resources it is offered as."""
    resources: dict[str, set[str]] = {}
    masks: dict[str, int] = {}
    for each in plugged:
        resources.setdefault(each.driver, set()).add(each.resource)
        masks[each.driver] = masks.get(each.driver, 0) | each.mask
    return tuple(
        DualMode(driver, tuple(sorted(names)), masks[driver].bit_count())
        for driver, names in sorted(resources.items())
    )


def describe(modes: Iterable[DualMode]) -> str:
    """What a node offers twice, in words that go on after "the node offers"."""
    phrases = [
        f"devices of {mode.driver} by device plugin too ({', '.join(mode.resources)})" for mode in modes
    ]
    return " and ".join(phrases)
