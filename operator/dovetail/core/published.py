"""Slices as the allocator keeps them: compact, and shared where drivers publish the same devices."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from dovetail.api.selection import NodeSelector, Taint
from dovetail.api.slices import (
    Amount,
    CapacityRange,
    CounterConsumption,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    NodeAllocatableMapping,
    NodeAllocatableOverhead,
    NodeAllocatableResource,
    ResourceSlice,
    ResourceSliceSpec,
)
from dovetail.core.devices import DeviceView
from dovetail.core.labels import Labels, node_matches
from dovetail.core.quantity import Quantity
from dovetail.core.values import AttributeValue, DeviceKey, Kind, PoolKey, Unusable
from dovetail.errors import ObjectInvalid

T = TypeVar("T")

CounterKey = tuple[str, str]
"""Counter set and counter."""


@dataclass(frozen=True, slots=True)
class Reach:
    """From which nodes something can be used."""

    node: str = ""
    everywhere: bool = False
    selector: NodeSelector | None = None

    @property
    def is_known(self) -> bool:
        """Whether this says anything at all: a form that we do not know reaches no node."""
        return bool(self.node) or self.everywhere or self.selector is not None

    def includes(self, node: str, labels: Labels) -> bool:
        """Whether the node is reached."""
        if self.node:
            return self.node == node
        if self.everywhere:
            return True
        return self.selector is not None and node_matches(self.selector, node, labels)


@dataclass(frozen=True, slots=True)
class Range:
    """The amounts of a capacity that may be requested, from `min` in steps up to `max`."""

    min: Quantity | None
    max: Quantity | None
    step: Quantity | None


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much of a capacity a device has, and how requests of it are rounded (KEP-5075)."""

    value: Quantity
    has_policy: bool = False
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    range: Range | None = None


@dataclass(frozen=True, slots=True)
class Consumption:
    """What a device takes from one counter set, in billionths, and whom it goes together with there."""

    counter_set: str
    amounts: tuple[tuple[str, int], ...]
    groups: frozenset[str] = frozenset()

    def costs(self) -> Iterator[tuple[CounterKey, int]]:
        """Each counter and the amount taken from it."""
        return (((self.counter_set, counter), amount) for counter, amount in self.amounts)


@dataclass(frozen=True, slots=True)
class NodeShare:
    """What a device takes of one resource of its node, in billionths (KEP-5517)."""

    resource: str
    capacity_key: str = ""
    """The capacity whose consumed amount, times `capacity_multiplier`, the device stands for; or none."""
    capacity_multiplier: int = 0
    device_multiplier: int = 0
    """What the device stands for whatever is consumed."""
    per_pod: int = 0
    per_container: int = 0

    @property
    def is_mapped(self) -> bool:
        """Whether the device stands for the resource itself, or some of it."""
        return bool(self.capacity_key or self.device_multiplier)


@dataclass(frozen=True, slots=True, eq=False)
class OfferedDevice:
    """A device as a driver publishes it, without its pool: the same object for every equal slice."""

    view: DeviceView
    """What expressions see; its key lacks the pool."""
    capacity: Mapping[str, Capacity]
    consumes: tuple[Consumption, ...]
    taints: tuple[Taint, ...]
    reach: Reach
    binds_to_node: bool
    binding_conditions: tuple[str, ...]
    binding_failure_conditions: tuple[str, ...]
    node_shares: tuple[NodeShare, ...]

    @property
    def name(self) -> str:
        """The device's name within its pool."""
        return self.view.key.device

    @property
    def multi(self) -> bool:
        """Whether the device may be shared (KEP-5075)."""
        return self.view.allow_multiple_allocations

    def view_in(self, pool: str) -> DeviceView:
        """What expressions that may read the pool see."""
        key = self.view.key
        return DeviceView(
            DeviceKey(key.driver, pool, key.device), self.view.attributes, self.view.capacity, self.multi
        )


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class SliceContent:
    """The devices and counters of a slice; equal slices share one, with all that was found out about it.

    `ident` is never used again for another content.
    """

    ident: int
    driver: str
    devices: tuple[OfferedDevice, ...]
    counter_sets: tuple[tuple[str, Mapping[str, int]], ...]
    index: Mapping[str, int]
    """The place of each device by name."""
    has_conditions: bool
    """Whether a device has binding conditions."""
    consumes: bool
    """Whether a device draws from counters."""
    uses_groups: bool
    tainted: bool
    """Whether a device has taints."""
    memo: dict[object, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class PublishedSlice:
    """One slice: where it is from, where it reaches, and what it holds."""

    name: str
    pool: PoolKey
    generation: int
    count: int
    reach: Reach
    per_device: bool
    mentions_per_device: bool
    skips: tuple[str, ...]
    content: SliceContent

    @property
    def is_counters(self) -> bool:
        """Whether the slice declares counters."""
        return bool(self.content.counter_sets)

    def includes(self, node: str, labels: Labels) -> bool:
        """Whether the slice counts for the node (allocation-rules 2.1.2)."""
        if self.reach.is_known:
            return self.reach.includes(node, labels)
        return self.per_device and any(device.reach.includes(node, labels) for device in self.content.devices)

    def nodes(self) -> Iterator[str]:
        """The nodes that the slice names."""
        yield from filter(None, (self.reach.node, *(device.reach.node for device in self.content.devices)))


class Reader:
    """Reads slices; equal content is read once and kept as long as any slice has it."""

    def __init__(self) -> None:
        self._contents: WeakValueDictionary[bytes, SliceContent] = WeakValueDictionary()
        self._next = 0

    def read(self, published: ResourceSlice) -> PublishedSlice:
        """The slice in its compact form. Raises `ObjectInvalid` where an amount is no quantity."""
        spec = published.spec
        return PublishedSlice(
            name=published.metadata.name,
            pool=PoolKey(spec.driver, spec.pool.name),
            generation=spec.pool.generation,
            count=spec.pool.resource_slice_count,
            reach=Reach(spec.node_name or "", bool(spec.all_nodes), spec.node_selector),
            per_device=bool(spec.per_device_node_selection),
            mentions_per_device=spec.per_device_node_selection is not None,
            skips=tuple(spec.skip_node_operations),
            content=self._content(published.metadata.name, spec),
        )

    def _content(self, name: str, spec: ResourceSliceSpec) -> SliceContent:
        text = spec.model_dump_json(include={"driver", "devices", "shared_counters"}, exclude_unset=True)
        digest = blake2b(text.encode(), digest_size=16).digest()
        known = self._contents.get(digest)
        if known is None:
            known = self._contents[digest] = self._read_content(name, spec)
        return known

    def _read_content(self, name: str, spec: ResourceSliceSpec) -> SliceContent:
        try:
            devices = tuple(_device(device, spec.driver) for device in spec.devices)
            counters = tuple(
                (
                    counters.name,
                    {counter: _nano(amount.value) for counter, amount in counters.counters.items()},
                )
                for counters in spec.shared_counters
            )
        except ValueError as error:
            raise ObjectInvalid("ResourceSlice", name, str(error)) from error
        self._next += 1
        return SliceContent(
            ident=self._next,
            driver=spec.driver,
            devices=devices,
            counter_sets=counters,
            index={device.name: place for place, device in enumerate(devices)},
            has_conditions=any(device.binding_conditions for device in devices),
            consumes=any(device.consumes for device in devices),
            uses_groups=any(part.groups for device in devices for part in device.consumes),
            tainted=any(device.taints for device in devices),
        )


def _device(device: Device, driver: str) -> OfferedDevice:
    view = DeviceView(
        DeviceKey(driver, "", device.name),
        _qualified({name: _value(given) for name, given in device.attributes.items()}, driver),
        _qualified({name: Quantity.parse(given.value) for name, given in device.capacity.items()}, driver),
        bool(device.allow_multiple_allocations),
    )
    return OfferedDevice(
        view=view,
        capacity={name: _capacity(given) for name, given in sorted(device.capacity.items())},
        consumes=tuple(map(_consumption, device.consumes_counters)),
        taints=device.taints,
        reach=Reach(device.node_name or "", bool(device.all_nodes), device.node_selector),
        binds_to_node=bool(device.binds_to_node),
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        node_shares=tuple(_node_share(*each) for each in sorted(device.node_allocatable_resources.items())),
    )


def _node_share(resource: str, given: NodeAllocatableResource) -> NodeShare:
    mapping = given.mapping or NodeAllocatableMapping()
    overhead = given.overhead or NodeAllocatableOverhead()
    return NodeShare(
        resource,
        capacity_key=mapping.capacity_key or "",
        capacity_multiplier=_billionths(mapping.capacity_multiplier),
        device_multiplier=0 if mapping.capacity_key else _billionths(mapping.device_multiplier),
        per_pod=_billionths(overhead.per_pod),
        per_container=_billionths(overhead.per_container),
    )


def _billionths(amount: Amount | None) -> int:
    return 0 if amount is None else Quantity.parse(amount).nano


def _qualified(named: Mapping[str, T], driver: str) -> dict[str, T]:
    """The same by qualified name; a name that is published both ways counts as it is written out."""
    bare = {f"{driver}/{name}": value for name, value in named.items() if "/" not in name}
    return bare | {name: value for name, value in named.items() if "/" in name}


def _value(given: DeviceAttribute) -> AttributeValue | Unusable:
    for kind, values in (
        (Kind.INT, given.ints),
        (Kind.BOOL, given.bools),
        (Kind.STRING, given.strings),
        (Kind.VERSION, given.versions),
    ):
        if values:
            return AttributeValue(kind, values, is_list=True)
    for kind, value in (
        (Kind.INT, given.int_),
        (Kind.BOOL, given.bool_),
        (Kind.STRING, given.string),
        (Kind.VERSION, given.version),
    ):
        if value is not None:
            return AttributeValue(kind, (value,))
    return Unusable("unsupported attribute value")


def _capacity(given: DeviceCapacity) -> Capacity:
    value, policy = Quantity.parse(given.value), given.request_policy
    if policy is None:
        return Capacity(value)
    return Capacity(
        value,
        has_policy=True,
        default=_optional(policy.default),
        valid_values=tuple(map(Quantity.parse, policy.valid_values)),
        range=_range(policy.valid_range),
    )


def _range(given: CapacityRange | None) -> Range | None:
    if given is None:
        return None
    return Range(_optional(given.min), _optional(given.max), _optional(given.step))


def _optional(raw: Amount | None) -> Quantity | None:
    return None if raw is None else Quantity.parse(raw)


def _consumption(given: CounterConsumption) -> Consumption:
    amounts = tuple((name, _nano(counter.value)) for name, counter in sorted(given.counters.items()))
    return Consumption(given.counter_set, amounts, frozenset(given.compatibility_groups))


def _nano(raw: Amount) -> int:
    return Quantity.parse(raw).nano
