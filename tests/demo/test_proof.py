"""The demo's verdict: each thing that could be wrong is found, from the objects alone."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from dovetail.api.mappings import ALLOCATED_CONDITION, GATE
from dovetail.demo.proof import Evidence, problems
from dovetail.demo.world import Wish

Body = dict[str, Any]

WISH = Wish("trainer", gpus=2, nics=1, cpus=16)
IMPOSSIBLE = Wish("simulator", gpus=3)
PLACES = {
    ("gpu.nvidia.com", "node-a", "gpu-0"): 0,
    ("gpu.nvidia.com", "node-a", "gpu-1"): 0,
    ("gpu.nvidia.com", "node-a", "gpu-2"): 1,
    ("dra.net", "node-a", "nic-0"): 0,
    ("dra.cpu", "node-a", "cpus-0"): 0,
}


def result(request: str, driver: str, device: str, **more: Any) -> Body:
    """One allocated device."""
    return {"request": request, "driver": driver, "pool": "node-a", "device": device} | more


def claim() -> Body:
    """The claim of the trainer, as it should be."""
    results = [
        result("gpu", "gpu.nvidia.com", "gpu-0"),
        result("gpu", "gpu.nvidia.com", "gpu-1"),
        result("nic", "dra.net", "nic-0"),
        result("cpu", "dra.cpu", "cpus-0", consumedCapacity={"dra.cpu/cpu": "16"}),
    ]
    return {
        "metadata": {"name": "trainer-devices", "ownerReferences": [{"uid": "u-1"}]},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"uid": "u-1", "name": "trainer"}],
        },
    }


def world() -> Evidence:
    """A pod that runs and one that cannot, as the demo wants them."""
    running = {
        "metadata": {"name": "trainer", "uid": "u-1"},
        "spec": {"nodeName": "node-a"},
        "status": {"phase": "Running"},
    }
    waiting = {
        "metadata": {"name": "simulator", "uid": "u-2"},
        "spec": {"schedulingGates": [{"name": GATE}]},
        "status": {"conditions": [{"type": ALLOCATED_CONDITION, "status": "False", "message": "why"}]},
    }
    devices: dict[str, list[Body]] = {}
    for driver, _, device in PLACES:
        shared = {"allowMultipleAllocations": True, "capacity": {"dra.cpu/cpu": {"value": "32"}}}
        devices.setdefault(driver, []).append({"name": device} | (shared if driver == "dra.cpu" else {}))
    slices = tuple(
        {"spec": {"driver": driver, "pool": {"name": "node-a"}, "devices": found}}
        for driver, found in devices.items()
    )
    return Evidence((running, waiting), (claim(),), slices, PLACES)


def found(evidence: Evidence) -> list[str]:
    """What the verdict finds wrong."""
    return problems(evidence, wishes=[WISH], impossible=IMPOSSIBLE)


def test_nothing_is_wrong_with_a_world_as_it_should_be() -> None:
    """The verdict has nothing to say."""
    assert found(world()) == []


def _second_holder(evidence: Evidence) -> None:
    other = copy.deepcopy(evidence.claims[0])
    other["metadata"] = {"name": "other"}
    other["status"]["allocation"]["devices"]["results"] = [result("gpu", "gpu.nvidia.com", "gpu-1")]
    object.__setattr__(evidence, "claims", (*evidence.claims, other))


def _results(evidence: Evidence) -> list[Body]:
    results: list[Body] = evidence.claims[0]["status"]["allocation"]["devices"]["results"]
    return results


FAULTS: dict[str, tuple[Callable[[Evidence], object], str]] = {
    "a pod that does not run": (
        lambda world: world.pods[0]["status"].update(phase="Pending"),
        "pod trainer does not run",
    ),
    "a device too few": (
        lambda world: _results(world).pop(0),
        "instead of 2 GPUs, 1 NIC, 16 CPUs",
    ),
    "a device of another NUMA node": (
        lambda world: _results(world)[0].update(device="gpu-2"),
        "do not share a NUMA node",
    ),
    "a device that sits nowhere": (
        lambda world: _results(world)[2].update(device="bridge"),
        "do not share a NUMA node",
    ),
    "a device of another node": (
        lambda world: _results(world)[0].update(pool="node-b"),
        "devices of another node than its own",
    ),
    "a device that nobody publishes": (
        lambda world: _results(world)[2].update(device="bridge"),
        "device dra.net/node-a/bridge is not published",
    ),
    "a device given twice": (_second_holder, "device gpu.nvidia.com/node-a/gpu-1 is given 2 times"),
    "more CPUs than there are": (
        lambda world: _results(world)[3].update(consumedCapacity={"dra.cpu/cpu": "33"}),
        "gives more CPUs than it has",
    ),
    "a claim that is not reserved": (
        lambda world: world.claims[0]["status"].update(reservedFor=[]),
        "not reserved for it",
    ),
    "a refusal without a reason": (
        lambda world: world.pods[1]["status"].update(conditions=[]),
        "does not say why it waits",
    ),
    "a refused pod without its gate": (
        lambda world: world.pods[1]["spec"].update(schedulingGates=[]),
        "does not wait at its gate",
    ),
    "a refused pod with a node": (
        lambda world: world.pods[1]["spec"].update(nodeName="node-a"),
        "does not wait at its gate",
    ),
    "a refused pod that would fit": (
        lambda world: object.__setattr__(
            world, "numa_nodes", PLACES | {("gpu.nvidia.com", "node-a", "gpu-9"): 0}
        ),
        "would fit: a NUMA node has 3 GPUs",
    ),
    "a refused pod with devices": (
        lambda world: world.claims[0]["metadata"].update(ownerReferences=[{"uid": "u-2"}]),
        "pod simulator has devices",
    ),
    "a pod that is not there": (
        lambda world: object.__setattr__(world, "pods", ()),
        "pod simulator is not there",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_found(fault: str) -> None:
    """The verdict names what is not so."""
    tamper, sentence = FAULTS[fault]
    tampered = world()
    tamper(tampered)
    assert any(sentence in problem for problem in found(tampered)), found(tampered)
