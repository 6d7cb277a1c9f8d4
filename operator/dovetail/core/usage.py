"""What of an offer is in use: masks of free and shared devices, capacity, counters and groups."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from dovetail.core.features import Features
from dovetail.core.groups import Companions, joined
from dovetail.core.holdings import Hold, PoolHoldings
from dovetail.core.layout import Layout
from dovetail.core.pools import PoolOffer
from dovetail.core.published import CounterKey


@dataclass(frozen=True, slots=True, eq=False)
class Usage:
    """The state of an offer between two decisions; equal keys are equal states of equal offers."""

    free: int
    """Bits of the devices that nobody holds exclusively, and of those that may be shared further."""
    shared: int
    """Bits of the devices that somebody holds a share of."""
    consumed: Mapping[int, Mapping[str, int]]
    """Capacity in use, by device and capacity, in billionths."""
    left: Mapping[CounterKey, int]
    """What is left of each counter: negative where a driver took away what is in use."""
    companions: Mapping[str, Companions]
    """Who draws from each counter set."""
    key: Hashable


def usage_of(offer: PoolOffer, features: Features) -> Usage:
    """The present state of the offer; kept until the pool's holdings change."""
    stamp = offer.holdings.stamp
    if offer.cached is None or offer.cached[0] != stamp:
        offer.cached = (stamp, _read(offer, offer.holdings, features))
    return offer.cached[1]


def usage_without(offer: PoolOffer, holds: Iterable[Hold], features: Features) -> Usage:
    """The state of the offer if these were given back."""
    return _read(offer, offer.holdings.without(holds), features)


def usage_supposing(
    offer: PoolOffer, features: Features, *, taken: Iterable[Hold], released: Iterable[Hold]
) -> Usage:
    """The state of the offer if some of its devices were given back, then others taken."""
    mine = [[hold for hold in holds if hold.device.pool_key == offer.key] for holds in (taken, released)]
    return _read(offer, offer.holdings.supposing(taken=mine[0], released=mine[1]), features)


@lru_cache(maxsize=4096)
def _idle(layout: Layout) -> Usage:
    """The state of which nothing is in use."""
    free = (1 << len(layout.devices)) - 1
    return Usage(free, 0, {}, dict(_left(layout, {})), {}, (free, 0, (), (), ()))


def _read(offer: PoolOffer, holdings: PoolHoldings, features: Features) -> Usage:
    layout = offer.layout
    if holdings.is_empty:
        return _idle(layout)
    free, shared = _masks(layout, holdings, features)
    consumed = _consumed(layout, holdings)
    used = holdings.counters_used() if layout.counters else {}
    companions = _companions(holdings) if features.compatibility_groups and layout.counters else {}
    key = (
        free,
        shared,
        tuple(sorted((position, tuple(sorted(amounts.items()))) for position, amounts in consumed.items())),
        tuple(sorted(used.items())),
        tuple(sorted((name, tuple(sorted(c.groups)), c.groupless) for name, c in companions.items())),
    )
    return Usage(free, shared, consumed, dict(_left(layout, used)), companions, key)


def _left(layout: Layout, used: Mapping[CounterKey, int]) -> Iterator[tuple[CounterKey, int]]:
    for name, counters in layout.counters.items():
        for counter, value in counters.items():
            yield (name, counter), value - used.get((name, counter), 0)


def _masks(layout: Layout, holdings: PoolHoldings, features: Features) -> tuple[int, int]:
    taken = shared = 0
    for name in holdings.whole:
        if name in layout.index:
            taken |= 1 << layout.index[name]
    for name in holdings.shares:
        if name in layout.index:
            bit = 1 << layout.index[name]
            shared |= bit
            # A device that is no longer shareable is free again when its last share is gone.
            if not (features.consumable_capacity and layout.devices[layout.index[name]].multi):
                taken |= bit
    return ~taken & ((1 << len(layout.devices)) - 1), shared


def _consumed(layout: Layout, holdings: PoolHoldings) -> dict[int, Mapping[str, int]]:
    return {
        layout.index[name]: {capacity: amount for capacity, amount in amounts.items() if amount}
        for name, amounts in holdings.consumed.items()
        if name in layout.index
    }


def _companions(holdings: PoolHoldings) -> dict[str, Companions]:
    companions: dict[str, Companions] = {}
    for parts in holdings.paid().values():
        for part in parts:
            companions[part.counter_set] = joined(companions.get(part.counter_set), part.groups)
    return companions
