"""What the status of a DerivedAttribute object tells its owner."""

from collections.abc import Iterable
from typing import Any

from dovetail.api.mappings import DerivedAttribute
from dovetail.core.attributes import Mappings
from dovetail.core.cel import Memory
from dovetail.core.devices import DeviceView
from dovetail.core.mapping_status import (
    MAX_MESSAGE,
    DriverCoverage,
    coverage,
    idle_rules,
    publishers,
    status_of,
)
from dovetail.core.values import Kind
from tests.mappings.worlds import device, mapping, rule

EARLIER, NOW = "2026-05-01T10:00:00Z", "2026-05-01T11:00:00Z"
READ_X = 'device.attributes["a.example"].x'
GUARDED_X = f"has({READ_X}) ? {READ_X} : []"


def covered(subject: DerivedAttribute, *devices: DeviceView) -> tuple[DriverCoverage, ...]:
    compiled = Mappings.of((subject,), shipped=False).objects[subject.metadata.name]
    return coverage(compiled, devices, Memory())


def status(
    subject: DerivedAttribute,
    *devices: DeviceView,
    mappings: Mappings | None = None,
    published_by: Iterable[str] = (),
    now: str = NOW,
    previous: dict[str, Any] | None = None,
) -> dict[str, Any]:
    compiled = Mappings.of((subject,), shipped=False).objects.get(subject.metadata.name)
    return status_of(
        subject.metadata.name,
        mappings or Mappings.of((subject,), shipped=False),
        covered(subject, *devices),
        idle=idle_rules(compiled, devices, Memory()) if compiled is not None else (),
        published_by=published_by,
        generation=1,
        now=now,
        previous=previous,
    )


def condition(found: dict[str, Any], kind: str) -> dict[str, Any]:
    """The one condition of this type."""
    conditions: list[dict[str, Any]] = found["conditions"]
    (only,) = [condition for condition in conditions if condition["type"] == kind]
    return only


def test_coverage_counts_each_fate_of_a_device() -> None:
    """The counts add up to the devices that a rule applies to; other drivers do not appear."""
    subject = mapping(rule("a.example", GUARDED_X, when='device.name != "skip"'), unknown=[-1])

    (only,) = covered(
        subject,
        device("a.example", "one", x=1),
        device("a.example", "two", x=2),
        device("a.example", "none"),
        device("a.example", "unknown", x=-1),
        device("a.example", "skip", x=3),
        device("b.example", "other", x=1),
    )

    assert only == DriverCoverage(
        driver="a.example",
        devices=4,
        derived=2,
        unknown=1,
        not_published=1,
        failed=0,
        example="device unknown of pool node-1: -1 stands for unknown",
        kinds=(Kind.INT,),
    )


def test_coverage_does_not_depend_on_the_order_of_devices() -> None:
    """The example is the first failing device by driver, pool and name, whichever was seen first (R-C1)."""
    subject = mapping(rule("a.example", READ_X))
    devices = [device("a.example", name, pool=pool) for pool in ("p2", "p1") for name in ("b", "a")]

    onward, returning = covered(subject, *devices), covered(subject, *devices[::-1])

    assert onward == returning
    assert onward[0].failed == 4
    assert onward[0].example.startswith("device a of pool p1: rule 1 (a.example), expression: ")


def test_the_worst_cause_gives_the_example() -> None:
    """A failure is what its owner has to mend first."""
    subject = mapping(rule("a.example", READ_X), unknown=[-1])

    (only,) = covered(subject, device("a.example", "a", x=-1), device("a.example", "b"))

    assert only.example.startswith("device b of pool node-1")


def test_a_mapping_that_serves_all_its_devices_is_ready_and_covered() -> None:
    """Both conditions are true and the counts say how many devices that are."""
    found = status(mapping(rule("a.example", READ_X)), device("a.example", x=1))

    assert condition(found, "Ready")["status"] == "True"
    assert condition(found, "Covered")["status"] == "True"
    assert found["drivers"] == [
        {"driver": "a.example", "devices": 1, "derived": 1, "unknown": 0, "notPublished": 0, "failed": 0}
    ]


def test_a_device_without_a_value_is_named() -> None:
    """Covered is false, with the number of such devices and one example."""
    found = status(
        mapping(rule("a.example", READ_X)), device("a.example", "good", x=1), device("a.example", "bad")
    )

    not_covered = condition(found, "Covered")
    assert (not_covered["status"], not_covered["reason"]) == ("False", "Failed")
    assert "a.example: 1 of 2 devices lack a value (device bad of pool node-1: " in not_covered["message"]


def test_a_mapping_without_devices_does_not_claim_to_cover_any() -> None:
    """A driver name with a typing error shows: Covered is unknown and names the drivers of the rules."""
    found = status(mapping(rule("a.exmaple", "1")), device("a.example"))

    assert condition(found, "Covered")["status"] == "Unknown"
    assert condition(found, "Covered")["reason"] == "NoDevices"
    assert "a.exmaple" in condition(found, "Covered")["message"]


def test_values_of_different_types_do_not_count_as_covered() -> None:
    """Every device has a value, and no two of the drivers' can ever be equal: the drivers are named."""
    subject = mapping(rule("a.example", READ_X), rule("b.example", 'device.attributes["b.example"].x'))

    found = condition(status(subject, device("a.example", x="0"), device("b.example", x=0)), "Covered")
    alike = condition(status(subject, device("a.example", x=1), device("b.example", x=0)), "Covered")

    assert (found["status"], found["reason"]) == ("False", "TypesDiffer")
    assert "a.example string" in found["message"]
    assert "b.example int" in found["message"]
    assert alike["status"] == "True"


def test_different_types_are_told_beside_devices_without_a_value() -> None:
    """The reason is that of the devices; the message says both."""
    subject = mapping(rule("a.example", READ_X), rule("b.example", 'device.attributes["b.example"].x'))

    found = condition(
        status(subject, device("a.example", x="0"), device("a.example", "bad"), device("b.example", x=0)),
        "Covered",
    )

    assert found["reason"] == "Failed"
    assert "different types" in found["message"]


def test_a_rule_that_serves_no_device_is_named() -> None:
    """A typing error in one of several drivers, or a condition that never holds, does not hide."""
    subject = mapping(
        rule("a.exmaple", READ_X),
        rule("a.example", READ_X, when='device.name == "never"'),
        rule("a.example", READ_X),
        rule("*", "1"),
    )

    found = condition(status(subject, device("a.example", x=1)), "Covered")

    assert found["status"] == "True"
    assert "1 (a.exmaple), 2 (a.example)" in found["message"]
    assert "3 (" not in found["message"]
    assert "*" not in found["message"]


def test_a_mapping_that_does_not_compile_tells_where() -> None:
    """Ready is false with rule, field, line and column; nothing is said of coverage."""
    found = status(mapping(rule("a.example", "1"), rule("b.example", "1 +\n  )")), device("a.example"))

    ready = condition(found, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ExpressionInvalid")
    assert "rule 2 (b.example), expression: expression does not compile at line 2" in ready["message"]
    assert condition(found, "Covered")["status"] == "Unknown"
    assert found["drivers"] == []


def test_a_duplicate_names_the_object_that_holds() -> None:
    """The owner of the younger object learns where to look."""
    older = mapping(rule("*", "1"), name="older", created="2026-01-01T00:00:00Z")
    younger = mapping(rule("*", "2"), name="younger", created="2026-02-01T00:00:00Z")
    mappings = Mappings.of((older, younger))

    assert condition(status(older, mappings=mappings), "Ready")["status"] == "True"
    found = status(younger, device("a.example"), mappings=mappings)
    duplicate = condition(found, "Ready")
    assert (duplicate["status"], duplicate["reason"]) == ("False", "Duplicate")
    assert "'older'" in duplicate["message"]
    assert found["drivers"] == []


def test_an_object_that_cannot_be_used_says_why() -> None:
    """The reason is that of the refusal."""
    mappings = Mappings.of(()).with_malformed("numa", "spec.unknown.0: a float is no value")

    invalid = condition(status_of("numa", mappings, generation=1, now=NOW), "Ready")

    assert (invalid["status"], invalid["reason"]) == ("False", "Invalid")
    assert invalid["message"] == "spec.unknown.0: a float is no value"


def test_an_attribute_that_a_driver_publishes_too_is_shadowed() -> None:
    """The condition is there only as long as some driver publishes the attribute, and names it (R-C7)."""
    subject = mapping(rule("*", "1"), attribute="b.example/numa")
    devices = [device("b.example", numa=0), device("a.example", x=1)]

    assert publishers("b.example/numa", devices) == {"b.example"}
    shadowing = status(subject, *devices, published_by=publishers("b.example/numa", devices))
    assert condition(shadowing, "Shadows")["status"] == "True"
    assert "b.example" in condition(shadowing, "Shadows")["message"]
    quiet = status(subject, *devices)
    assert "Shadows" not in [found["type"] for found in quiet["conditions"]]


def test_an_object_that_replaces_a_shipped_mapping_says_so() -> None:
    """Whoever wonders why a built-in rule no longer counts finds it there."""
    subject = mapping(rule("*", "1"), attribute="dovetail.dev/numaNode")

    replacing = status(subject, mappings=Mappings.of((subject,)))
    alone = status(subject, mappings=Mappings.of((subject,), shipped=False))

    assert "replaces the shipped mapping" in condition(replacing, "Ready")["message"]
    assert "shipped" not in condition(alone, "Ready")["message"]


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    """A new message alone does not look like a transition, and an unchanged status equals the stored one."""
    subject = mapping(rule("a.example", READ_X))
    first = status(subject, device("a.example", "a"), now=EARLIER)

    same = status(subject, device("a.example", "a"), previous=first)
    worse = status(subject, device("a.example", "a"), device("a.example", "b"), previous=first)
    mended = status(subject, device("a.example", "a", x=1), previous=first)

    assert same == first
    assert condition(worse, "Covered")["lastTransitionTime"] == EARLIER
    assert condition(worse, "Covered")["message"] != condition(first, "Covered")["message"]
    assert condition(mended, "Covered")["lastTransitionTime"] == NOW
    assert condition(mended, "Ready")["lastTransitionTime"] == EARLIER


def test_a_message_stays_readable() -> None:
    """A thousand drivers without values do not make a status that nobody can store or read."""
    subject = mapping(rule("*", "device.attributes[device.driver].x"))
    devices = [device(f"driver-{number}.example") for number in range(200)]

    message = condition(status(subject, *devices), "Covered")["message"]

    assert len(message) == MAX_MESSAGE
    assert message.endswith("…")


def test_an_object_that_is_not_known_yet_is_neither_good_nor_bad() -> None:
    """Its status says so, and the next report mends it."""
    unread = condition(status_of("new", Mappings.none(), generation=1, now=NOW), "Ready")

    assert (unread["status"], unread["reason"]) == ("Unknown", "NotRead")
