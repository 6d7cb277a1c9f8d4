"""What the newest generation of each pool says, for those who count apart from the allocator."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dovetail.api.slices import Amount, Device, ResourceSlice
from dovetail.core.values import PoolKey


@dataclass(slots=True)
class PoolRecord:
    """What the newest generation of a pool says; incomplete while slices of it are missing."""

    generation: int
    slice_count: int
    seen: int = 0
    devices: dict[str, Device] = field(default_factory=dict)
    counters: dict[tuple[str, str], Amount] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether every slice of the generation is there."""
        return self.seen >= self.slice_count


def read_pools(slices: Iterable[ResourceSlice]) -> Mapping[PoolKey, PoolRecord]:
    """The pools as their newest generation describes them."""
    pools: dict[PoolKey, PoolRecord] = {}
    for entry in slices:
        key = PoolKey(entry.spec.driver, entry.spec.pool.name)
        generation = entry.spec.pool.generation
        record = pools.get(key)
        if record is None or record.generation < generation:
            record = pools[key] = PoolRecord(generation, entry.spec.pool.resource_slice_count)
        if record.generation == generation:
            record.seen += 1
            record.devices |= {device.name: device for device in entry.spec.devices}
            record.counters |= {
                (counter_set.name, name): counter.value
                for counter_set in entry.spec.shared_counters
                for name, counter in counter_set.counters.items()
            }
    return pools
