"""Nodes that offer devices by device plugin and by DRA: nothing is given, and it is said (T-18, R-G4)."""

from collections.abc import Mapping
from typing import Any

from dovetail.app import running
from dovetail.embedded import EmbeddedCluster
from dovetail.services.settings import Settings
from tests.operator.conftest import QUICK, OperatorStarter
from tests.operator.worlds import (
    Body,
    condition,
    device_class,
    gpus,
    is_gated,
    node,
    pairs,
    pod,
    running_pod,
    waits_for,
)

SOME = {"nvidia.com/gpu": "1"}


def plugged(name: str = "n1", plugins: Mapping[str, str] = SOME) -> list[Body]:
    """A node with a GPU and a NIC, the classes and a template for a pair, and a device plugin for the GPU."""
    _, *rest = pairs(node_name=name)
    return [node(name, plugins=plugins), *rest]


def is_told_of(name: str, count: int = 1) -> Any:
    """A condition to wait for: the Event on a node, said so often at least."""
    return lambda body: (
        body["reason"] == "DualMode" and body["involvedObject"]["name"] == name and body["count"] >= count
    )


def told_of(cluster: EmbeddedCluster, name: str) -> list[Body]:
    """The Events on a node."""
    return [body for body in cluster.objects("Event") if is_told_of(name)(body)]


def remove_plugin(cluster: EmbeddedCluster, name: str = "n1") -> None:
    """Kubelet notices that the plugin has gone."""
    body = cluster.get("Node", name)
    body["status"]["allocatable"]["nvidia.com/gpu"] = "0"
    cluster.replace(body, status=True)


async def test_a_pod_waits_until_the_device_plugin_of_its_node_is_gone(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """T-18, R-G4: it says node, driver, resource and what would help; the removal wakes it at once."""
    cluster.load(*plugged())
    await operator()
    cluster.create(pod())

    waiting = await cluster.wait_for("Pod", waits_for("NothingFits"))
    assert condition(waiting)["message"] == (
        "Nothing fits: node n1: request gpu needs 1 device of gpu.nvidia.com, and 0 of 1 can be taken: "
        "1 offered by device plugin too (nvidia.com/gpu); it would fit on node n1 if no device plugin "
        "offered nvidia.com/gpu there (or with dual_mode_nodes=allow, if the plugin keeps to other devices). "
        "The devices also have to agree on dovetail.dev/numaNode."
    )
    assert is_gated(waiting)

    remove_plugin(cluster)

    await cluster.wait_for("Pod", running_pod("p"))


async def test_the_node_is_told_of_by_a_warning(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """T-18, R-G4: an Event on the node, whether any pod asks for its devices or not."""
    cluster.load(*plugged())
    await operator()

    event = await cluster.wait_for("Event", is_told_of("n1"))

    assert event["type"] == "Warning"
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Node",
        "name": "n1",
        "uid": cluster.get("Node", "n1")["metadata"]["uid"],
    }
    assert event["message"] == (
        "The node offers devices of gpu.nvidia.com by device plugin too (nvidia.com/gpu). "
        "Dovetail gives none of them: remove the device plugin from the node, "
        "or set dual_mode_nodes=allow if the plugin keeps to other devices."
    )


async def test_the_warning_is_not_repeated(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """What changes nothing about it, on node, slice or class, is no reason to say it again."""
    cluster.load(*plugged())
    await operator()
    await cluster.wait_for("Event", is_told_of("n1"))

    cluster.patch("Node", "n1", {"metadata": {"labels": {"zone": "z1"}}})
    cluster.replace(cluster.get("ResourceSlice", "n1-gpu.nvidia.com") | {"spec": gpus(0, 1)["spec"]})
    named = device_class("named", "gpu.nvidia.com")
    named["spec"]["extendedResourceName"] = "nvidia.com/gpu"
    cluster.create(named)
    cluster.load(node("n2", plugins=SOME), gpus(0, node="n2"))

    # Nodes are told of in order: when the second one was, the first was looked at again.
    await cluster.wait_for("Event", is_told_of("n2"))
    assert [event["count"] for event in told_of(cluster, "n1")] == [1]


async def test_a_plugin_that_comes_later_is_told_of_and_gives_way_to_nobody(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """What was given before it came stays; nothing more is given."""
    cluster.load(*plugged(plugins={}))
    await operator()
    cluster.create(pod("first"))
    await cluster.wait_for("Pod", running_pod("first"))
    assert told_of(cluster, "n1") == []

    body = cluster.get("Node", "n1")
    body["status"]["allocatable"] |= SOME
    cluster.replace(body, status=True)

    await cluster.wait_for("Event", is_told_of("n1"))
    cluster.create(pod("second"))
    second = await cluster.wait_for("Pod", waits_for("NothingFits"))
    assert "1 offered by device plugin too (nvidia.com/gpu)" in condition(second)["message"]
    assert running_pod("first")(cluster.get("Pod", "first"))


async def test_with_the_setting_devices_are_given_and_the_warning_remains(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """For plugins that keep to other devices than the driver."""
    cluster.load(*plugged())
    await operator(dual_mode_nodes="allow")
    cluster.create(pod())

    await cluster.wait_for("Pod", running_pod("p"))
    event = await cluster.wait_for("Event", is_told_of("n1"))
    assert event["message"].endswith(
        "Dovetail gives them all the same (dual_mode_nodes=allow): the plugin has to keep to other devices."
    )


async def test_each_replica_that_becomes_active_says_it_once(cluster: EmbeddedCluster) -> None:
    """What was said before may have been lost with the one that said it; the Event counts."""
    cluster.load(*plugged())
    for count in (1, 2):
        async with running(Settings(**QUICK)):
            await cluster.wait_for("Event", is_told_of("n1", count))
    assert len(told_of(cluster, "n1")) == 1
