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
    TOO_SMALL = "TooSmall"
    """The device cannot give the capacity that is asked for, even when nothing of it is in use."""
    NO_CAPACITY = "NoCapacity"
    """Too little is left of a capacity that the device shares out."""
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

    `request` is the name as in results: `main/sub` for an alternative; of an extended resource, its name.
    `has_alternatives` says that another request of the same `group` may serve instead.
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
    group: str = ""
    has_alternatives: bool = False
    is_extended: bool = False

    @property
    def is_short(self) -> bool:
        """Whether too few devices are there, whatever the constraints are."""
        return self.usable + self.causes.get(Cause.NO_ATTRIBUTE, 0) < self.wanted


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


@dataclass(frozen=True, slots=True)
class Crowd:
    """Requests, by their places in the story, that want more devices together than there are for them."""

    requests: tuple[int, ...]
    drivers: tuple[str, ...]
    wanted: int
    usable: int


@dataclass(frozen=True, slots=True)
class PoolStory:
    """A pool of which nothing can be taken, and the requests, by their places, that it could serve."""

    refused: PoolRefusal
    requests: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CounterLack:
    """The devices need more of a counter than is left, in billionths."""

    pool: PoolKey
    counter_set: str
    counter: str
    left: int
    needed: int


@dataclass(frozen=True, slots=True)
class CapacityLack:
    """The claims take more of a shared device together than is left, in billionths."""

    device: DeviceKey
    capacity: str
    left: int
    needed: int


@dataclass(frozen=True, slots=True)
class GroupLack:
    """The devices that would do belong to compatibility groups which cannot draw from these sets together."""

    counter_sets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResultLack:
    """The alternatives that would do add up to more devices than a claim may have."""

    most: int
    needed: int


Lack = CounterLack | CapacityLack | GroupLack | ResultLack
"""What there is too little of for devices that each could be taken alone."""


@dataclass(frozen=True, slots=True)
class Blame:
    """What is to blame where each request finds enough devices by itself.

    Without the `constraints` (by their places in the story) the claims fit: without any one of them if
    `any_of`, else without all of them.
    Were there enough of what is lacking, the claims would fit: without their constraints only if `beyond`.
    `claims` (by their places in the pod) fit each alone and not together, for no reason that is simpler.
    """

    constraints: tuple[int, ...] = ()
    any_of: bool = False
    lacks: tuple[Lack, ...] = ()
    beyond: bool = False
    claims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeStory:
    """Nodes on which the same things stand in the way; pools and devices are those of the first node."""

    nodes: tuple[str, ...]
    requests: tuple[RequestStory, ...] = ()
    constraints: tuple[ConstraintStory, ...] = ()
    crowds: tuple[Crowd, ...] = ()
    pools: tuple[PoolStory, ...] = ()
    """Pools that could serve a request; what is wrong with others keeps no device from these claims."""
    plugins: tuple[DualMode, ...] = ()
    """The drivers of selected devices that are withheld, since device plugins offer them as well."""
    blame: Blame | None = None
    """None where requests find too few devices, and where it was not looked into."""
    error: str = ""
    """What keeps the claims off the node before any device is tried."""
    left_out: str = ""
    """Where all devices are asked for: which one a constraint leaves out."""
    is_error: bool = False
    """Whether kube-scheduler reports an error of the node, such as any pool that contradicts itself."""

    @property
    def short(self) -> tuple[RequestStory, ...]:
        """The requests that find too few devices by themselves; alternatives count where all of them do."""
        served = {r.group for r in self.requests if r.has_alternatives and not r.is_short}
        return tuple(r for r in self.requests if r.is_short and r.group not in served)

    @property
    def needs_blame(self) -> bool:
        """Whether requests, each for itself and all together, find enough devices.

        Where there was no time to tell of requests, there is none to tell what is to blame.
        """
        return bool(self.requests) and not (self.error or self.short or self.crowds)


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
