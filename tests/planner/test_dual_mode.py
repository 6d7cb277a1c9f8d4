"""What a device plugin of a node offers too is not given, and that is said (T-18, R-G4)."""

from collections.abc import Iterable, Mapping
from itertools import permutations
from typing import Any

import pytest

from dovetail.api.claims import ResourceClaim
from dovetail.core import outcome
from dovetail.core.allocator import place
from dovetail.core.budget import Budget
from dovetail.core.changes import Effect
from dovetail.core.decisions import Decision, DoesNotFit, Place, Reserve
from dovetail.core.dual_mode import DualMode
from dovetail.core.plugin_names import PLUGIN_RESOURCES
from dovetail.core.refusals import Cause, WithoutPlugin
from dovetail.core.world import World
from tests.planner.worlds import (
    Body,
    allocated,
    claim,
    decide,
    device_class,
    devices,
    devices_spec,
    hardware,
    named,
    node,
    pod,
    request,
    world_of,
)
from tests.support.builders import inventory

NVIDIA, NIC, GPU = "gpu.nvidia.com", "dra.net", "gpu.example.com"
PAIR = devices_spec(request("gpu", NVIDIA), request("nic", NIC))
SOME = {"nvidia.com/gpu": "2"}


def machine(name: str, plugins: Mapping[str, str] | None = None) -> list[Body]:
    """A node with two GPUs and two NICs on its NUMA nodes."""
    return [
        node(name, plugins=plugins),
        devices(NVIDIA, name, (0, 1), attribute="numa"),
        devices(NIC, name, (0, 1)),
    ]


def cluster(*machines: Iterable[Body], spec: Body = PAIR, **settings: Any) -> World:
    """A world of such nodes, with a gated pod that wants a pair."""
    bodies = [body for each in machines for body in each]
    classes = [device_class(driver) for driver in (NVIDIA, NIC)]
    return world_of(*classes, *bodies, claim(spec=spec), pod(claims=[named("claim")]), **settings)


def sentence(decision: Decision) -> str:
    """Why the pod waits."""
    assert isinstance(decision, DoesNotFit), decision
    return decision.sentence


def place_of(decision: Decision) -> str:
    """The node that the pod is placed on."""
    assert isinstance(decision, Place), decision
    return decision.node


def told(world: World, *nodes: str) -> outcome.DoesNotFit:
    """The refusal of the claim on these nodes, as data."""
    answer = place(world.inventory, [world.claims["default", "claim"]], nodes, budget=Budget.unlimited())
    assert isinstance(answer, outcome.DoesNotFit), answer
    return answer


def test_a_gpu_that_a_device_plugin_offers_too_is_never_given() -> None:
    """T-18, R-G4: equal nodes are told of together, with driver, resource and what would help."""
    world = cluster(*(machine(name, SOME) for name in ("n1", "n2", "n3")))
    assert sentence(decide(world)) == (
        "Nothing fits: 3 nodes (n1, n2 and n3): request gpu needs 1 device of gpu.nvidia.com, "
        "and 0 of 2 can be taken: 2 offered by device plugin too (nvidia.com/gpu); "
        "it would fit on node n1 if no device plugin offered nvidia.com/gpu there "
        "(or with dual_mode_nodes=allow, if the plugin keeps to other devices). "
        "The devices also have to agree on dovetail.dev/numaNode."
    )


def test_the_refusal_is_data() -> None:
    """T-18, R-G4: a cause per device, drivers and resources per node, and the plugin that is in the way."""
    refused = told(cluster(machine("n1", SOME)), "n1")
    (story,) = refused.stories
    assert story.plugins == (DualMode(NVIDIA, ("nvidia.com/gpu",), 2),)
    gpu = story.requests[0]
    assert gpu.causes[Cause.DEVICE_PLUGIN] == 2
    assert {(each.device.device, each.cause, each.detail) for each in gpu.refusals} == {
        ("dev-0", Cause.DEVICE_PLUGIN, "nvidia.com/gpu"),
        ("dev-1", Cause.DEVICE_PLUGIN, "nvidia.com/gpu"),
    }
    assert refused.help == (WithoutPlugin(("nvidia.com/gpu",), "n1"),)


def test_nobody_is_told_to_remove_a_plugin_that_is_not_all_that_is_in_the_way() -> None:
    """Three GPUs are more than the node has, whoever offers them."""
    spec = devices_spec(request("gpu", NVIDIA, count=3))
    assert told(cluster(machine("n1", SOME), spec=spec), "n1").help == ()


def test_nodes_with_other_plugins_have_another_story() -> None:
    """What is offered as MIG devices on one node and as whole GPUs on another is told apart."""
    world = cluster(machine("n1", SOME), machine("n2", {"nvidia.com/mig-1g.10gb": "7"}))
    said = sentence(decide(world))
    assert "node n1: request gpu" in said
    assert "2 offered by device plugin too (nvidia.com/mig-1g.10gb)" in said


def test_other_nodes_and_other_drivers_go_on_as_before() -> None:
    """The node without a plugin gets the pair; on the other one, NICs are given all the same."""
    assert place_of(decide(cluster(machine("n1", SOME), machine("n2")))) == "n2"
    nics = devices_spec(request("nic", NIC))
    assert place_of(decide(cluster(machine("n1", SOME), spec=nics))) == "n1"


def test_a_plugin_that_keeps_to_other_devices_is_allowed_by_setting() -> None:
    """The node is known to be one that offers devices twice; its devices are given."""
    world = cluster(machine("n1", SOME), exclude_dual_mode=False)
    assert place_of(decide(world)) == "n1"
    assert world.inventory.dual_modes("n1") == (DualMode(NVIDIA, ("nvidia.com/gpu",), 2),)


@pytest.mark.parametrize(
    "plugins",
    [
        {"nvidia.com/gpu": "0"},
        {"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": "0"},
        {"amd.com/gpu": "8"},
        {"nvidia.com/rdma_shared_device_a": "63"},
        {"hugepages-2Mi": "1Gi"},
    ],
)
def test_what_offers_no_device_of_the_driver_keeps_nothing_back(plugins: dict[str, str]) -> None:
    """A plugin that was removed leaves a zero; other resources of the vendor are no GPUs."""
    assert place_of(decide(cluster(machine("n1", plugins)))) == "n1"


def test_pods_that_wait_are_woken_when_the_plugin_goes_and_when_it_comes() -> None:
    """Each change of what the node offers concerns everyone, and decides anew."""
    world = cluster(machine("n1", SOME))
    sentence(decide(world))
    for plugins, is_given in (({"nvidia.com/gpu": "0"}, True), (SOME, False), ({}, True)):
        change = world.put("Node", node("n1", plugins=plugins))
        assert change is not None
        assert change.effect is Effect.EVERYONE
        assert isinstance(decide(world), Place) is is_given


def test_the_order_in_which_objects_are_seen_does_not_matter() -> None:
    """Nodes, slices and classes come in any order."""
    bodies = [*machine("n1", SOME)[:2], device_class(NVIDIA, extendedResourceName="nvidia.com/gpu")]
    for order in permutations(bodies):
        assert world_of(*order).inventory.dual_modes("n1") == (DualMode(NVIDIA, ("nvidia.com/gpu",), 2),)


@pytest.mark.parametrize(
    ("driver", "resource"),
    [(driver, name.replace("*", "x")) for driver, names in PLUGIN_RESOURCES.items() for name in names],
)
def test_plugins_that_are_known_are_recognised(driver: str, resource: str) -> None:
    """Each driver of the table, by each name that its devices have as an extended resource."""
    world = world_of(node("n1", plugins={resource: "1"}), devices(driver, "n1", (0,)))
    assert world.inventory.dual_modes("n1") == (DualMode(driver, (resource,), 1),)


# -- classes with the name of an extended resource ---------------------------------------------------


def big(name: str = "big", resource: str | None = "example.com/gpu") -> Body:
    """The class of the GPUs on NUMA node 1, served under the name of an extended resource."""
    expression = f'device.driver == "{GPU}" && device.attributes["{GPU}"].numaNode == 1'
    spec: Body = {"selectors": [{"cel": {"expression": expression}}]}
    if resource:
        spec["extendedResourceName"] = resource
    return {"kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def unknown(*more: Body, count: int = 1) -> World:
    """A node with a plugin that no table knows, and a pod that wants GPUs of a driver that none knows."""
    spec = devices_spec(request("gpu", GPU, count=count))
    plugged = node("n1", plugins={"example.com/gpu": "1"})
    return world_of(*hardware("n1"), plugged, *more, claim(spec=spec), pod(claims=[named("claim")]))


def test_devices_of_a_class_with_the_plugins_name_are_withheld() -> None:
    """KEP-5004: one node must not offer both; devices that the class leaves out are given."""
    assert unknown().inventory.dual_modes("n1") == ()
    world = unknown(big())
    assert world.inventory.dual_modes("n1") == (DualMode(GPU, ("example.com/gpu",), 1),)
    decision = decide(world)
    assert isinstance(decision, Place)
    (result,) = decision.grants[0].allocation.body["devices"]["results"]
    assert result["device"] == "dev-0"
    refused = sentence(decide(unknown(big(), count=2)))
    assert "1 of 2 can be taken: 1 offered by device plugin too (example.com/gpu)" in refused


def test_a_class_that_changes_is_judged_anew() -> None:
    """The name comes, is another one, and goes; the class goes."""
    world = unknown()
    mine = (DualMode(GPU, ("example.com/gpu",), 1),)
    for body, expected in (
        (big(), mine),
        (big(resource="example.com/other"), ()),
        (big(), mine),
        (big(resource=None), ()),
        (big(), mine),
    ):
        world.put("DeviceClass", body)
        assert world.inventory.dual_modes("n1") == expected
    world.drop("DeviceClass", "", "big")
    assert world.inventory.dual_modes("n1") == ()


def test_a_class_that_does_not_compile_stands_for_no_device() -> None:
    """Nobody gets a device through it, so that no plugin competes with it."""
    broken = big()
    broken["spec"]["selectors"].append({"cel": {"expression": "device.nothing("}})
    assert unknown(broken).inventory.dual_modes("n1") == ()


# -- what is left alone ------------------------------------------------------------------------------


def test_devices_that_several_nodes_reach_are_no_plugins() -> None:
    """A device plugin offers what its node has; a pool of the network is not withheld."""
    network = devices(NVIDIA, "fabric", (0, 1), attribute="numa")
    del network["spec"]["nodeName"]
    network["spec"]["allNodes"] = True
    spec = devices_spec(request("gpu", NVIDIA))
    world = world_of(
        device_class(NVIDIA),
        node("n1", plugins=SOME),
        network,
        claim(spec=spec),
        pod(claims=[named("claim")]),
    )
    assert place_of(decide(world)) == "n1"
    assert world.inventory.dual_modes("n1") == ()


def test_what_is_allocated_already_stays() -> None:
    """A pod joins a claim whose device it shares, whoever offers it besides."""
    held = claim(spec=PAIR, status=allocated("n1", "dev-0", driver=NVIDIA, reserved=["first"]))
    classes = [device_class(driver) for driver in (NVIDIA, NIC)]
    world = world_of(*classes, *machine("n1", SOME), held, pod(claims=[named("claim")]))
    assert decide(world) == Reserve((("default", "claim"),), "n1")


def test_who_only_looks_after_a_device_may_have_it() -> None:
    """Admin access takes nothing from whoever has the device by the plugin."""
    spec = devices_spec(request("gpu", NVIDIA, adminAccess=True))
    assert place_of(decide(cluster(machine("n1", SOME), spec=spec))) == "n1"


def test_all_devices_means_none_where_one_may_be_somebody_elses() -> None:
    """A request for all devices is not served with the rest of them."""
    everything = {"name": "gpu", "exactly": {"deviceClassName": NVIDIA, "allocationMode": "All"}}
    assert "offered by device plugin too" in sentence(
        decide(cluster(machine("n1", SOME), spec=devices_spec(everything)))
    )


def test_the_allocator_alone_answers_as_kube_scheduler_does() -> None:
    """Which does not look at plugins: only the planner's picture is told to withhold devices."""
    slices = [devices(NVIDIA, "n1", (0,)), devices(NIC, "n1", (0,))]
    pure = inventory(*slices, nodes=[node("n1", plugins=SOME)])
    wanted = ResourceClaim.parse(claim(spec=devices_spec(request("gpu", NVIDIA), match=None)))
    assert isinstance(place(pure, [wanted], ["n1"], budget=Budget.unlimited()), outcome.Fits)


def test_equal_nodes_are_searched_once() -> None:
    """The work for two hundred nodes that offer devices twice is that for two."""

    def steps(count: int) -> int:
        names = tuple(f"n{index:03}" for index in range(count))
        world = cluster(*(machine(name, SOME) for name in names))
        budget = Budget.unlimited()
        place(world.inventory, [world.claims["default", "claim"]], names, budget=budget)
        return budget.spent

    assert steps(2) == steps(200)
