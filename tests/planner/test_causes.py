"""A refusal names what keeps the claim's own devices from it, and what would really help."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.core.budget import Budget
from dovetail.core.decisions import DoesNotFit
from dovetail.core.features import Features
from dovetail.core.forecast import forecast
from dovetail.core.planner import PlanSettings
from dovetail.core.world import World
from tests.planner.worlds import (
    NUMA,
    Body,
    allocated,
    claim,
    decide,
    device_class,
    devices,
    devices_spec,
    hardware,
    mapping,
    named,
    node,
    pod,
    request,
    template,
    world_of,
)

FIELD = Path(__file__).parent.parent / "data" / "field"
SLICES = FIELD.parent / "slices"
GPU, NIC = "gpu.example.com", "nic.example.com"
HINT = "The devices also have to agree on"


def bodies_in(path: Path) -> Iterator[Body]:
    """The objects of a file, lists unpacked."""
    for document in yaml.safe_load_all(path.read_text()):
        yield from document.get("items", [document])


def refusals(*paths: Path) -> dict[str, DoesNotFit]:
    """The pods of these files that do not fit, by name."""
    world = World(Features(), assume_nodes=True)
    for number, body in enumerate(body for path in paths for body in bodies_in(path)):
        body["metadata"].setdefault("uid", f"uid-{number}")
        world.put(body["kind"], body)
    return {
        each.pod.metadata.name: each.decision
        for each in forecast(world, settings=PlanSettings(), budget=Budget.unlimited)
        if isinstance(each.decision, DoesNotFit)
    }


def sentences(*paths: Path) -> dict[str, str]:
    """Why pods of these files do not fit, by the name of the pod."""
    return {name: decision.sentence for name, decision in refusals(*paths).items()}


def cause(sentence: str) -> str:
    """What stands in the way, without what would help and what else holds."""
    return sentence.partition("; it would fit")[0].partition(HINT)[0]


def why(*bodies: Body, name: str = "pod") -> str:
    """Why a pod of a world does not fit."""
    decision = decide(world_of(*bodies), name)
    assert isinstance(decision, DoesNotFit), decision
    return decision.sentence


# -- pools of others -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["world", "world-incomplete"])
def test_a_broken_pool_of_another_driver_is_no_cause(name: str) -> None:
    """The GPU is in use; what is wrong with the NICs concerns nobody who asks for a GPU."""
    told = sentences(FIELD / "foreign-broken-pool" / f"{name}.yaml")["p"]
    assert "1 in use" in cause(told)
    assert "default/user" in told
    assert "dra.net" not in told


def test_too_few_devices_are_told_beside_a_broken_pool_of_another_driver() -> None:
    """Two GPUs are wanted and one exists."""
    told = sentences(FIELD / "foreign-broken-pool" / "world-too-few.yaml")["p"]
    assert "needs 2 devices of gpu.nvidia.com" in cause(told)
    assert "1 of 1" in cause(told)
    assert "dra.net" not in told


FAULTS: dict[str, dict[str, Any]] = {
    "incomplete": {"pool": {"name": "n1", "generation": 1, "resourceSliceCount": 3}},
    "twice the same name": {"devices": [{"name": "a"}, {"name": "a"}]},
    "unknown counters": {
        "devices": [
            {"name": "a", "consumesCounters": [{"counterSet": "no", "counters": {"c": {"value": "1"}}}]}
        ]
    },
}


def faulty(driver: str, fault: str, where: str = "n1") -> Body:
    """A slice of a pool that cannot be used."""
    body = devices(driver, where, [0])
    body["metadata"]["name"] += "-faulty"
    body["spec"] |= {"pool": {"name": "bad", "generation": 1, "resourceSliceCount": 1}, **FAULTS[fault]}
    return body


def gpu_pod(count: int = 1, **more: Any) -> list[Body]:
    """A pod that wants GPUs, aligned."""
    spec = devices_spec(request("gpu", GPU, count=count, **more))
    return [template(spec=spec), claim(owner="pod", spec=spec), pod(template="template")]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("nodes", [("n1",), ("n1", "n2")])
def test_no_fault_of_a_pool_that_cannot_serve_the_claim_is_told(fault: str, nodes: tuple[str, ...]) -> None:
    """On one node or several, the sentence is the one without that pool."""
    world = [*hardware(*nodes), *gpu_pod(3)]
    others = [faulty(driver, fault, where) for where in nodes for driver in (NIC, "other.example.com")]
    assert why(*world, *others) == why(*world)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_pool_that_could_serve_the_claim_is_told(fault: str) -> None:
    """Nothing else is published for the class: the pool is the cause, not a selector."""
    world = [device_class(GPU), mapping(), node("n1"), faulty(GPU, fault), *gpu_pod()]
    assert f"pool {GPU}/" in cause(why(*world))
    assert "no device is selected" not in why(*world)


def test_all_devices_are_not_refused_for_a_foreign_pool_alone_where_more_is_wrong() -> None:
    """kube-scheduler wants every pool whole before it gives "all"; that is told where nothing else is."""
    spec = devices_spec({"name": "gpu", "exactly": {"deviceClassName": GPU, "allocationMode": "All"}})
    wanted = [template(spec=spec), claim(owner="pod", spec=spec), pod(template="template")]
    bad = faulty(NIC, "incomplete")
    idle = [*hardware("n1", numa=(0, 0)), bad, *wanted]
    assert NIC in cause(why(*idle))
    in_use = claim("other", status=allocated("n1", "dev-0"))
    assert "1 in use" in cause(why(*idle, in_use))
    assert NIC not in why(*idle, in_use)


# -- constraints that are not to blame -----------------------------------------------------------------


def test_counters_are_blamed_with_their_numbers() -> None:
    """Two halves of 5 and 6 do not go into 10, whatever their NUMA node."""
    told = sentences(FIELD / "blamed-constraint" / "ctr-over.json")["p"]
    assert "counter c of set cs" in cause(told)
    assert "10 left" in cause(told)
    assert "need 11" in cause(told)
    assert NUMA not in cause(told)


def test_an_extended_resource_that_takes_devices_is_named() -> None:
    """The pod's own extended resource takes the third device of three."""
    told = sentences(FIELD / "blamed-constraint" / "ext-res.json")["p"]
    assert "extended resource example.com/gpu" in cause(told)
    assert "need 4 devices" in cause(told)
    assert "3 can be taken" in cause(told)
    assert NUMA not in cause(told)


def test_another_claim_of_the_pod_that_takes_devices_is_named() -> None:
    """Two claims of one pod want four devices of three."""
    spec = devices_spec(request("gpu", GPU, count=2))
    world = [
        *hardware("n1", numa=(0, 0, 0)),
        *(claim(name, spec=spec) for name in ("one", "two")),
        pod(claims=[named("one", "a"), named("two", "b")]),
    ]
    told = cause(why(*world))
    assert "default/one" in told
    assert "default/two" in told
    assert "need 4 devices" in told
    assert NUMA not in told


def test_the_constraint_is_named_where_dropping_it_helps() -> None:
    """Two GPUs on different NUMA nodes, and nothing else in the way."""
    told = why(*hardware("n1"), *gpu_pod(2))
    assert NUMA in cause(told)
    assert f"without the constraint of claim default/claim on {NUMA}" in told


def fence(driver: str) -> Body:
    """What a DeviceOwnership writes to keep kube-scheduler off a driver's devices."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "fence"},
        "spec": {
            "deviceSelector": {"driver": driver},
            "taint": {"key": "dovetail.dev/owned", "effect": "NoSchedule"},
        },
    }


def test_a_fence_changes_no_word_of_a_refusal() -> None:
    """Claims of ours pass the fence, and so does what would help them."""
    holder = claim("other", status=allocated("n1", "dev-0", "dev-1"))
    for world in ([*hardware("n1"), *gpu_pod(2)], [*hardware("n1"), *gpu_pod(), holder]):
        assert "it would fit" in why(*world)
        assert why(*world, fence(GPU)) == why(*world)


# -- what would help -----------------------------------------------------------------------------------


def test_a_holder_of_counters_is_asked_for_the_device_that_holds_them() -> None:
    """A half holds the counter that the whole needs: the half has to come back, though it is not taken."""
    told = sentences(FIELD / "blank-gave-back" / "world.yaml")["p"]
    assert "claim default/small gave back half" in told


def test_only_what_is_needed_has_to_come_back() -> None:
    """The holder has a GPU and the NIC; another GPU is free."""
    told = sentences(FIELD / "release-too-much" / "world.yaml")["p"]
    assert "gave back nic-0" in told
    assert "gpu-0" not in told


def test_nodes_with_one_reason_are_told_together() -> None:
    """No node has a NIC; how many GPUs each has is of no interest."""
    for told in (
        sentences(FIELD / "other-reasons" / "world.yaml")["p"],
        sentences(FIELD / "many-nodes-one-reason" / "world.yaml")["p"],
    ):
        assert cause(told).count("nic") == 1
        assert "more node" not in told


def test_the_same_reason_with_other_numbers_is_no_other_reason() -> None:
    """All nodes lack free GPUs, each another number of them."""
    told = sentences(FIELD / "many-nodes-one-reason" / "world-partly-used.yaml")["p"]
    assert "9 more nodes for the same reason" in told
    assert "other reasons" not in told


def test_what_a_device_can_never_give_is_not_called_short() -> None:
    """21Gi of a device that gives 20Gi to a claim at most; a capacity that it does not have."""
    told = sentences(FIELD / "above-policy-max" / "world.yaml")
    assert "at most 20Gi" in told["p"]
    assert "21Gi" in told["p"]
    assert "it has no vram" in told["unknown"]
    assert "short of" not in told["p"] + told["unknown"]


# -- whose names are told ------------------------------------------------------------------------------


def test_a_pod_is_not_told_the_names_of_other_tenants() -> None:
    """Two pods of a tenant hold all GPUs; a pod of another is told their number, `plan` their names."""
    folder = FIELD / "other-tenant"
    decisions = refusals(
        folder / "classes.yaml", folder / "leak.yaml", SLICES / "dgx-h100__gpu-nvidia__main.yaml"
    )
    told = decisions["low"]
    assert "claim of another namespace gave back" in told.sentence
    assert "tenant-a" not in told.sentence
    assert "acquisition" not in told.sentence
    assert "tenant-a/acquisition-project-x" in told.told_in_full
