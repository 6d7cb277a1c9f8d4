"""What the cluster offers and what is taken: the one changing picture that allocation reads."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

from dovetail.api.claims import POD_CLAIM_NAME, DeviceClass, DeviceResult, ResourceClaim
from dovetail.api.nodes import Node
from dovetail.api.slices import Amount, DeviceTaintRule, ResourceSlice
from dovetail.core.attributes import Mappings
from dovetail.core.cel import Memory
from dovetail.core.devices import DeviceView
from dovetail.core.dual_mode import DualMode
from dovetail.core.features import Features
from dovetail.core.holdings import Hold
from dovetail.core.offers import SKIP_FEATURE, Offers
from dovetail.core.plugins import plugin_resources
from dovetail.core.published import OfferedDevice, Reader
from dovetail.core.quantity import Quantity
from dovetail.core.ranking import Candidates
from dovetail.core.refusals import PoolCause
from dovetail.core.values import DeviceKey, PoolKey


@dataclass(frozen=True, slots=True, order=True)
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
    """

    def __init__(
        self, features: Features, mappings: Mappings | None = None, *, withhold_plugged: bool = False
    ) -> None:
        """Without mappings, none exist: not even the shipped ones.

        `withhold_plugged`: devices that a device plugin of their node offers as well are not given,
        which kube-scheduler would do.
        """
        self._features = features
        self._mappings = Mappings.none() if mappings is None else mappings
        self._classes: dict[str, DeviceClass] = {}
        self._reader = Reader()
        self._claims: dict[tuple[str, str], tuple[Hold, ...]] = {}
        self._holders: dict[DeviceKey, Counter[Holder]] = {}
        self._generated: dict[tuple[str, str], bytes] = {}
        self.offers = Offers(features, withhold=withhold_plugged)
        """For the allocator: what each node is offered."""
        self.memory = Memory()
        """For the allocator: what expressions gave."""
        self.memo: dict[object, object] = {}
        """For the allocator: what it found out, valid while `rules_version` stays the same."""
        self.orders: dict[int, Candidates] = {}
        """For the allocator: orders of nodes, sorted by state."""
        self.version = 0
        """Grows with every change that can change an answer; equal versions mean equal answers."""
        self.rules_version = 0
        """Grows when classes, mappings or features change: what was read of claims is then read anew."""

    # -- slices, classes, nodes, rules -----------------------------------------------------------

    def put_slice(self, published: ResourceSlice) -> None:
        """Take in a slice; one of the same name is replaced. Raises `ObjectInvalid` for bad quantities."""
        self.offers.put_slice(self._reader.read(published))
        self.version += 1

    def drop_slice(self, name: str) -> None:
        """Forget a slice; an unknown name is ignored, here and in every other `drop_`."""
        self.offers.drop_slice(name)
        self.version += 1

    def put_class(self, device_class: DeviceClass) -> None:
        """Take in a class."""
        name = device_class.metadata.name
        before = self._classes.get(name)
        self._classes[name] = device_class
        if self.offers.plugin_classes.put(device_class):
            self._everything_changed()
        elif before is None or before.spec != device_class.spec:
            self._rules_changed()

    def drop_class(self, name: str) -> None:
        """Forget a class."""
        if self._classes.pop(name, None) is None:
            return
        if self.offers.plugin_classes.drop(name):
            self._everything_changed()
        else:
            self._rules_changed()

    def put_node(self, node: Node) -> None:
        """Take in a node's labels, declared features and what its device plugins offer.

        Raises ValueError for an amount that is no quantity.
        """
        self.offers.put_node(
            node.metadata.name,
            node.metadata.labels,
            may_skip=SKIP_FEATURE in node.status.declared_features,
            plugins=plugin_resources(node),
        )
        self.version += 1

    def drop_node(self, name: str) -> None:
        """Forget a node: it then counts as one without labels."""
        self.offers.drop_node(name)
        self.version += 1

    def put_taint_rule(self, rule: DeviceTaintRule) -> None:
        """Take in a taint rule."""
        if self.offers.rules.put(rule):
            self._everything_changed()

    def drop_taint_rule(self, name: str) -> None:
        """Forget a taint rule."""
        if self.offers.rules.drop(name):
            self._everything_changed()

    # -- claims ----------------------------------------------------------------------------------

    def put_claim(self, claim: ResourceClaim) -> None:
        """Take in what a claim's allocation holds: devices, shares, counters, capacity.

        A claim without allocation holds nothing; devices with admin access are not held.
        """
        allocation = claim.status.allocation
        results = allocation.devices.results if allocation else ()
        holds = tuple(_hold(result) for result in results if not result.admin_access)
        self._replace(claim.metadata.namespace, claim.metadata.name, holds)
        wishes = wishes_of_generated(claim)
        if holds and wishes is not None:
            self._generated[claim.key] = wishes
        else:
            self._generated.pop(claim.key, None)

    def drop_claim(self, namespace: str, name: str) -> None:
        """Forget a claim: what it held is free."""
        self._replace(namespace, name, ())
        self._generated.pop((namespace, name), None)

    def _replace(self, namespace: str, name: str, holds: tuple[Hold, ...]) -> None:
        key = (namespace, name)
        before = self._claims.get(key, ())
        if before == holds:
            return
        for hold in before:
            self._give_back(hold, Holder(namespace, name, hold.request))
        for hold in holds:
            self.offers.take(hold)
            self._holders.setdefault(hold.device, Counter())[Holder(namespace, name, hold.request)] += 1
        self._claims[key] = holds
        if not holds:
            del self._claims[key]
        self.version += 1

    def _give_back(self, hold: Hold, holder: Holder) -> None:
        self.offers.give_back(hold)
        holders = self._holders[hold.device]
        holders[holder] -= 1
        if not holders[holder]:
            del holders[holder]
        if not holders:
            del self._holders[hold.device]

    # -- settings --------------------------------------------------------------------------------

    def set_mappings(self, mappings: Mappings) -> None:
        """Use other mappings from now on."""
        self._mappings = mappings
        self._rules_changed()

    def set_features(self, features: Features) -> None:
        """Use other features from now on."""
        self._features = features
        self.offers.features = features
        self.offers.rules.active = features.device_taint_rules
        self._everything_changed()

    def doubt(self) -> None:
        """A question was broken off: what it may have left half noted is worked out anew.

        What is noted in one step stays: findings about devices, boards, what each node is offered.
        """
        self.orders.clear()
        self.offers.states.forget()

    def _rules_changed(self) -> None:
        self.memo.clear()
        self.rules_version += 1
        self.version += 1

    def _everything_changed(self) -> None:
        self.offers.reset()
        self._rules_changed()

    # -- questions -------------------------------------------------------------------------------

    @property
    def features(self) -> Features:
        """The gates that count."""
        return self._features

    @property
    def mappings(self) -> Mappings:
        """The mappings that count."""
        return self._mappings

    @property
    def withholds_plugged(self) -> bool:
        """Whether devices that a device plugin of their node offers as well are not given."""
        return self.offers.withholds

    @property
    def classes(self) -> Mapping[str, DeviceClass]:
        """The classes by name."""
        return MappingProxyType(self._classes)

    def devices(self) -> Iterator[DeviceView]:
        """Every device of every pool's newest generation, in no particular order."""
        return (
            device.view_in(pool.key.pool)
            for pool in self.offers.pools.values()
            for device in pool.newest_devices()
        )

    def device(self, key: DeviceKey) -> OfferedDevice | None:
        """A device of a pool's newest generation, by its full name."""
        pool = self.offers.pools.get(key.pool_key)
        devices = pool.newest_devices() if pool is not None else ()
        return next((device for device in devices if device.name == key.device), None)

    def holders(self, device: DeviceKey) -> tuple[Holder, ...]:
        """Who holds the device or shares of it, sorted."""
        return tuple(sorted(self._holders.get(device, ())))

    def holds(self, namespace: str, name: str) -> tuple[Hold, ...]:
        """What a claim holds."""
        return self._claims.get((namespace, name), ())

    def asks_alike(self, namespace: str, name: str, claim: ResourceClaim) -> bool:
        """Whether a holder and this claim were both made from templates and ask for the same."""
        wishes = self._generated.get((namespace, name))
        return wishes is not None and wishes == wishes_of_generated(claim)

    def pools(self) -> tuple[PoolStatus, ...]:
        """Every pool and what became of it, sorted."""
        return tuple(
            PoolStatus(
                key,
                sum(1 for _ in pool.newest_devices()),
                *((refused.cause, refused.detail) if (refused := pool.status(self._features)) else ()),
            )
            for key, pool in sorted(self.offers.pools.items())
            if pool.slices
        )

    def dual_modes(self, node: str) -> tuple[DualMode, ...]:
        """The drivers whose devices on the node are offered by device plugin too, sorted."""
        return self.offers.dual_modes(node)

    def slice_nodes(self) -> frozenset[str]:
        """The names of all nodes that slices, or devices in them, name."""
        return frozenset(node for published in self.offers.slices() for node in published.nodes())

    def published_attributes(self) -> frozenset[str]:
        """The qualified names of all attributes that devices publish."""
        contents = {id(published.content): published.content for published in self.offers.slices()}
        return frozenset(
            name
            for content in contents.values()
            for device in content.devices
            for name in device.view.attributes
        )


def holds_in(allocation: Mapping[str, Any]) -> tuple[Hold, ...]:
    """What an allocation, as JSON, holds; devices with admin access are not held."""
    results = [DeviceResult.model_validate(result) for result in allocation["devices"]["results"]]
    return tuple(_hold(result) for result in results if not result.admin_access)


def wishes_of_generated(claim: ResourceClaim) -> bytes | None:
    """What a claim that was made from a template asks for, in short; None for any other claim."""
    if POD_CLAIM_NAME not in claim.metadata.annotations:
        return None
    return blake2b(claim.spec.model_dump_json().encode(), digest_size=16).digest()


def _hold(result: DeviceResult) -> Hold:
    share = result.share_id or ""
    consumed = tuple(sorted(_amounts(result.consumed_capacity).items())) if share else ()
    return Hold(DeviceKey(result.driver, result.pool, result.device), result.request, share, consumed)


def _amounts(given: Mapping[str, Amount]) -> dict[str, int]:
    """Amounts in billionths; what cannot be read counts as nothing, so that the device stays held."""
    amounts = {}
    for name, raw in given.items():
        try:
            amounts[name] = Quantity.parse(raw).nano
        except ValueError:
            continue
    return amounts
