"""Which changes could help a pod whose search was cut."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.changes import Change
from dovetail.core.relevance import concerned, known_of, usable_nodes
from dovetail.core.world import World
from tests.planner.worlds import (
    Body,
    allocated,
    claim,
    device_class,
    devices,
    devices_spec,
    hardware,
    mapping,
    named,
    node,
    pod,
    request,
    world_of,
)

GPU, NIC, OTHER = "gpu.example.com", "nic.example.com", "other.example.com"
KEY = ("default", "pod")


def cut_world() -> World:
    """A gated pod wants a GPU of NUMA node 1 and a NIC; other claims hold devices; a node is cordoned."""
    selector = {"cel": {"expression": f'device.attributes["{GPU}"].numaNode == 1'}}
    wanted = request("gpu", GPU, selectors=[selector])
    return world_of(
        *hardware("n1"),
        devices(OTHER, "n1", [0]),
        devices(GPU, "far", [1]),
        node("far", unschedulable=True),
        device_class(OTHER),
        claim("first", status=allocated("n1", "dev-0")),
        claim("second", status=allocated("n1", "dev-1")),
        claim("third", status=allocated("n1", "dev-1", driver=OTHER)),
        claim(spec=devices_spec(wanted, request("nic", NIC))),
        pod(claims=[named("claim")]),
    )


def helps(world: World, change: Callable[[World], Change | None], kind: str, name: str) -> bool:
    """Whether a change of an object could help the pod."""
    nodes = usable_nodes(world, KEY)
    key = ("default" if kind in ("Pod", "ResourceClaim") else "", name)
    before = known_of(world, kind, key)
    meaning = change(world)
    assert meaning is not None
    told = [replace(meaning, before=before)]
    return concerned(world, [(KEY, nodes)], told, Budget(10_000)) == (KEY,)


@pytest.mark.parametrize(
    ("body", "is_help"),
    [
        pytest.param(devices(GPU, "n1", [0, 0]), False, id="GPUs that its selector does not take"),
        pytest.param(devices(GPU, "n1", [0, 1, 1]), True, id="a GPU that it could take"),
        pytest.param(devices(OTHER, "n1", [1, 1]), False, id="devices of a class that it does not name"),
        pytest.param(devices(GPU, "far", [1, 1]), False, id="GPUs on a node that it cannot use"),
        pytest.param(node("far"), True, id="a node that it can use now"),
        pytest.param(node("n1", labels={"x": "y"}), False, id="a label of a node that it could use before"),
        pytest.param(device_class(OTHER, selectors=[]), False, id="another class"),
        pytest.param(device_class(NIC, selectors=[]), True, id="a class that it names"),
        pytest.param(mapping(name="new"), True, id="a mapping that it names"),
        pytest.param(mapping("example.com/other", name="new"), False, id="another mapping"),
        pytest.param(claim("first"), False, id="a device is free that its selector does not take"),
        pytest.param(claim("second"), True, id="a device is free that it could take"),
        pytest.param(claim("third"), False, id="a device of another class is free"),
        pytest.param(pod("other", nodeName="n1"), False, id="another pod"),
    ],
)
def test_a_change_helps_where_it_brings_what_the_pod_could_use(body: Body, is_help: bool) -> None:
    """Device by device, node by node, class by class, mapping by mapping."""
    world = cut_world()
    if body["kind"] == "Pod":
        world.put("Pod", body)
        body = body | {"status": {"phase": "Succeeded"}}

    assert (
        helps(world, lambda there: there.put(body["kind"], body), body["kind"], body["metadata"]["name"])
        is is_help
    )


def test_what_is_gone_helps_where_it_was_held() -> None:
    """A claim that is deleted frees its devices; a slice that is withdrawn brings nothing."""
    deleted = helps(
        cut_world(),
        lambda world: world.drop("ResourceClaim", "default", "second"),
        "ResourceClaim",
        "second",
    )
    withdrawn = helps(
        cut_world(), lambda world: world.drop("ResourceSlice", "", f"n1-{GPU}"), "ResourceSlice", f"n1-{GPU}"
    )

    assert deleted
    assert not withdrawn


def test_asking_costs_a_budget() -> None:
    """However many changes there are, and however many pods were cut."""
    world = cut_world()
    change = world.put("ResourceSlice", devices(GPU, "n1", [1] * 100))
    assert change is not None

    with pytest.raises(BudgetSpent):
        concerned(world, [(KEY, frozenset({"n1"}))] * 100, [change], Budget(50))
