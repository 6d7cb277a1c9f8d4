"""Hints say what would help."""

from collections.abc import Sequence

from dovetail.core.cel import Failure, FailureKind, hint
from dovetail.core.devices import DeviceView
from tests.cel.devices import device, match


def failure_of(expression: str, of: DeviceView) -> Failure:
    """The failure of a selector on a device."""
    failure = match(expression, of)
    assert isinstance(failure, Failure)
    return failure


def population(having: int, without: int) -> Sequence[DeviceView]:
    """Devices with `numaNode`, and without."""
    return [device(numaNode=0) for _ in range(having)] + [device(model="H100") for _ in range(without)]


def test_a_typo_is_told_with_the_name_that_exists() -> None:
    """R-C2, word for word."""
    devices = population(128, 0)
    failure = failure_of('device.attributes["gpu.example.com"].numaNodee == 0', devices[0])
    assert hint(failure, devices) == "present on 0 of 128; did you mean numaNode (128 of 128)?"


def test_a_wrong_domain_is_told_with_the_right_one() -> None:
    """The id exists, but elsewhere."""
    devices = population(4, 0)
    failure = failure_of('device.attributes["gpu.exampel.com"].numaNode == 0', devices[0])
    assert hint(failure, devices) == (
        'present on 0 of 4; did you mean device.attributes["gpu.example.com"].numaNode (4 of 4)?'
    )


def test_a_missing_guard_is_named() -> None:
    """What some devices have and others lack wants has() (R-C1)."""
    devices = population(15, 1)
    failure = failure_of('device.attributes["gpu.example.com"].numaNode == 0', devices[-1])
    assert hint(failure, devices) == (
        'present on 15 of 16; guard it with has(device.attributes["gpu.example.com"].numaNode)'
    )


def test_the_hint_does_not_depend_on_the_order_of_devices() -> None:
    """Whoever is visited first, the sentence is the same (R-C1)."""
    devices = population(15, 1)
    failure = failure_of('device.attributes["gpu.example.com"].numaNode == 0', devices[-1])
    assert hint(failure, devices) == hint(failure, devices[::-1])


def test_a_capacity_is_looked_for_among_capacities() -> None:
    """Attributes are no help there."""
    devices = population(2, 0)
    failure = failure_of('device.capacity["gpu.example.com"].Memory.isInteger()', devices[0])
    assert hint(failure, devices) == "present on 0 of 2; did you mean memory (2 of 2)?"


def test_a_name_that_is_like_no_other_gets_the_count_alone() -> None:
    """No guess is better than a wild one."""
    devices = population(3, 0)
    failure = failure_of('device.attributes["gpu.example.com"].zzz == 0', devices[0])
    assert hint(failure, devices) == "present on 0 of 3"


def test_other_failures_get_no_hint() -> None:
    """Neither does an empty population."""
    assert hint(Failure("division by zero"), population(1, 0)) == ""
    assert hint(Failure("no such key: a", FailureKind.MISSING, "d", "a"), []) == ""
