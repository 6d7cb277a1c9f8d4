"""Whether a change could help a pod whose search was cut: only then is it worth another search.

A change helps where it brings a device that a request of the pod could take on a node that the pod can use,
a node that it could not use before, a class that a request names, or a mapping that a constraint names.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from dovetail.api.claims import ExactDeviceRequest, ResourceClaim
from dovetail.api.mappings import DerivedAttribute
from dovetail.api.meta import KubernetesObject
from dovetail.api.nodes import Node
from dovetail.api.pods import Pod
from dovetail.api.slices import DeviceTaintRule, ResourceSlice
from dovetail.core.asking import Part, parts_of, selectors_for
from dovetail.core.budget import Budget
from dovetail.core.candidates import Party, candidates_for, selectors_of
from dovetail.core.cases import case_of
from dovetail.core.changes import Change
from dovetail.core.decisions import ObjectKey
from dovetail.core.footprints import footprint_of
from dovetail.core.ours import attribute_of
from dovetail.core.plugins import plugin_resources
from dovetail.core.pools import Pool
from dovetail.core.published import OfferedDevice
from dovetail.core.sources import Expressions
from dovetail.core.taints import selects
from dovetail.core.values import DeviceKey, PoolKey
from dovetail.core.world import World

OF_NODES = frozenset(
    {"Pod", "Node", "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "Namespace"}
)
"""Kinds that decide which nodes a pod can use."""


def known_of(world: World, kind: str, key: ObjectKey) -> KubernetesObject | None:
    """What the world knows of an object now."""
    match kind:
        case "Pod":
            return world.pods.get(key)
        case "ResourceClaim":
            return world.claims.get(key)
        case "Node":
            state = world.nodes.find(key[1])
            return state.node if state is not None else None
        case _:
            return world.others.get(kind, {}).get(key)


def usable_nodes(world: World, key: ObjectKey) -> frozenset[str]:
    """The nodes that a pod can use now, whatever devices they have."""
    pod = world.pods.get(key)
    return frozenset() if pod is None else _usable(world, pod)


def concerned(
    world: World,
    pods: Iterable[tuple[ObjectKey, Collection[str]]],
    changes: Collection[Change],
    budget: Budget,
) -> tuple[ObjectKey, ...]:
    """The pods that a change could help; each comes with the nodes that it could use when it was cut.

    Raises `BudgetSpent`.
    """
    return tuple(
        key
        for key, nodes in pods
        if (pod := world.pods.get(key)) is not None and _Wishes(world, pod, nodes, budget).are_met_by(changes)
    )


class _Wishes:
    """What one pod could use."""

    def __init__(self, world: World, pod: Pod, nodes: Collection[str], budget: Budget) -> None:
        self._world = world
        self._pod = pod
        self._nodes = nodes
        self._budget = budget
        self._specs = [each.claim.spec for each in case_of(world, pod).unallocated if each.claim is not None]
        self._parts = [part for spec in self._specs for part in parts_of(spec)]
        self._expressions = Expressions(world.features, world.mappings)

    def are_met_by(self, changes: Iterable[Change]) -> bool:
        """Whether one of the changes could help."""
        return any(self._is_met_by(change) for change in changes)

    @cached_property
    def _usable(self) -> frozenset[str]:
        return _usable(self._world, self._pod)

    def _is_met_by(self, change: Change) -> bool:
        self._budget.spend()
        after = known_of(self._world, change.kind, change.key)
        if change.kind in OF_NODES and not self._usable <= set(self._nodes):
            return True
        match change.kind:
            case "Node":
                return self._is_unplugged(change, after)
            case "DeviceClass":
                return any(part.device_class_name == change.key[1] for part in self._parts)
            case "DerivedAttribute":
                return any(self._names(body) for body in (change.before, after))
            case _:
                return any(self._takes(key) for key in _devices_in(self._world, change, after))

    def _is_unplugged(self, change: Change, after: KubernetesObject | None) -> bool:
        """A device plugin of a node came or went: what it offers is not given by DRA too."""
        if not isinstance(after, Node) or change.key[1] not in self._usable:
            return False
        return not isinstance(change.before, Node) or plugin_resources(change.before) != plugin_resources(
            after
        )

    def _names(self, mapping: KubernetesObject | None) -> bool:
        return isinstance(mapping, DerivedAttribute) and any(
            attribute_of(constraint) == mapping.spec.attribute
            for spec in self._specs
            for constraint in spec.devices.constraints
        )

    def _takes(self, key: DeviceKey) -> bool:
        pool = self._world.inventory.offers.pools.get(key.pool_key)
        if pool is None or not self._reaches(pool):
            return False
        device = next((each for each in pool.newest_devices() if each.name == key.device), None)
        return device is not None and any(self._selects(part, device) for part in self._parts)

    def _reaches(self, pool: Pool) -> bool:
        """The pool is, or may be, on a node that the pod can use."""
        nodes = {published.reach.node for published in pool.slices.values()}
        return not all(nodes) or not self._usable.isdisjoint(filter(None, nodes))

    def _selects(self, part: Part, device: OfferedDevice) -> bool:
        """Class and selectors let the device through; an expression that fails does not."""
        self._budget.spend()
        if isinstance(part, ExactDeviceRequest) and part.admin_access:
            return False
        device_class = self._world.inventory.classes.get(part.device_class_name)
        return device_class is not None and all(
            selector.cel is None or self._is_true(selector.cel.expression, device)
            for selector in selectors_for(device_class, part)
        )

    def _is_true(self, expression: str, device: OfferedDevice) -> bool:
        program = self._expressions.selector(expression)
        if isinstance(program, str):
            return False
        return self._world.inventory.memory.matches(program, device.view) is True


def _usable(world: World, pod: Pod) -> frozenset[str]:
    case = case_of(world, pod)
    footprint = world.footprints.get(pod.key) or footprint_of(pod)
    bound = frozenset(filter(None, [pod.spec.node_name]))
    return frozenset(candidates_for(world, Party((footprint,), selectors_of(case.allocated), bound)).usable)


def _devices_in(world: World, change: Change, after: KubernetesObject | None) -> Iterator[DeviceKey]:
    """The devices that a change may have brought."""
    match change.kind:
        case "ResourceClaim":
            yield from _held(change.before)
        case "ResourceSlice":
            yield from _published(world, change.before, after)
        case "DeviceTaintRule":
            yield from _tainted(world, (change.before, after))
        case _:
            return


def _held(claim: KubernetesObject | None) -> Iterator[DeviceKey]:
    """What a claim held that holds it no longer."""
    allocation = claim.status.allocation if isinstance(claim, ResourceClaim) else None
    for result in allocation.devices.results if allocation is not None else ():
        if not result.admin_access:
            yield DeviceKey(result.driver, result.pool, result.device)


def _published(
    world: World, before: KubernetesObject | None, after: KubernetesObject | None
) -> Iterator[DeviceKey]:
    """The devices that are new or differ; all of the pool where it may be complete only now."""
    slices = [each for each in (before, after) if isinstance(each, ResourceSlice)]
    if (
        isinstance(before, ResourceSlice)
        and isinstance(after, ResourceSlice)
        and _is_same_pool(before, after)
    ):
        old = {device.name: device for device in before.spec.devices}
        changed = [device.name for device in after.spec.devices if old.get(device.name) != device]
        yield from (DeviceKey(after.spec.driver, after.spec.pool.name, name) for name in changed)
        return
    for key in {PoolKey(each.spec.driver, each.spec.pool.name) for each in slices}:
        pool = world.inventory.offers.pools.get(key)
        for offered in pool.newest_devices() if pool is not None else ():
            yield DeviceKey(key.driver, key.pool, offered.name)


def _is_same_pool(before: ResourceSlice, after: ResourceSlice) -> bool:
    """The slices differ in nothing but their devices."""
    return before.spec.model_copy(update={"devices": ()}) == after.spec.model_copy(update={"devices": ()})


def _tainted(world: World, rules: Iterable[KubernetesObject | None]) -> Iterator[DeviceKey]:
    """The devices that a rule is, or was, about."""
    for rule in rules:
        selector = rule.spec.device_selector if isinstance(rule, DeviceTaintRule) else None
        if selector is None:
            continue
        for key, pool in world.inventory.offers.pools.items():
            if selector.driver in (None, key.driver) and selector.pool in (None, key.pool):
                for device in pool.newest_devices():
                    found = DeviceKey(key.driver, key.pool, device.name)
                    if selects(selector, found):
                        yield found
