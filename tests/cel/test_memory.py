"""Results are remembered by what they depend on."""

import pytest

from dovetail.core.cel import Failure, Memory, compile_attribute, compile_selector
from dovetail.core.devices import DeviceView
from dovetail.core.values import AttributeValue, DeviceKey, Kind
from tests.cel.devices import LISTS, OWN, device

NUMA = 'device.attributes["gpu.example.com"].numa == 1'


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        ("true", set()),
        ("device.driver == 'd'", {"device:driver"}),
        (NUMA, {"gpu.example.com/numa"}),
        ('has(device.attributes["d"].a) && device.attributes["d"]["b"]', {"d/a", "d/b"}),
        ('device.attributes["d"].?a.orValue(false)', {"d/a"}),
        ('device.capacity["d"].m.isInteger()', {"capacity:d/m"}),
        ('cel.bind(x, device.attributes["d"], x.a && x.b)', {"d/a", "d/b"}),
        ('cel.bind(x, device.attributes, x["d"].a)', {"d/a"}),
        ('device.attributes["d"].exists(k, k == "a")', {"d/*"}),
        ('"a" in device.capacity["d"]', {"capacity:d/*"}),
        ('device.attributes["d"][device.driver]', {"d/*", "device:driver"}),
        ('[1].exists(x, device.attributes["d"].a == x)', {"d/a"}),
    ],
)
def test_a_program_knows_what_it_can_read(expression: str, reads: set[str] | None) -> None:
    """Attributes by name, whole domains, capacities and the device's own fields."""
    assert compile_selector(expression, LISTS).reads == reads


@pytest.mark.parametrize(
    "expression",
    ['"d" in device.attributes', "dyn(device).driver == 'd'", "device.attributes[device.driver].size() == 0"],
)
def test_a_program_that_may_read_everything_says_so(expression: str) -> None:
    """Then only equal devices share a result."""
    assert compile_selector(expression, LISTS).reads is None


def test_devices_that_agree_in_what_is_read_share_one_result() -> None:
    """Of 100 devices with two NUMA nodes, two are evaluated."""
    memory, program = Memory(), compile_selector(NUMA, LISTS)
    found = [memory.matches(program, device(numa=i % 2, uuid=f"GPU-{i}")) for i in range(100)]
    assert found == [i % 2 == 1 for i in range(100)]
    assert (memory.misses, memory.hits) == (2, 98)


def test_what_looks_alike_but_is_not_is_told_apart() -> None:
    """1, true, "1", version 1 and [1] are five values; so are versions that differ in build only."""
    memory, program = Memory(), compile_attribute('device.attributes["d"].a', LISTS)
    values = [
        AttributeValue(Kind.INT, (1,)),
        AttributeValue(Kind.BOOL, (True,)),
        AttributeValue(Kind.STRING, ("1.0.0",)),
        AttributeValue(Kind.VERSION, ("1.0.0",)),
        AttributeValue(Kind.VERSION, ("1.0.0+b",)),
        AttributeValue(Kind.INT, (1,), True),
    ]
    devices = [DeviceView(DeviceKey("d", "p", str(i)), {"d/a": value}) for i, value in enumerate(values)]
    assert [memory.derive(program, of) for of in devices] == values


def test_failures_are_remembered_too() -> None:
    """A missing attribute is missing on every such device."""
    memory, program = Memory(), compile_selector(NUMA, LISTS)
    assert isinstance(memory.matches(program, device()), Failure)
    assert isinstance(memory.matches(program, device(model="other")), Failure)
    assert (memory.misses, memory.hits) == (1, 1)


def test_programs_do_not_share_results() -> None:
    """Nor do selectors and derived attributes."""
    memory = Memory()
    of = device(numa=1)
    assert memory.matches(compile_selector(NUMA, LISTS), of) is True
    assert memory.matches(compile_selector(NUMA.replace("1", "2"), LISTS), of) is False
    assert memory.derive(compile_attribute("device.name", OWN), of) == AttributeValue(Kind.STRING, ("gpu-0",))
    assert memory.derive(compile_attribute("device.name", OWN), device(name="x")) != AttributeValue(
        Kind.STRING, ("gpu-0",)
    )


def test_a_whole_slice_is_answered_by_a_mask() -> None:
    """Bit i stands for device i; devices that fail are listed; the same slice again costs nothing."""
    memory, program = Memory(), compile_selector(NUMA, LISTS)
    group = (device(numa=1), device(numa=0), device(), device(numa=1))
    first = memory.matching(program, group)
    assert first.mask == 0b1001
    assert [position for position, _ in first.failures] == [2]
    assert memory.matching(program, group) is first


def test_the_memory_is_bounded() -> None:
    """When it is full it begins anew, and goes on giving right answers."""
    memory, program = Memory(size=10), compile_selector(NUMA, LISTS)
    found = [memory.matches(program, device(numa=i)) for i in range(100)]
    assert found == [i == 1 for i in range(100)]
    assert memory.misses == 100
    assert memory._kept <= 10
