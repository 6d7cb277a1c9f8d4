"""Fields that the API server leaves out of new objects while their feature gates are off."""

from collections.abc import Iterator
from typing import Any, Final

from dovetail.core.features import Features

Body = dict[str, Any]
Dropped = Iterator[tuple[str, str]]
"""The gate that is off, and the field that is left out."""

_REQUEST: Final = (
    ("DRADeviceTaints", "tolerations"),
    ("DRAConsumableCapacity", "capacity"),
    ("DRADerivedAttributes", "derivedAttributes"),
)
_DEVICE: Final = (
    ("DRADeviceTaints", "taints"),
    ("DRAPartitionableDevices", "consumesCounters"),
    ("DRAPartitionableDevices", "nodeName"),
    ("DRAPartitionableDevices", "nodeSelector"),
    ("DRAPartitionableDevices", "allNodes"),
    ("DRADeviceBindingConditions", "bindingConditions"),
    ("DRADeviceBindingConditions", "bindingFailureConditions"),
    ("DRADeviceBindingConditions", "bindsToNode"),
    ("DRAConsumableCapacity", "allowMultipleAllocations"),
    ("DRANodeAllocatableResources", "nodeAllocatableResources"),
)
_SLICE: Final = (
    ("DRAPartitionableDevices", "sharedCounters"),
    ("DRAPartitionableDevices", "perDeviceNodeSelection"),
    ("DRAPartitionableDevicesType", "partitionTypeAttribute"),
    ("DRAOptionalNodeOperations", "skipNodeOperations"),
)
_LISTS: Final = ("bools", "ints", "strings", "versions")


def drop(kind: str, body: Body, features: Features, *, keep_lists: bool) -> Dropped:
    """Take the fields out of a new object, and say which; with `keep_lists`, no lists of attributes."""
    spec, off = body.get("spec", {}), _off(features)
    if keep_lists:
        off -= {"DRAListTypeAttributes"}
    match kind:
        case "ResourceClaim":
            yield from _claim(spec, off)
        case "ResourceClaimTemplate":
            yield from _claim(spec.get("spec", {}), off)
        case "ResourceSlice":
            yield from _slice(spec, off)
        case "DeviceClass":
            yield from _take(spec, (("DRAExtendedResource", "extendedResourceName"),), off)
        case _:
            pass


def _off(features: Features) -> frozenset[str]:
    """The gates that are off; one that needs another is off with it."""
    known = {gate for fields in (_REQUEST, _DEVICE, _SLICE) for gate, _ in fields}
    off = (known | {"DRAPrioritizedList", "DRAAdminAccess", "DRAExtendedResource"}) - set(features.gates)
    off |= {"DRADeviceCompatibilityGroups", "DRAListTypeAttributes"} - set(features.gates)
    if not features.device_status:
        off.add("DRADeviceBindingConditions")
    return frozenset(off)


def _claim(spec: Body, off: frozenset[str]) -> Dropped:
    devices = spec.get("devices", {})
    for constraint in devices.get("constraints", []):
        yield from _take(constraint, (("DRAConsumableCapacity", "distinctAttribute"),), off)
    for request in devices.get("requests", []):
        yield from _take(request, (("DRAPrioritizedList", "firstAvailable"),), off)
        if "exactly" in request:
            yield from _take(request["exactly"], (*_REQUEST, ("DRAAdminAccess", "adminAccess")), off)
        for alternative in request.get("firstAvailable", []):
            yield from _take(alternative, _REQUEST, off)


def _slice(spec: Body, off: frozenset[str]) -> Dropped:
    yield from _take(spec, _SLICE, off)
    for device in spec.get("devices", []):
        yield from _take(device, _DEVICE, off)
        for consumption in device.get("consumesCounters", []):
            yield from _take(consumption, (("DRADeviceCompatibilityGroups", "compatibilityGroups"),), off)
        for capacity in device.get("capacity", {}).values():
            yield from _take(capacity, (("DRAConsumableCapacity", "requestPolicy"),), off)
        if "DRAListTypeAttributes" in off:
            lists = tuple(("DRAListTypeAttributes", field) for field in _LISTS)
            for attribute in device.get("attributes", {}).values():
                yield from _take(attribute, lists, off)


def _take(found: Body, fields: tuple[tuple[str, str], ...], off: frozenset[str]) -> Dropped:
    for gate, field in fields:
        if gate in off and field in found:
            del found[field]
            yield gate, field
