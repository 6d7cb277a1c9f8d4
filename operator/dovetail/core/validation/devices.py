"""What the API server refuses of a device in a ResourceSlice."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dovetail.core.features import Features
from dovetail.core.quantity import Quantity
from dovetail.core.validation import names
from dovetail.core.validation.faults import (
    Fault,
    Faults,
    missing,
    repeats,
    size,
    too_long,
    too_many,
    unknown_choice,
)
from dovetail.core.validation.placement import places
from dovetail.core.validation.policies import request_policy

Body = Mapping[str, Any]

MOST_ENTRIES: Final = 32
MOST_VALUES: Final = 48
MOST_TAINTS: Final = 16
MOST_CONSUMPTIONS: Final = 2
MOST_COUNTERS: Final = 32
MOST_GROUPS: Final = 2
MOST_CONDITIONS: Final = 4
LONGEST_VALUE: Final = 64

SINGLE: Final = ("int", "bool", "string", "version")
LISTS: Final = ("ints", "bools", "strings", "versions")
EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
PLACES: Final = ("nodeName", "nodeSelector", "allNodes")

_NUMBER: Final = r"(0|[1-9][0-9]*)"
_WORD: Final = r"(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_WORD}(\.{_WORD})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)


def device(found: Body, at: str, features: Features, *, places_itself: bool) -> Faults:
    """`places_itself`: the slice leaves it to each device to say on which nodes it is."""
    attributes, capacities = found.get("attributes", {}), found.get("capacity", {})
    if reason := names.label(found.get("name", "")):
        yield Fault(f"{at}.name", reason)
    if (entries := len(attributes) + len(capacities)) > MOST_ENTRIES:
        yield Fault(at, f"it has {entries} attributes and capacities, and {MOST_ENTRIES} is the most")
    if (values := sum(map(_value_count, attributes.values()))) > MOST_VALUES:
        yield Fault(at, f"its attributes have {values} values, and {MOST_VALUES} is the most")
    for name, attribute in attributes.items():
        if reason := names.qualified(name):
            yield Fault(f"{at}.attributes", reason)
        yield from _attribute(attribute, f"{at}.attributes[{name}]")
    shared = found.get("allowMultipleAllocations", False)
    for name, capacity in capacities.items():
        if reason := names.qualified(name):
            yield Fault(f"{at}.capacity", reason)
        yield from _capacity(capacity, f"{at}.capacity[{name}].requestPolicy", features, shared=shared)
    if len(taints := found.get("taints", [])) > MOST_TAINTS:
        yield too_many(f"{at}.taints", len(taints), MOST_TAINTS)
    else:
        for index, each in enumerate(taints):
            yield from taint(each, f"{at}.taints[{index}]")
    yield from _consumptions(found.get("consumesCounters", []), f"{at}.consumesCounters")
    if places_itself:
        yield from places(found, at, PLACES)
    elif any(field in found for field in PLACES):
        yield Fault(at, f"{', '.join(PLACES)} are for slices with perDeviceNodeSelection")
    yield from _conditions(found, at)
    yield from _node_resources(found.get("nodeAllocatableResources", {}), capacities, at)


def taint(found: Body, at: str) -> Faults:
    """A taint of a device or of a DeviceTaintRule."""
    if reason := names.key(found.get("key", "")):
        yield Fault(f"{at}.key", reason)
    if reason := names.label_value(found.get("value", "")):
        yield Fault(f"{at}.value", reason)
    effect = found.get("effect", "")
    if not effect:
        yield missing(f"{at}.effect")
    elif effect not in EFFECTS:
        yield unknown_choice(f"{at}.effect", effect, EFFECTS)


def counters(found: Body, at: str, most: int) -> Faults:
    """The counters of a set, or what a device takes of them."""
    if not found:
        yield missing(at)
    elif len(found) > most:
        yield too_many(at, len(found), most)
    for name in found:
        if reason := names.label(name):
            yield Fault(at, reason)


def _value_count(attribute: Body) -> int:
    return sum(len(attribute.get(field, ())) for field in LISTS) or 1


def _attribute(found: Body, at: str) -> Faults:
    kinds = [field for field in (*SINGLE, *LISTS) if field in found]
    if len(kinds) != 1:
        yield Fault(at, f"exactly one of {', '.join((*SINGLE, *LISTS))} is expected, not {len(kinds)}")
    if "string" in found:
        yield from _text(found["string"], f"{at}.string")
    if "version" in found:
        yield from _version(found["version"], f"{at}.version")
    for field in LISTS:
        if field in found and not found[field]:
            yield Fault(f"{at}.{field}", "it is empty")
    check: Callable[[str, str], Faults]
    for field, check in (("strings", _text), ("versions", _version)):
        for index, value in enumerate(found.get(field, ())):
            yield from check(value, f"{at}.{field}[{index}]")


def _text(value: str, at: str) -> Faults:
    if size(value) > LONGEST_VALUE:
        yield too_long(at, LONGEST_VALUE)


def _version(value: str, at: str) -> Faults:
    if not _SEMVER.fullmatch(value):
        yield Fault(at, f"{value!r} is no version as semver.org defines it")
    yield from _text(value, at)


def _capacity(found: Body, at: str, features: Features, *, shared: bool) -> Faults:
    policy = found.get("requestPolicy")
    if policy is None:
        return
    if shared:
        yield from request_policy(policy, Quantity.parse(found.get("value", "0")), at, features)
    else:
        yield Fault(at, "it is for devices with allowMultipleAllocations")


def _consumptions(found: Sequence[Body], at: str) -> Faults:
    if len(found) > MOST_CONSUMPTIONS:
        yield too_many(at, len(found), MOST_CONSUMPTIONS)
        return
    for index, each in enumerate(found):
        here, name = f"{at}[{index}]", each.get("counterSet", "")
        if not name:
            yield missing(f"{here}.counterSet")
        elif reason := names.label(name):
            yield Fault(f"{here}.counterSet", reason)
        yield from counters(each.get("counters", {}), f"{here}.counters", MOST_COUNTERS)
        groups = each.get("compatibilityGroups", [])
        if len(groups) > MOST_GROUPS:
            yield too_many(f"{here}.compatibilityGroups", len(groups), MOST_GROUPS)
            continue
        for number, group in enumerate(groups):
            if reason := names.label(group):
                yield Fault(f"{here}.compatibilityGroups[{number}]", reason)
        yield from repeats(groups, f"{here}.compatibilityGroups")
    yield from repeats([each.get("counterSet", "") for each in found], at)


def _conditions(found: Body, at: str) -> Faults:
    """What has to become true before a pod is bound, and what ends the waiting: both, or neither."""
    fields = ("bindingConditions", "bindingFailureConditions")
    both = [found.get(field, []) for field in fields]
    for field, conditions, others in zip(fields, both, reversed(both), strict=True):
        if len(conditions) > MOST_CONDITIONS:
            yield too_many(f"{at}.{field}", len(conditions), MOST_CONDITIONS)
        else:
            for index, condition in enumerate(conditions):
                if reason := names.key(condition):
                    yield Fault(f"{at}.{field}[{index}]", reason)
        yield from repeats(conditions, f"{at}.{field}")
        if others and not conditions:
            yield missing(f"{at}.{field}")
    for index, condition in enumerate(both[1]):
        if condition in both[0]:
            yield Fault(f"{at}.{fields[1]}[{index}]", f"{condition!r} is among {fields[0]}, too")


def _node_resources(found: Mapping[str, Body], capacities: Body, device_at: str) -> Faults:
    """What a device takes of its node's own resources (DRANodeAllocatableResources)."""
    for name, each in found.items():
        at = f"{device_at}.nodeAllocatableResources[{name}]"
        if name not in ("cpu", "memory") and not name.startswith("hugepages-"):
            yield Fault(at, f"{name!r} is not cpu, memory or hugepages-SIZE")
        if "mapping" not in each and "overhead" not in each:
            yield Fault(at, "mapping or overhead is missing")
        if "mapping" in each:
            yield from _node_mapping(each["mapping"], capacities, f"{at}.mapping")
        if "overhead" in each:
            yield from _node_overhead(each["overhead"], f"{at}.overhead")


def _node_mapping(found: Body, capacities: Body, at: str) -> Faults:
    key = found.get("capacityKey")
    if (key is None) == ("deviceMultiplier" not in found):
        yield Fault(at, "exactly one of capacityKey and deviceMultiplier is expected")
    if key is not None and key not in capacities:
        yield Fault(f"{at}.capacityKey", f"the device has no capacity {key!r}")
    if key is None and "capacityMultiplier" in found:
        yield missing(f"{at}.capacityKey")
    if key is not None and "capacityMultiplier" not in found:
        yield missing(f"{at}.capacityMultiplier")
    elif key is not None and Quantity.parse(found["capacityMultiplier"]).sign <= 0:
        yield Fault(f"{at}.capacityMultiplier", "it is not greater than zero")
    if "deviceMultiplier" in found and Quantity.parse(found["deviceMultiplier"]).sign <= 0:
        yield Fault(f"{at}.deviceMultiplier", "it is not greater than zero")


def _node_overhead(found: Body, at: str) -> Faults:
    if "perPod" not in found and "perContainer" not in found:
        yield Fault(at, "perPod or perContainer is missing")
    for field in ("perPod", "perContainer"):
        if field in found and Quantity.parse(found[field]).sign < 0:
            yield Fault(f"{at}.{field}", "it is negative")
