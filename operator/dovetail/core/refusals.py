"""Why devices, pools and nodes were not taken: causes with their data, never words."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from dovetail.core.dual_mode import DualMode
from dovetail.core.values import DeviceKey, PoolKey, Scalar


class Cause(enum.StrEnum):
    """The first thing that keeps a device from serving a request, in the order in which it is checked."""

    DEVICE_PLUGIN = "DevicePlugin"
    """A device plugin of the node offers the device as well, and may have given it to somebody."""
    IN_USE = "InUse"
    """A claim holds the device."""
    NOT_SELECTED = "NotSelected"
    """A selector of the class or of the request leaves the device out, or it belongs to another node."""
    NO_CAPACITY = "NoCapacity"
    """The device lacks a capacity that is asked for, or too little of it is left."""
    NOT_SUPPORTED = "NotSupported"
    """The device needs something that the cluster or the node does not support."""
    NO_COUNTERS = "NoCounters"
    """Too little is left of a counter that the device shares with others."""
    INCOMPATIBLE = "Incompatible"
    """A device in use shares no compatibility group with it."""
    TAINTED = "Tainted"
    """The device carries a taint that the request does not tolerate."""
    NO_ATTRIBUTE = "NoAttribute"
    """The device lacks the attribute of a constraint."""
    ALONE = "Alone"
    """No combination under the constraints includes the device, or it was needed elsewhere."""


class PoolCause(enum.StrEnum):
    """Why no device of a pool can be taken."""

    INCOMPLETE = "Incomplete"
    """The driver has not published all slices of the pool's newest generation."""
    INVALID = "Invalid"
    """The slices of the pool contradict themselves."""
    OBSOLETE = "Obsolete"
    """A newer generation of the pool exists, without a slice for the node."""


@dataclass(frozen=True, slots=True)
class DeviceRefusal:
    """One device and why a request cannot have it."""

    device: DeviceKey
    cause: Cause
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PoolRefusal:
    """One pool and why none of its devices can be taken."""

    pool: PoolKey
    cause: PoolCause
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RequestStory:
    """What one request found: `usable` of `selected` devices, where `wanted` are needed.

    `request` is the name as in results: `main/sub` for an alternative.
    `refusals` has each device that is selected but not usable; `drivers` are those of the selected devices.
    """

    claim: str
    request: str
    wanted: int
    selected: int
    usable: int
    drivers: tuple[str, ...] = ()
    causes: Mapping[Cause, int] = field(default_factory=dict)
    refusals: tuple[DeviceRefusal, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """How many devices one request could have within a value of a constraint."""

    request: str
    driver: str
    wanted: int
    usable: int


@dataclass(frozen=True, slots=True)
class ConstraintStory:
    """The best that one constraint could reach.

    For `matchAttribute`, `value` is the value with the most devices, `shares` what each request finds there.
    For `distinctAttribute`, `values` of `wanted` different values exist.
    `missing` says which drivers' devices lack the attribute, with one cause per driver.
    """

    claim: str
    attribute: str
    distinct: bool = False
    value: Scalar | None = None
    shares: tuple[Share, ...] = ()
    wanted: int = 0
    values: int = 0
    missing: Mapping[str, str] = field(default_factory=dict)
    blocking: bool = False
    """Whether this constraint alone, whatever else happens, cannot be satisfied."""


@dataclass(frozen=True, slots=True)
class NodeStory:
    """Nodes on which the same things stand in the way; pools and devices are those of the first node."""

    nodes: tuple[str, ...]
    requests: tuple[RequestStory, ...] = ()
    constraints: tuple[ConstraintStory, ...] = ()
    pools: tuple[PoolRefusal, ...] = ()
    plugins: tuple[DualMode, ...] = ()
    """The drivers of selected devices that are withheld, since device plugins offer them as well."""
    error: str = ""
    """What kube-scheduler would report as an error of this node, such as a pool that contradicts itself."""

    @property
    def is_error(self) -> bool:
        """Whether kube-scheduler calls this an error."""
        return bool(self.error)


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """The claims would fit on `node` if the claim did not have this constraint."""

    claim: str
    attribute: str
    node: str


@dataclass(frozen=True, slots=True)
class Release:
    """The claims would fit on `node` if these claims (namespace, name) gave their devices back."""

    holders: tuple[tuple[str, str], ...]
    devices: tuple[DeviceKey, ...]
    node: str


@dataclass(frozen=True, slots=True)
class ShareClaim:
    """`holder` came from the same template as the claim that waits: only one named claim can be shared."""

    holder: tuple[str, str]
    claim: str


@dataclass(frozen=True, slots=True)
class WithoutPlugin:
    """The claims would fit on `node` if no device plugin offered these extended resources there."""

    resources: tuple[str, ...]
    node: str


Help = DropConstraint | Release | ShareClaim | WithoutPlugin
"""What would make the claims fit."""
