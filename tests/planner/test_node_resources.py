"""Devices that take cpu, memory or huge pages of their node besides themselves (KEP-5517)."""

from typing import Any

import pytest

from dovetail.core.decisions import Decision, DoesNotFit, Place, Reserve
from dovetail.core.features import Features
from dovetail.core.reasons import Reason
from tests.planner.worlds import (
    Body,
    allocated,
    claim,
    decide,
    devices,
    devices_spec,
    hardware,
    named,
    pod,
    request,
    world_of,
)

GPU = "gpu.example.com"
GATE_ON = Features().with_gates({"DRANodeAllocatableResources": True})
ONE_GPU = devices_spec(request("gpu", GPU))
PER_POD = {"memory": {"overhead": {"perPod": "10Gi"}}}


def costly(node_name: str, resources: Body) -> Body:
    """The GPUs of a node, each with what it takes of the node."""
    published = devices(GPU, node_name, (0, 1))
    for device in published["spec"]["devices"]:
        device["nodeAllocatableResources"] = resources
    return published


def container(*entries: str, name: str = "main", **resources: Any) -> Body:
    """A container that uses some of the pod's claims."""
    return {"name": name, "resources": {"claims": [{"name": entry} for entry in entries], **resources}}


def ask(
    resources: Body,
    /,
    *bodies: Body,
    nodes: tuple[str, ...] = ("n1",),
    features: Features = GATE_ON,
    spec: Body | None = None,
    **of_pod: Any,
) -> Decision:
    """The decision about a pod that wants a GPU; nodes have 16Gi and 8 cpus."""
    entries = [named("claim")]
    world = world_of(
        *hardware(*nodes),
        costly("n1", resources),
        claim(spec=spec or ONE_GPU),
        *bodies,
        pod(claims=entries, **of_pod),
        features=features,
    )
    return decide(world)


def memory(amount: str) -> Body:
    return {"requests": {"memory": amount}}


def test_an_overhead_counts_beside_what_the_pod_asks_for() -> None:
    """10Gi for the device and 8Gi for the container are more than the node's 16Gi; the refusal says which."""
    decision = ask(PER_POD, containers=[container("devices", **memory("8Gi"))])

    assert isinstance(decision, DoesNotFit)
    assert decision.reason is Reason.NO_NODE_USABLE
    assert "memory (8Gi + 10Gi for its devices wanted, 16Gi left)" in decision.sentence
    assert isinstance(ask(PER_POD, containers=[container("devices", **memory("6Gi"))]), Place)


def test_without_the_gate_devices_take_nothing() -> None:
    """kube-scheduler does not look at the field then."""
    decision = ask(PER_POD, features=Features(), containers=[container("devices", **memory("8Gi"))])

    assert isinstance(decision, Place)


def test_another_node_is_chosen_where_the_devices_cost_less() -> None:
    """The second node publishes the same devices without an overhead."""
    decision = ask(PER_POD, nodes=("n1", "n2"), containers=[container("devices", **memory("8Gi"))])

    assert isinstance(decision, Place)
    assert decision.node == "n2"


@pytest.mark.parametrize(("users", "fits"), [(1, True), (2, True), (3, False)])
def test_an_overhead_per_container_counts_each_container_that_uses_the_claim(users: int, fits: bool) -> None:
    """7Gi each: two fit on 16Gi, three do not; a container without the claim costs nothing."""
    containers = [container("devices", name=f"c{number}") for number in range(users)]
    resources = {"memory": {"overhead": {"perContainer": "7Gi"}}}

    decision = ask(resources, containers=[*containers, container(name="other")])

    assert isinstance(decision, Place) is fits


def test_a_device_may_stand_for_cpus() -> None:
    """Two devices of five cpus each do not fit on eight, one does."""
    resources = {"cpu": {"mapping": {"deviceMultiplier": "5"}}}
    two = devices_spec(request("gpu", GPU, count=2), match=None)
    two["devices"]["constraints"] = [{"distinctAttribute": "dovetail.dev/numaNode"}]

    assert isinstance(ask(resources), Place)
    decision = ask(resources, spec=two)
    assert isinstance(decision, DoesNotFit)
    assert "cpu" in decision.sentence


def test_what_the_devices_of_other_pods_take_counts_on_their_node() -> None:
    """A pod that has its device, and no node yet, takes the overhead too; so does one that runs."""
    other = claim("other", spec=ONE_GPU, status=allocated("n1", "dev-0", reserved=["busy"]))

    places: tuple[Body, ...] = ({}, {"nodeName": "n1"})
    for where in places:
        busy = pod("busy", gated=False, claims=[named("other")], **where)
        assert isinstance(ask(PER_POD, other, busy), DoesNotFit)
        assert isinstance(ask({}, other, busy), Place)


def test_requests_of_the_pod_as_a_whole_are_a_ceiling() -> None:
    """The devices have to fit below it, and are not added to it."""
    used = [container("devices", **memory("1Gi"))]

    assert isinstance(ask(PER_POD, containers=used, resources=memory("12Gi")), Place)
    decision = ask(PER_POD, containers=used, resources=memory("8Gi"))
    assert isinstance(decision, DoesNotFit)
    assert "request of 8Gi memory" in decision.sentence


def test_a_claim_that_stands_for_a_resource_serves_one_pod() -> None:
    """kube-scheduler lets no second pod in; a claim with a mere overhead may be shared."""
    shared = claim("shared", spec=ONE_GPU, status=allocated("n1", "dev-0", reserved=["first"]))

    def joining(resources: Body) -> Decision:
        first = pod("first", gated=False, claims=[named("shared")], nodeName="n1")
        late = pod(claims=[named("shared")])
        bodies = (*hardware("n1"), costly("n1", resources), shared, first, late)
        return decide(world_of(*bodies, features=GATE_ON))

    refused = joining({"cpu": {"mapping": {"deviceMultiplier": "1"}}})
    assert isinstance(refused, DoesNotFit)
    assert "'first' has it" in refused.sentence
    assert joining({"memory": {"overhead": {"perPod": "1Gi"}}}) == Reserve((("default", "shared"),), "n1")
