"""Pools: which slices count for a node, and what the pool offers there (allocation-rules 2.1)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dovetail.core.features import Features
from dovetail.core.holdings import PoolHoldings
from dovetail.core.labels import Labels
from dovetail.core.published import OfferedDevice, PublishedSlice
from dovetail.core.refusals import PoolCause, PoolRefusal
from dovetail.core.values import DeviceKey, PoolKey

if TYPE_CHECKING:
    from dovetail.core.usage import Usage


@dataclass(slots=True, eq=False)
class PoolOffer:
    """What one pool offers to one node, or to all nodes that see the same of it.

    Devices are numbered in the order in which they are tried: by slice name, then as listed.
    `here` has the bits of the devices that the node can use.
    """

    key: PoolKey
    slices: tuple[PublishedSlice, ...]
    devices: tuple[OfferedDevice, ...]
    here: int
    counters: Mapping[str, Mapping[str, int]]
    holdings: PoolHoldings
    index: Mapping[str, int]
    cached: "tuple[int, Usage] | None" = None
    """What is in use, as of a stamp of the holdings; kept by `usage_of`."""

    @property
    def has_binding_conditions(self) -> bool:
        """Whether the pool comes after the others (allocation-rules 2.1.7)."""
        return any(published.content.has_conditions for published in self.slices)

    def home_of(self, position: int) -> PublishedSlice:
        """The slice that a device comes from."""
        for published in self.slices:
            if position < len(published.content.devices):
                return published
            position -= len(published.content.devices)
        raise IndexError(position)

    def key_of(self, position: int) -> DeviceKey:
        """The full name of a device."""
        return DeviceKey(self.key.driver, self.key.pool, self.devices[position].name)

    def sort_key(self) -> tuple[bool, PoolKey]:
        """The place of the pool among others."""
        return (self.has_binding_conditions, self.key)


@dataclass(slots=True, eq=False)
class Pool:
    """All slices of a pool and what is in use of it."""

    key: PoolKey
    slices: dict[str, PublishedSlice] = field(default_factory=dict)
    holdings: PoolHoldings = field(default_factory=PoolHoldings)
    _offers: dict[object, PoolOffer] = field(default_factory=dict)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to remember of the pool."""
        return not self.slices and self.holdings.is_empty

    @property
    def spans_nodes(self) -> bool:
        """Whether a slice may be relevant for a node that it does not name itself."""
        return any(not published.reach.node for published in self.slices.values())

    def put(self, published: PublishedSlice) -> None:
        """Take in a slice."""
        self.slices[published.name] = published
        self._changed()

    def drop(self, name: str) -> None:
        """Forget a slice."""
        del self.slices[name]
        self._changed()

    def _changed(self) -> None:
        self._offers.clear()
        self.holdings.publish(self.newest_devices())

    def forget_offers(self) -> None:
        """Make all offers anew: what counts for a node may have changed."""
        self._offers.clear()

    def newest(self) -> list[PublishedSlice]:
        """The slices of the newest generation, by name."""
        generation = max((published.generation for published in self.slices.values()), default=0)
        return sorted(_of_generation(self.slices.values(), generation), key=_by_name)

    def newest_devices(self) -> Iterator[OfferedDevice]:
        """The devices of the newest generation, in the order of slices."""
        return (device for published in self.newest() for device in published.content.devices)

    def offer(self, node: str, labels: Labels, features: Features) -> PoolOffer | PoolRefusal | None:
        """What the pool offers to the node; None where no slice of it is relevant."""
        relevant = [
            published
            for published in self.slices.values()
            if _is_understood(published, features) and published.includes(node, labels)
        ]
        if not relevant:
            return None
        generation = max(published.generation for published in relevant)
        kept = sorted(_of_generation(relevant, generation), key=_by_name)
        return self._complete(kept, node, labels, features)

    def status(self, features: Features) -> PoolRefusal | None:
        """What is wrong with the pool's newest generation as a whole, if anything is."""
        newest = [published for published in self.newest() if _groups_understood(published, features)]
        if not newest:
            return None
        return self._count_refusal(newest, newest) or self._refuse(newest, [], features)

    def _complete(
        self, kept: list[PublishedSlice], node: str, labels: Labels, features: Features
    ) -> PoolOffer | PoolRefusal | None:
        rest: list[PublishedSlice] = []
        if len(kept) != kept[0].count:
            if any(published.generation > kept[0].generation for published in self.slices.values()):
                return PoolRefusal(
                    self.key, PoolCause.OBSOLETE, "a newer generation has no slice for the node"
                )
            everything = [
                published
                for published in _of_generation(self.slices.values(), kept[0].generation)
                if _groups_understood(published, features)
            ]
            names = {published.name for published in kept}
            rest = sorted((other for other in everything if other.name not in names), key=_by_name)
        refusal = self._count_refusal(kept, [*kept, *rest]) or self._refuse(kept, rest, features)
        return refusal or self._offer(kept, rest, node, labels, features)

    def _count_refusal(
        self, kept: Sequence[PublishedSlice], known: Sequence[PublishedSlice]
    ) -> PoolRefusal | None:
        counts = sorted({published.count for published in kept})
        if len(counts) > 1:
            said = " and ".join(map(str, counts))
            return PoolRefusal(self.key, PoolCause.INCOMPLETE, f"slices disagree on their number: {said}")
        if len(known) == counts[0]:
            return None
        return PoolRefusal(
            self.key,
            PoolCause.INCOMPLETE,
            f"{len(known)} of {counts[0]} slices of generation {kept[0].generation}",
        )

    def _refuse(
        self, kept: Sequence[PublishedSlice], rest: Sequence[PublishedSlice], features: Features
    ) -> PoolRefusal | None:
        problem = _duplicate_device(kept, features)
        if not problem and features.partitionable_devices:
            problem = _counter_problem([*kept, *rest])
        return PoolRefusal(self.key, PoolCause.INVALID, problem) if problem else None

    def _offer(
        self,
        kept: Sequence[PublishedSlice],
        rest: Sequence[PublishedSlice],
        node: str,
        labels: Labels,
        features: Features,
    ) -> PoolOffer:
        kept_devices = [published for published in kept if not _is_for_counters(published, features)]
        here = _here(kept_devices, node, labels)
        identity = (tuple(map(id, kept)), tuple(map(id, rest)), here)
        offer = self._offers.get(identity)
        if offer is None:
            offer = self._offers[identity] = self._new_offer(kept_devices, [*kept, *rest], here, features)
        return offer

    def _new_offer(
        self,
        kept: Sequence[PublishedSlice],
        everything: Sequence[PublishedSlice],
        here: int,
        features: Features,
    ) -> PoolOffer:
        counters = dict(_counters(everything)) if features.partitionable_devices else {}
        devices, index = _joined(kept)
        return PoolOffer(self.key, tuple(kept), devices, here, counters, self.holdings, index)


def _by_name(published: PublishedSlice) -> str:
    return published.name


def _of_generation(slices: Iterable[PublishedSlice], generation: int) -> list[PublishedSlice]:
    return [published for published in slices if published.generation == generation]


def _is_understood(published: PublishedSlice, features: Features) -> bool:
    """Slices that need a gate which is off are passed over (allocation-rules 2.5, 2.12)."""
    if not features.partitionable_devices and (published.mentions_per_device or published.is_counters):
        return False
    return _groups_understood(published, features)


def _groups_understood(published: PublishedSlice, features: Features) -> bool:
    return features.compatibility_groups or not published.content.uses_groups


def _is_for_counters(published: PublishedSlice, features: Features) -> bool:
    return features.partitionable_devices and published.is_counters


def _here(slices: Sequence[PublishedSlice], node: str, labels: Labels) -> int:
    mask, start = 0, 0
    for published in slices:
        devices = published.content.devices
        if published.per_device:
            for position, device in enumerate(devices, start):
                if device.reach.includes(node, labels):
                    mask |= 1 << position
        else:
            mask |= ((1 << len(devices)) - 1) << start
        start += len(devices)
    return mask


def _joined(slices: Sequence[PublishedSlice]) -> tuple[tuple[OfferedDevice, ...], Mapping[str, int]]:
    """All devices in order, and the place of each by name."""
    if len(slices) == 1:
        return slices[0].content.devices, slices[0].content.index
    devices = tuple(device for published in slices for device in published.content.devices)
    return devices, {device.name: place for place, device in enumerate(devices)}


def _duplicate_device(slices: Sequence[PublishedSlice], features: Features) -> str:
    devices, index = _joined([one for one in slices if not _is_for_counters(one, features)])
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
    for published in slices:
        if published.is_counters or not published.content.consumes:
            continue
        for device in published.content.devices:
            for part in device.consumes:
                problem = _consumption_problem(device.name, part.counter_set, dict(part.amounts), sets)
                if problem:
                    return problem
    return ""


def _consumption_problem(
    device: str, counter_set: str, amounts: Mapping[str, int], sets: Mapping[str, Mapping[str, int]]
) -> str:
    if counter_set not in sets:
        return f"device {device!r} consumes counters of {counter_set!r}, which no slice declares"
    unknown = sorted(amounts.keys() - sets[counter_set].keys())
    if unknown:
        return f"device {device!r} consumes counter {unknown[0]!r}, which {counter_set!r} lacks"
    return ""
