"""Whether more was promised of what devices share than is there: counters and capacity."""

from collections.abc import Mapping

from dovetail.core.decisions import ObjectKey
from dovetail.core.pools import Pool
from dovetail.core.published import OfferedDevice
from dovetail.core.values import DeviceKey
from dovetail.core.world import World


def is_overcommitted(world: World, claim: ObjectKey) -> bool:
    """Whether a counter or a capacity that the claim draws from is promised more often than it is there.

    A device that two claims hold as a whole is not looked for here.
    """
    devices = {hold.device for hold in world.inventory.holds(*claim)}
    return any(_is_overdrawn(world, key) for key in devices)


def _is_overdrawn(world: World, key: DeviceKey) -> bool:
    pool = world.inventory.offers.pools.get(key.pool_key)
    if pool is None:
        return False
    device = next((each for each in pool.newest_devices() if each.name == key.device), None)
    return device is not None and (_capacity_is(pool, device) or _counters_are(pool, device))


def _capacity_is(pool: Pool, device: OfferedDevice) -> bool:
    taken: Mapping[str, int] = pool.holdings.consumed.get(device.name, {})
    driver = pool.key.driver
    offered = {_qualified(name, driver): each.value.nano for name, each in device.capacity.items()}
    return any(amount > offered.get(_qualified(name, driver), amount) for name, amount in taken.items())


def _counters_are(pool: Pool, device: OfferedDevice) -> bool:
    if not device.consumes:
        return False
    used = pool.holdings.counters_used()
    declared = {
        (name, counter): amount
        for published in pool.newest()
        for name, counters in published.content.counter_sets
        for counter, amount in counters.items()
    }
    drawn = {cost for part in device.consumes for cost, _ in part.costs()}
    return any(used[cost] > declared.get(cost, used[cost]) for cost in drawn)


def _qualified(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"
