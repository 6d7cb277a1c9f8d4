"""Devices that a pod asks for as extended resources, which kube-scheduler allocates itself (KEP-5004).

They are planned with the pod's claims, so that its node serves both, and never written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dovetail.api.claims import (
    EXTENDED_RESOURCE_CLAIM,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from dovetail.api.meta import ObjectMeta
from dovetail.core.decisions import ObjectKey
from dovetail.core.footprints import Footprint
from dovetail.core.judging import CLASS_RESOURCE

if TYPE_CHECKING:
    from dovetail.core.world import World

Group = tuple[ResourceClaim | None, tuple[str, ...]]
"""Nodes, and the claim that kube-scheduler will make for the pod there."""


@dataclass(frozen=True, slots=True)
class ExtendedHold:
    """Devices that count as held by a pod until kube-scheduler has made the claim for them."""

    node: str
    claim: ObjectKey
    """Its key in the inventory: no claim of this name can exist."""


def asks_for_extended(footprint: Footprint) -> bool:
    """Whether the pod, which has no node yet, asks for a resource that a DeviceClass may serve."""
    return not footprint.pod.spec.node_name and any(
        "/" in resource and not resource.startswith("hugepages-") for resource in footprint.requests
    )


def groups_of(world: "World", footprint: Footprint, nodes: tuple[str, ...]) -> tuple[Group, ...]:
    """The nodes by what of the pod's extended resources comes from devices there.

    A node whose device plugin offers the resource serves it from that; such a resource is capacity.
    """
    classes = _classes_of(world, footprint)
    held = world.extended_holds.get(footprint.key)
    if not classes or (held is not None and nodes == (held.node,)):
        return ((None, nodes),)
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in nodes:
        groups.setdefault(_served(world, classes, name), []).append(name)
    return tuple(
        (_claim(footprint, {resource: classes[resource] for resource in resources}), tuple(names))
        for resources, names in groups.items()
    )


def served_on(world: "World", footprint: Footprint, node: str) -> tuple[str, ...]:
    """The pod's extended resources that devices of the node serve, sorted."""
    return _served(world, _classes_of(world, footprint), node)


def _served(world: "World", classes: Mapping[str, str], node: str) -> tuple[str, ...]:
    state = world.nodes.find(node)
    offered = (state.allocatable if state is not None else None) or {}
    return tuple(sorted(resource for resource in classes if not offered.get(resource)))


def classes_by_resource(classes: Mapping[tuple[str, str], object]) -> dict[str, str]:
    """The class that serves each extended resource: of several, the newest, then the first by name."""
    found: dict[str, DeviceClass] = {}
    by_name = sorted(
        (each for each in classes.values() if isinstance(each, DeviceClass)), key=lambda c: c.key
    )
    for each in sorted(by_name, key=lambda c: c.metadata.creation_timestamp or "", reverse=True):
        if each.spec.extended_resource_name:
            found.setdefault(each.spec.extended_resource_name, each)
    return {resource: each.metadata.name for resource, each in found.items()}


def _classes_of(world: "World", footprint: Footprint) -> dict[str, str]:
    if not world.features.extended_resource:
        return {}
    known = world.class_of_resource
    found = {resource: known[resource] for resource in footprint.requests if resource in known}
    implicit = (resource for resource in footprint.requests if resource.startswith(CLASS_RESOURCE))
    return found | {resource: resource.removeprefix(CLASS_RESOURCE) for resource in implicit}


def _claim(footprint: Footprint, classes: Mapping[str, str]) -> ResourceClaim | None:
    if not classes:
        return None
    requests = tuple(
        DeviceRequest(
            name=resource,
            exactly=ExactDeviceRequest(
                device_class_name=classes[resource], count=footprint.requests[resource]
            ),
        )
        for resource in sorted(classes)
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            namespace=footprint.key[0],
            name=f"{footprint.key[1]}-extended-resources",
            annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        ),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)),
    )
