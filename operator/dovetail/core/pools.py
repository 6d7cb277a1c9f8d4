"""Pools: which slices count for a node, and what the pool offers there (allocation-rules 2.1)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dovetail.core.features import Features
from dovetail.core.holdings import PoolHoldings
from dovetail.core.labels import Labels
from dovetail.core.layout import Layout, layout_of
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
    layout: Layout
    here: int
    holdings: PoolHoldings
    cached: "tuple[int, Usage] | None" = None
    """What is in use, as of a stamp of the holdings; kept by `usage_of`."""

    @property
    def devices(self) -> tuple[OfferedDevice, ...]:
        """The devices in order."""
        return self.layout.devices

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
        refusal = self._count_refusal(newest, newest)
        if refusal is not None:
            return refusal
        offering = [published for published in newest if not _is_for_counters(published, features)]
        problem = layout_of(offering, newest, counts=features.partitionable_devices).problem
        return PoolRefusal(self.key, PoolCause.INVALID, problem) if problem else None

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
        refusal = self._count_refusal(kept, [*kept, *rest])
        if refusal is not None:
            return refusal
        offering = [published for published in kept if not _is_for_counters(published, features)]
        layout = layout_of(offering, [*kept, *rest], counts=features.partitionable_devices)
        if layout.problem:
            return PoolRefusal(self.key, PoolCause.INVALID, layout.problem)
        return self._offer(offering, layout, _here(offering, node, labels))

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

    def _offer(self, slices: Sequence[PublishedSlice], layout: Layout, here: int) -> PoolOffer:
        identity = (layout, tuple(map(id, slices)), here)
        offer = self._offers.get(identity)
        if offer is None:
            offer = self._offers[identity] = PoolOffer(self.key, tuple(slices), layout, here, self.holdings)
        return offer


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
