"""What the cluster offers and what is taken: the one changing picture that allocation reads."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dovetail.api.claims import DeviceClass, ResourceClaim
from dovetail.api.nodes import Node
from dovetail.api.slices import DeviceTaintRule, ResourceSlice
from dovetail.core.attributes import Mappings
from dovetail.core.devices import DeviceView
from dovetail.core.features import Features
from dovetail.core.refusals import PoolCause
from dovetail.core.values import DeviceKey, PoolKey


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim that holds a device, or a share of it."""

    namespace: str
    claim: str
    request: str


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """What became of a pool, over the whole cluster: `cause` is None where its devices can be taken."""

    key: PoolKey
    devices: int
    cause: PoolCause | None = None
    detail: str = ""


class Inventory:
    """What the cluster offers and what is taken; changed by deltas, never rebuilt per pod.

    The order of calls never changes an answer, save that the newest call about an object counts.
    Objects are read, never kept: a caller may drop them.
    `version` grows with every change that can change an answer; equal versions mean equal answers.
    """

    version: int

    def __init__(self, features: Features, mappings: Mappings | None = None) -> None:
        """Without mappings, none exist: not even the shipped ones."""

    def put_slice(self, published: ResourceSlice) -> None:
        """Take in a slice; one of the same name is replaced."""
        raise NotImplementedError

    def drop_slice(self, name: str) -> None:
        """Forget a slice; an unknown name is ignored, here and in every other `drop_`."""
        raise NotImplementedError

    def put_class(self, device_class: DeviceClass) -> None:
        """Take in a class."""
        raise NotImplementedError

    def drop_class(self, name: str) -> None:
        """Forget a class."""
        raise NotImplementedError

    def put_node(self, node: Node) -> None:
        """Take in a node's labels and declared features."""
        raise NotImplementedError

    def drop_node(self, name: str) -> None:
        """Forget a node: it then counts as one without labels."""
        raise NotImplementedError

    def put_taint_rule(self, rule: DeviceTaintRule) -> None:
        """Take in a taint rule."""
        raise NotImplementedError

    def drop_taint_rule(self, name: str) -> None:
        """Forget a taint rule."""
        raise NotImplementedError

    def put_claim(self, claim: ResourceClaim) -> None:
        """Take in what a claim's allocation holds: devices, shares, counters, capacity.

        A claim without allocation holds nothing; devices with admin access are not held.
        """
        raise NotImplementedError

    def drop_claim(self, namespace: str, name: str) -> None:
        """Forget a claim: what it held is free."""
        raise NotImplementedError

    def set_mappings(self, mappings: Mappings) -> None:
        """Use other mappings from now on."""
        raise NotImplementedError

    def set_features(self, features: Features) -> None:
        """Use other features from now on."""
        raise NotImplementedError

    @property
    def features(self) -> Features:
        """The gates that count."""
        raise NotImplementedError

    @property
    def mappings(self) -> Mappings:
        """The mappings that count."""
        raise NotImplementedError

    @property
    def classes(self) -> Mapping[str, DeviceClass]:
        """The classes by name."""
        raise NotImplementedError

    def devices(self) -> Iterable[DeviceView]:
        """Every device of every pool's newest generation, in no particular order."""
        raise NotImplementedError

    def holders(self, device: DeviceKey) -> tuple[Holder, ...]:
        """Who holds the device or shares of it, sorted."""
        raise NotImplementedError

    def pools(self) -> tuple[PoolStatus, ...]:
        """Every pool and what became of it, sorted."""
        raise NotImplementedError

    def slice_nodes(self) -> frozenset[str]:
        """The names of all nodes that slices, or devices in them, name."""
        raise NotImplementedError

    def published_attributes(self) -> frozenset[str]:
        """The qualified names of all attributes that devices publish."""
        raise NotImplementedError
