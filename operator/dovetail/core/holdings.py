"""What of a pool is in use: devices, shares, capacity, and the counters that were paid for them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dovetail.core.published import Consumption, CounterKey, OfferedDevice
from dovetail.core.values import DeviceKey


@dataclass(frozen=True, slots=True)
class Hold:
    """One device, or one share of a device, in the hands of a claim. `consumed` is in billionths."""

    device: DeviceKey
    request: str = ""
    share: str = ""
    consumed: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True, eq=False)
class PoolHoldings:
    """The devices of one pool that claims hold, by name.

    Counters are paid when a device is first seen both held and published, and stay paid as they were:
    a driver that changes or withdraws a device cannot make room that is not there (allocation-rules 2.15).
    """

    stamp: int = 0
    """Grows with every change."""
    whole: Counter[str] = field(default_factory=Counter)
    shares: Counter[str] = field(default_factory=Counter)
    consumed: dict[str, Counter[str]] = field(default_factory=dict)
    _paid: dict[str, tuple[Consumption, ...]] = field(default_factory=dict)
    _published: dict[str, OfferedDevice] = field(default_factory=dict)
    _unsettled: set[str] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held."""
        return not self.whole and not self.shares

    def take(self, hold: Hold) -> None:
        """A claim holds this now."""
        name = hold.device.device
        (self.shares if hold.share else self.whole)[name] += 1
        if hold.consumed:
            self.consumed.setdefault(name, Counter()).update(dict(hold.consumed))
        self._unsettled.add(name)
        self.stamp += 1

    def give_back(self, hold: Hold) -> None:
        """A claim no longer holds this."""
        name = hold.device.device
        _subtract(self.shares if hold.share else self.whole, name)
        if hold.consumed:
            self.consumed[name].subtract(dict(hold.consumed))
        if not self.is_held(name):
            self.consumed.pop(name, None)
            self._paid.pop(name, None)
        self.stamp += 1

    def without(self, holds: Iterable[Hold]) -> "PoolHoldings":
        """A copy in which these are given back; this one stays as it is."""
        copy = PoolHoldings(
            self.stamp,
            Counter(self.whole),
            Counter(self.shares),
            {name: Counter(amounts) for name, amounts in self.consumed.items()},
            dict(self.paid()),
            self._published,
        )
        for hold in holds:
            copy.give_back(hold)
        return copy

    def supposing(self, *, taken: Iterable[Hold], released: Iterable[Hold]) -> "PoolHoldings":
        """A copy in which some are given back, then others taken; this one stays as it is."""
        copy = self.without(released)
        for hold in taken:
            copy.take(hold)
        return copy

    def is_held(self, name: str) -> bool:
        """Whether a claim holds the device or a share of it."""
        return name in self.whole or name in self.shares

    def publish(self, devices: Iterable[OfferedDevice]) -> None:
        """The driver offers these devices now."""
        self._published = {device.name: device for device in devices if device.consumes}
        self._unsettled.update(self.whole, self.shares)
        self.stamp += 1

    def paid(self) -> Mapping[str, tuple[Consumption, ...]]:
        """What each device that is held has taken from counters."""
        for name in self._unsettled:
            if name in self._published and self.is_held(name):
                self._paid.setdefault(name, self._published[name].consumes)
        self._unsettled.clear()
        return self._paid

    def counters_used(self) -> Counter[CounterKey]:
        """The sum of what was paid, by counter."""
        used: Counter[CounterKey] = Counter()
        for parts in self.paid().values():
            for part in parts:
                used.update(dict(part.costs()))
        return used


def _subtract(counts: Counter[str], name: str) -> None:
    counts[name] -= 1
    if counts[name] <= 0:
        del counts[name]
