"""ResourceSlice and DeviceTaintRule: what drivers and administrators say of devices (resource.k8s.io/v1)."""

from pydantic import Field

from dovetail.api.meta import KubernetesObject, Listed, Mapped, Model, Tupled
from dovetail.api.selection import NodeSelector, Taint

Amount = str | int | float
"""A quantity as JSON carries it; `dovetail.core.quantity` reads it."""


class ResourcePool(Model):
    """The pool that a slice is part of."""

    name: str
    generation: int = 0
    resource_slice_count: int = 0


class DeviceAttribute(Model):
    """One value of a device: exactly one field is set; where none is, the value is unusable (KEP-5491)."""

    int_: int | None = Field(default=None, alias="int")
    bool_: bool | None = Field(default=None, alias="bool")
    string: str | None = None
    version: str | None = None
    ints: Tupled[tuple[int, ...] | None] = None
    bools: Tupled[tuple[bool, ...] | None] = None
    strings: Tupled[tuple[str, ...] | None] = None
    versions: Tupled[tuple[str, ...] | None] = None


class CapacityRange(Model):
    """Which amounts may be requested of a capacity (KEP-5075)."""

    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class CapacityPolicy(Model):
    """How a request of a capacity is rounded, and what is taken without one (KEP-5075)."""

    default: Amount | None = None
    valid_values: Listed[Amount] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Model):
    """A capacity of a device, with its policy where it is consumable."""

    value: Amount
    request_policy: CapacityPolicy | None = None


class Counter(Model):
    """An amount of a counter."""

    value: Amount


class CounterSet(Model):
    """Counters that the devices of a pool share (KEP-4815)."""

    name: str
    counters: Mapped[Counter] = {}


class CounterConsumption(Model):
    """What a device takes from a counter set (KEP-4815), and whom it goes together with there (KEP-5963)."""

    counter_set: str
    counters: Mapped[Counter] = {}
    compatibility_groups: Listed[str] = ()


class NodeAllocatableMapping(Model):
    """Which amount of a node's resource a device stands for (KEP-5517)."""

    capacity_key: str | None = None
    capacity_multiplier: Amount | None = None
    device_multiplier: Amount | None = None


class NodeAllocatableOverhead(Model):
    """What using a device costs of a node's resource."""

    per_pod: Amount | None = None
    per_container: Amount | None = None


class NodeAllocatableResource(Model):
    """What a device means for one resource of its node."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(Model):
    """One device of a slice."""

    name: str
    attributes: Mapped[DeviceAttribute] = {}
    capacity: Mapped[DeviceCapacity] = {}
    consumes_counters: Listed[CounterConsumption] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: Listed[Taint] = ()
    binds_to_node: bool | None = None
    binding_conditions: Listed[str] = ()
    binding_failure_conditions: Listed[str] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: Mapped[NodeAllocatableResource] = {}


class ResourceSliceSpec(Model):
    """What a slice offers and where."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: Listed[Device] = ()
    shared_counters: Listed[CounterSet] = ()
    skip_node_operations: Listed[str] = ()


class ResourceSlice(KubernetesObject):
    """Devices of one driver in one pool."""

    spec: ResourceSliceSpec


class DeviceTaintSelector(Model):
    """Which devices a rule taints: all given parts agree; without any part, every device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Model):
    """A taint for the selected devices; without a selector, for none (allocation-rules 2.7)."""

    device_selector: DeviceTaintSelector | None = None
    taint: Taint


class DeviceTaintRule(KubernetesObject):
    """A taint that an administrator puts on devices (KEP-5055)."""

    spec: DeviceTaintRuleSpec
