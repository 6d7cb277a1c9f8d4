"""Every device of every slice gets from the shipped mappings what `expected.json` says."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.core.attributes import Mappings, Missing
from dovetail.core.cel import Memory
from dovetail.core.devices import DeviceView
from tests.mappings.worlds import SLICES, devices_of, mapping, rule, slice_files

ATTRIBUTES = ("numaNode", "pcieRoot", "pciBusID", "socket", "rdma", "fabric")
SHIPPED = Mappings.of(())
EXPECTED: dict[str, dict[str, dict[str, Any]]] = json.loads((SLICES / "expected.json").read_text())
REASONS: dict[str, dict[str, dict[str, list[str]]]] = yaml.safe_load(
    (Path(__file__).parent / "missing.yaml").read_text()
)


def derived(mappings: Mappings, device: DeviceView, memory: Memory) -> dict[str, Any]:
    """What the device gets: the value as JSON shows it, or the reason in angle brackets."""
    answers = {}
    for attribute in ATTRIBUTES:
        found = mappings.find(f"dovetail.dev/{attribute}")
        assert found is not None
        value = found.derive(device, memory)
        answers[attribute] = f"<{value.cause}>" if isinstance(value, Missing) else value.plain
    return answers


def wanted(file: str, key: str) -> dict[str, Any]:
    """What the two files of expectations say of a device, in the form of `derived`."""
    slice_name = key.partition("#")[0]
    by_reason: Mapping[str, list[str]] = REASONS[file].get(key) or REASONS[file][slice_name]
    reasons = {attribute: f"<{reason}>" for reason, names in by_reason.items() for attribute in names}
    return {**reasons, **EXPECTED[file][key]}


@pytest.mark.parametrize("file", slice_files())
def test_each_device_gets_its_value_or_the_reason_why_not(file: str) -> None:
    """Value, type and, where a value is missing, the reason are exactly those of the expectations."""
    memory = Memory()
    seen = dict(devices_of(file))

    assert set(seen) == set(EXPECTED[file])
    for key, device in seen.items():
        answers = derived(SHIPPED, device, memory)
        # The text form tells true from 1, which == does not.
        assert json.dumps(answers, sort_keys=True) == json.dumps(wanted(file, key), sort_keys=True), key


def test_a_driver_that_nobody_knows_is_served_by_a_mapping() -> None:
    """The invented DSA driver, with its NUMA node as text, joins in by one object per attribute."""
    numa = mapping(
        rule("dsa.intel.com", 'int(device.attributes["dsa.intel.com"].numa)'),
        attribute="dovetail.dev/numaNode",
        name="numa",
    )
    bus = mapping(
        rule("dsa.intel.com", 'device.attributes["dsa.intel.com"].pciAddress'),
        attribute="dovetail.dev/pciBusID",
        name="bus",
    )
    mappings = Mappings.of((numa, bus))
    memory = Memory()

    answers = {
        device.key.device: derived(mappings, device, memory)
        for _, device in devices_of("intel-xeon__dsa-intel__hypothetical.yaml")
    }

    assert {name: (got["numaNode"], got["pciBusID"]) for name, got in answers.items()} == {
        **{f"dsa0-wq{queue}": (0, "0000:6a:01.0") for queue in range(2)},
        **{f"dsa2-wq{queue}": (0, "0000:6f:01.0") for queue in range(2)},
        **{f"dsa4-wq{queue}": (1, "0000:e7:01.0") for queue in range(2)},
        **{f"dsa6-wq{queue}": (1, "0000:ec:01.0") for queue in range(2)},
    }


def test_the_order_of_devices_does_not_change_what_they_get() -> None:
    """A memory that has seen other devices first gives the same answers (R-C1)."""
    devices = [device for file in slice_files() for _, device in devices_of(file)]
    forwards, backwards = Memory(), Memory()

    onward = [derived(SHIPPED, device, forwards) for device in devices]
    returning = [derived(SHIPPED, device, backwards) for device in reversed(devices)]

    assert onward == returning[::-1]
