"""A host port is given once per node, address and protocol."""

from typing import Any

import pytest

from dovetail.core.node_refusals import NodeCause
from tests.nodes.asking import cause, usable
from tests.planner.worlds import Body, node, pod, world_of


def with_port(name: str, port: Body, **spec: Any) -> Body:
    """A pod with one port."""
    return pod(name, containers=[{"name": "main", "ports": [port]}], **spec)


@pytest.mark.parametrize(
    ("mine", "others", "conflict"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, True),
        ({"hostPort": 80}, {"hostPort": 81}, False),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, True),
        ({"hostPort": 80, "hostIP": "0.0.0.0"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, True),
        ({"containerPort": 80}, {"hostPort": 80}, False),
    ],
)
def test_ports_conflict_as_kube_scheduler_says(mine: Body, others: Body, conflict: bool) -> None:
    """The unspecified address stands for all of them."""
    running = with_port("other", others, gated=False, nodeName="n1")
    world = world_of(node("n1"), node("n2"), with_port("pod", mine), running)
    assert usable(world) == (("n2",) if conflict else ("n1", "n2"))
    if conflict:
        assert cause(world, "n1") is NodeCause.HOST_PORT


def test_on_the_network_of_the_host_every_port_is_the_hosts() -> None:
    """The API server fills in the host port; a manifest may leave it out."""
    running = with_port("other", {"hostPort": 80}, gated=False, nodeName="n1")
    world = world_of(node("n1"), with_port("pod", {"containerPort": 80}, hostNetwork=True), running)
    assert usable(world) == ()


def test_sidecars_hold_their_ports_and_other_init_containers_do_not() -> None:
    """A container that ends before the others start leaves its port."""
    init = {"name": "init", "ports": [{"hostPort": 80}]}
    brief = pod("brief", gated=False, nodeName="n1", initContainers=[init])
    lasting = pod("lasting", gated=False, nodeName="n2", initContainers=[{**init, "restartPolicy": "Always"}])
    world = world_of(node("n1"), node("n2"), brief, lasting, with_port("pod", {"hostPort": 80}))
    assert usable(world) == ("n1",)
