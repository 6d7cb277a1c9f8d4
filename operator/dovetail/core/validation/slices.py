"""What the API server refuses of a ResourceSlice's specification."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dovetail.core.features import Features
from dovetail.core.validation import names
from dovetail.core.validation.devices import LISTS, counters, device
from dovetail.core.validation.faults import Fault, Faults, missing, repeats, too_many, unknown_choice
from dovetail.core.validation.placement import places

Body = Mapping[str, Any]

MOST_DEVICES: Final = 128
MOST_ADVANCED_DEVICES: Final = 64
MOST_COUNTER_SETS: Final = 8
MOST_COUNTERS: Final = 32

PLACES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
OPERATIONS: Final = ("*", "NodePrepareResources", "NodeUnprepareResources")


def slice_spec(spec: Body, at: str, features: Features) -> Faults:
    """The specification of a slice, without the fields of gates that are off."""
    if not spec.get("driver"):
        yield missing(f"{at}.driver")
    elif reason := names.driver(spec["driver"]):
        yield Fault(f"{at}.driver", reason)
    yield from _pool(spec.get("pool", {}), f"{at}.pool")
    yield from places(spec, at, PLACES)
    if len(spec.get("nodeSelector", {}).get("nodeSelectorTerms", [0])) != 1:
        yield Fault(f"{at}.nodeSelector.nodeSelectorTerms", "exactly one term is expected")
    if "sharedCounters" in spec and "devices" in spec:
        yield Fault(at, "sharedCounters and devices exclude each other")
    yield from _devices(spec, f"{at}.devices", features)
    yield from _counter_sets(spec.get("sharedCounters", []), f"{at}.sharedCounters")
    if "partitionTypeAttribute" in spec:
        yield from _partition_type(spec, at)
    yield from _skipped(spec.get("skipNodeOperations", []), f"{at}.skipNodeOperations")


def _pool(found: Body, at: str) -> Faults:
    if not found.get("name"):
        yield missing(f"{at}.name")
    elif reason := names.pool(found["name"]):
        yield Fault(f"{at}.name", reason)
    if found.get("resourceSliceCount", 0) <= 0:
        yield Fault(f"{at}.resourceSliceCount", "it is not greater than zero")
    if found.get("generation", 0) < 0:
        yield Fault(f"{at}.generation", "it is negative")


def _devices(spec: Body, at: str, features: Features) -> Faults:
    found: Sequence[Body] = spec.get("devices", [])
    most = MOST_ADVANCED_DEVICES if any(map(_is_advanced, found)) else MOST_DEVICES
    if len(found) > most:
        yield too_many(at, len(found), most)
        return
    places_itself = spec.get("perDeviceNodeSelection", False)
    for index, each in enumerate(found):
        yield from device(each, f"{at}[{index}]", features, places_itself=places_itself)
    yield from repeats([each.get("name", "") for each in found], at)


def _is_advanced(found: Body) -> bool:
    """Taints, counters and lists make devices larger, so that a slice holds fewer."""
    return bool(
        found.get("taints")
        or found.get("consumesCounters")
        or any(not attribute.keys().isdisjoint(LISTS) for attribute in found.get("attributes", {}).values())
    )


def _counter_sets(found: Sequence[Body], at: str) -> Faults:
    if len(found) > MOST_COUNTER_SETS:
        yield too_many(at, len(found), MOST_COUNTER_SETS)
        return
    for index, each in enumerate(found):
        name = each.get("name", "")
        if not name:
            yield missing(f"{at}[{index}].name")
        elif reason := names.label(name):
            yield Fault(f"{at}[{index}].name", reason)
        yield from counters(each.get("counters", {}), f"{at}[{index}].counters", MOST_COUNTERS)
    yield from repeats([each.get("name", "") for each in found], at)


def _partition_type(spec: Body, at: str) -> Faults:
    """The attribute that says what kind of partition a device is: every device that consumes has it."""
    name, consuming = spec["partitionTypeAttribute"], False
    if reason := names.fully_qualified(name):
        yield Fault(f"{at}.partitionTypeAttribute", reason)
        return
    bare = name.removeprefix(f"{spec.get('driver', '')}/")
    for index, each in enumerate(spec.get("devices", [])):
        if not each.get("consumesCounters"):
            continue
        consuming = True
        attributes = each.get("attributes", {})
        attribute = attributes.get(name, attributes.get(bare))
        if attribute is None or "string" not in attribute:
            reason = "it is missing" if attribute is None else "a string is expected"
            yield Fault(f"{at}.devices[{index}].attributes[{name}]", reason)
    if not consuming:
        yield Fault(f"{at}.partitionTypeAttribute", "no device consumes counters")


def _skipped(found: Sequence[str], at: str) -> Faults:
    for index, operation in enumerate(found):
        if operation not in OPERATIONS:
            yield unknown_choice(f"{at}[{index}]", operation, OPERATIONS)
    yield from repeats(found, at)
    if "NodePrepareResources" in found and not {"*", "NodeUnprepareResources"} & set(found):
        yield Fault(at, "NodePrepareResources goes only with NodeUnprepareResources")
