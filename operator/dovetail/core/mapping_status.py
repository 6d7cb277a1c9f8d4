"""What the status of a DerivedAttribute object says: whether it holds, and which devices it serves."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.api.text import harmless
from dovetail.core.attributes import CompiledMapping, Mappings, Missing, MissingCause
from dovetail.core.cel import Memory
from dovetail.core.conditions import Condition
from dovetail.core.devices import DeviceView
from dovetail.core.restrictions import UNRESTRICTED, Restrictions
from dovetail.core.rules import ANY_DRIVER, CompiledRule
from dovetail.core.shipped import shipped_mappings
from dovetail.core.values import DeviceKey, Kind

TYPES_DIFFER = "TypesDiffer"
"""Why a mapping does not cover its devices although each has a value."""

MAX_MESSAGE = 1024
"""Longer messages are cut: a status is read by people."""


@dataclass(frozen=True, slots=True)
class DriverCoverage:
    """How a mapping serves the devices of one driver, of those that a rule applies to.

    `devices` is the sum of the other counts.
    `example` names one device without a value and why, the worst cause first; empty where all have one.
    `kinds` are the types of the values, sorted; values of different types are never equal.
    """

    driver: str
    devices: int
    derived: int
    unknown: int
    not_published: int
    failed: int
    example: str = ""
    kinds: tuple[Kind, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The entry of `status.drivers`."""
        entry: dict[str, Any] = {
            "driver": self.driver,
            "devices": self.devices,
            "derived": self.derived,
            "unknown": self.unknown,
            "notPublished": self.not_published,
            "failed": self.failed,
        }
        return entry | ({"example": harmless(self.example)} if self.example else {})


_WORST_FIRST = (MissingCause.FAILED, MissingCause.UNKNOWN, MissingCause.NOT_PUBLISHED)


def coverage(
    mapping: CompiledMapping, devices: Iterable[DeviceView], memory: Memory
) -> tuple[DriverCoverage, ...]:
    """What each driver's devices get, sorted by driver; the same for every order of the devices (R-C1).

    A mapping that does not compile covers nothing: an empty tuple.
    """
    if not mapping.ready:
        return ()
    derived: dict[str, list[Kind]] = {}
    missing: dict[str, list[tuple[DeviceKey, Missing]]] = {}
    for device in devices:
        value = mapping.derive(device, memory)
        if not isinstance(value, Missing):
            derived.setdefault(device.key.driver, []).append(value.kind)
        elif value.cause is not MissingCause.NO_RULE:
            missing.setdefault(device.key.driver, []).append((device.key, value))
    return tuple(
        _driver_coverage(driver, derived.get(driver, []), missing.get(driver, []))
        for driver in sorted({*derived, *missing})
    )


def idle_rules(mapping: CompiledMapping, devices: Iterable[DeviceView], memory: Memory) -> tuple[str, ...]:
    """The rules for a driver by name that decide for none of its devices, each as `2 (dra.cpu)`, in order.

    A mapping that does not compile, and one that meets no device at all, has none.
    """
    found = [mapping.rule_for(device, memory) for device in devices]
    used = {rule.number for rule in found if isinstance(rule, CompiledRule)}
    return tuple(
        f"{rule.number} ({rule.driver})"
        for rule in mapping.rules
        if used and rule.number not in used and rule.driver != ANY_DRIVER
    )


def _driver_coverage(
    driver: str, derived: list[Kind], missing: list[tuple[DeviceKey, Missing]]
) -> DriverCoverage:
    counts = dict.fromkeys(_WORST_FIRST, 0)
    for _, reason in missing:
        counts[reason.cause] += 1
    worst = min(missing, key=lambda found: (_WORST_FIRST.index(found[1].cause), found[0]), default=None)
    return DriverCoverage(
        driver=driver,
        devices=len(derived) + len(missing),
        derived=len(derived),
        unknown=counts[MissingCause.UNKNOWN],
        not_published=counts[MissingCause.NOT_PUBLISHED],
        failed=counts[MissingCause.FAILED],
        example=_example(*worst) if worst else "",
        kinds=tuple(sorted(set(derived))),
    )


def _example(device: DeviceKey, missing: Missing) -> str:
    return _cut(f"device {device.device} of pool {device.pool}: {missing.detail}")


def publishers(attribute: str, devices: Iterable[DeviceView]) -> frozenset[str]:
    """The drivers that publish the attribute themselves, so that a mapping for it shadows them (R-C7)."""
    return frozenset(device.key.driver for device in devices if attribute in device.attributes)


def status_of(
    name: str,
    mappings: Mappings,
    covered: Iterable[DriverCoverage] = (),
    *,
    idle: Iterable[str] = (),
    published_by: Iterable[str] = (),
    restrictions: Restrictions = UNRESTRICTED,
    generation: int,
    now: str,
    previous: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The status that the object of this name should have.

    `covered` is `coverage` of the object's mapping, `idle` its `idle_rules`, `published_by` its `publishers`.
    `restrictions` are the operator's own, and the same for every object.
    `now` is an RFC 3339 time; a condition whose status is that of `previous` keeps its time.
    A mapping that does not hold serves nobody: its `drivers` are empty.
    Equal inputs give an equal status, so a caller writes only when it differs from what is stored.
    """
    drivers = tuple(covered)
    conditions = conditions_of(name, mappings, drivers, idle=idle, published_by=published_by)
    holds = conditions[0].status == "True"
    conditions += (restrictions.condition,)
    before = {known.get("type"): known for known in (previous or {}).get("conditions") or ()}
    return {
        "observedGeneration": generation,
        "conditions": [
            condition.dated(before.get(condition.type), generation=generation, now=now)
            for condition in conditions
        ],
        "drivers": [driver.as_json() for driver in drivers] if holds else [],
    }


def conditions_of(
    name: str,
    mappings: Mappings,
    covered: tuple[DriverCoverage, ...],
    *,
    idle: Iterable[str] = (),
    published_by: Iterable[str] = (),
) -> tuple[Condition, ...]:
    """Ready, Covered, and Shadows where a driver publishes the attribute too."""
    ready = _ready(name, mappings)
    if ready.status != "True":
        return (ready, Condition("Covered", "Unknown", "NotReady", "the mapping is not in use"))
    shadows = _shadows(mappings.objects[name].attribute, sorted(published_by))
    return (ready, _covered(mappings.objects[name], covered, tuple(idle)), *shadows)


def _ready(name: str, mappings: Mappings) -> Condition:
    if name in mappings.invalid:
        return Condition("Ready", "False", "Invalid", _cut(mappings.invalid[name]))
    mapping = mappings.objects.get(name)
    if mapping is None:
        return Condition("Ready", "Unknown", "NotRead", "the object has not been read yet")
    if name in mappings.duplicates:
        holder = mappings.duplicates[name]
        return Condition(
            "Ready",
            "False",
            "Duplicate",
            f"the older DerivedAttribute {holder!r} defines {mapping.attribute}",
        )
    if mapping.problems:
        problems = "; ".join(problem.message for problem in mapping.problems)
        return Condition("Ready", "False", "ExpressionInvalid", _cut(problems))
    replaces = mappings.shipped and mapping.attribute in _shipped_attributes()
    note = "; replaces the shipped mapping" if replaces else ""
    return Condition("Ready", "True", "Compiled", f"all expressions compile{note}")


def _covered(
    mapping: CompiledMapping, covered: tuple[DriverCoverage, ...], idle: tuple[str, ...]
) -> Condition:
    if not covered:
        named = ", ".join(sorted(mapping.drivers))
        return Condition(
            "Covered", "Unknown", "NoDevices", f"no rule applies to any device (drivers: {named})"
        )
    note = f"; no device is served by rule {', '.join(idle)}" if idle else ""
    if lacking := [driver for driver in covered if driver.derived < driver.devices]:
        words = "; ".join(
            f"{driver.driver}: {driver.devices - driver.derived} of {driver.devices} devices lack a value"
            f" ({driver.example})"
            for driver in lacking
        )
        kinds = f"; {differ}" if (differ := _different_kinds(covered)) else ""
        return Condition("Covered", "False", _worst_cause(lacking).value, _cut(words + kinds + note))
    if differ := _different_kinds(covered):
        return Condition("Covered", "False", TYPES_DIFFER, _cut(differ + note))
    total = sum(driver.devices for driver in covered)
    return Condition("Covered", "True", "AllDerived", _cut(f"all {total} devices have a value{note}"))


def _different_kinds(covered: tuple[DriverCoverage, ...]) -> str:
    """Which driver gets which types, where there is more than one, in words; else nothing."""
    if len({kind for driver in covered for kind in driver.kinds}) < 2:
        return ""
    each = ", ".join(
        f"{driver.driver} {' and '.join(kind.value for kind in driver.kinds)}"
        for driver in covered
        if driver.kinds
    )
    return f"the values have different types, which are never equal ({each})"


def _worst_cause(lacking: Iterable[DriverCoverage]) -> MissingCause:
    counts = [(driver.failed, driver.unknown, driver.not_published) for driver in lacking]
    return next(
        cause for position, cause in enumerate(_WORST_FIRST) if any(count[position] for count in counts)
    )


def _shadows(attribute: str, published_by: list[str]) -> tuple[Condition, ...]:
    if not published_by:
        return ()
    text = f"{', '.join(published_by)} publishes {attribute} itself; the mapping holds instead"
    return (Condition("Shadows", "True", "PublishedByDriver", _cut(text)),)


def _shipped_attributes() -> frozenset[str]:
    return frozenset(mapping.spec.attribute for mapping in shipped_mappings())


def _cut(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else text[: MAX_MESSAGE - 1] + "…"
