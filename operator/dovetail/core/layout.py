"""Devices and counters of a pool's slices laid out in order; pools with equal slices share one layout."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dovetail.core.published import OfferedDevice, PublishedSlice


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The devices that may count for a node, and the counters that they draw from.

    `problem` says why the slices contradict each other, or is empty (allocation-rules 2.1.5).
    """

    devices: tuple[OfferedDevice, ...]
    index: Mapping[str, int]
    """The place of each device by name."""
    counters: Mapping[str, Mapping[str, int]]
    """What each counter set declares, in billionths."""
    declared: Hashable
    """Equal where the counters are."""
    problem: str


def layout_of(
    kept: Sequence[PublishedSlice], everything: Sequence[PublishedSlice], *, counts: bool
) -> Layout:
    """The layout of the slices that have devices for a node, among all slices of the pool.

    `counts` says whether counters mean anything.
    """
    contents = tuple(published.content for published in everything)
    key = (Layout, tuple(published.content for published in kept), contents, counts)
    known: Layout | None = contents[0].memo.get(key)
    if known is None:
        known = contents[0].memo[key] = _laid_out(kept, everything, counts=counts)
    return known


def _laid_out(
    kept: Sequence[PublishedSlice], everything: Sequence[PublishedSlice], *, counts: bool
) -> Layout:
    devices = tuple(device for published in kept for device in published.content.devices)
    index = {device.name: place for place, device in enumerate(devices)}
    counters = dict(_counters(everything)) if counts else {}
    problem = _duplicate(devices, index) or (_counter_problem(everything) if counts else "")
    declared = tuple(sorted((name, tuple(sorted(amounts.items()))) for name, amounts in counters.items()))
    return Layout(devices, index, counters, declared, problem)


def _duplicate(devices: Sequence[OfferedDevice], index: Mapping[str, int]) -> str:
    if len(index) == len(devices):
        return ""
    twice = next(device.name for place, device in enumerate(devices) if index[device.name] != place)
    return f"two devices are called {twice!r}"


def _counters(slices: Sequence[PublishedSlice]) -> Iterator[tuple[str, Mapping[str, int]]]:
    return (counters for published in slices for counters in published.content.counter_sets)


def _counter_problem(slices: Sequence[PublishedSlice]) -> str:
    sets: dict[str, Mapping[str, int]] = {}
    for name, counters in _counters(slices):
        if name in sets:
            return f"two counter sets are called {name!r}"
        sets[name] = counters
    devices = (
        device
        for published in slices
        if published.content.consumes and not published.is_counters
        for device in published.content.devices
    )
    problems = (_consumption_problem(device, sets) for device in devices)
    return next(filter(None, problems), "")


def _consumption_problem(device: OfferedDevice, sets: Mapping[str, Mapping[str, int]]) -> str:
    for part in device.consumes:
        if part.counter_set not in sets:
            return (
                f"device {device.name!r} consumes counters of {part.counter_set!r}, which no slice declares"
            )
        unknown = sorted(dict(part.amounts).keys() - sets[part.counter_set].keys())
        if unknown:
            return f"device {device.name!r} consumes counter {unknown[0]!r}, which {part.counter_set!r} lacks"
    return ""
