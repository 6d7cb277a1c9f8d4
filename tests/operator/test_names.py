"""Who may read a namespace learns no names of objects in others: not from conditions, not from Events."""

import json

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import (
    Body,
    aligned,
    claim,
    condition,
    device_class,
    devices_of,
    gpus,
    is_gated,
    node,
    plain,
    pod,
    waits_for,
)

SECRET, TENANT = "acquisition-of-x", "tenant-a"


def world(cluster: EmbeddedCluster) -> None:
    """One node with one GPU."""
    cluster.load(node(), device_class("gpu", "gpu.nvidia.com"), gpus(0))


def ours(cluster: EmbeddedCluster) -> None:
    """A gated pod of namespace `default` with a claim of ours."""
    cluster.create(claim("mine", aligned("gpu")))
    cluster.create(pod("mine", claim="mine"))


def give_to_tenant(cluster: EmbeddedCluster) -> None:
    """A claim of another namespace gets the GPU by kube-scheduler."""
    body = claim(SECRET, plain("gpu"))
    body["metadata"]["namespace"] = TENANT
    made = cluster.create(body)
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}
    allocation = {"devices": {"results": [result]}, "allocationTimestamp": "2026-01-01T00:00:00Z"}
    cluster.replace(made | {"status": {"allocation": allocation}}, status=True)


def assert_names_nothing(body: Body) -> None:
    """Neither claim nor namespace of the tenant stands anywhere in the object."""
    assert SECRET not in json.dumps(body)
    assert TENANT not in json.dumps(body)


async def test_a_refusal_counts_the_holders_in_other_namespaces(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The condition and the Event say how many claims would have to give something back."""
    world(bare)
    give_to_tenant(bare)
    await operator()
    ours(bare)

    waiting = await bare.wait_for("Pod", waits_for("NothingFits"))
    event = await bare.wait_for("Event", lambda body: body["reason"] == "NothingFits")

    assert "if 1 claim of another namespace gave back gpu-0" in condition(waiting)["message"]
    assert_names_nothing(waiting)
    assert_names_nothing(event)


async def test_a_clash_counts_the_other_holders_in_other_namespaces(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The Event on the pod says that another namespace has its device, not who."""
    world(bare)
    await operator()
    ours(bare)
    await bare.wait_for("Pod", lambda body: not is_gated(body))
    assert devices_of(bare.get("ResourceClaim", "mine")) == ["gpu-0"]

    give_to_tenant(bare)

    event = await bare.wait_for("Event", lambda body: body["reason"] == "DeviceClash")
    assert event["involvedObject"]["name"] == "mine"
    assert "1 claim of another namespace" in event["message"]
    assert_names_nothing(event)


async def test_a_clash_at_the_gate_counts_the_other_holders_in_other_namespaces(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The gated pod gives way, and neither its Event nor its condition names whom to."""
    world(bare)
    await operator()
    once: list[None] = []

    def rival_first() -> None:
        if not once:
            once.append(None)
            give_to_tenant(bare)

    bare.faults.before("PUT", "resourceclaims/status", rival_first)
    ours(bare)

    event = await bare.wait_for("Event", lambda body: body["reason"] == "DeviceClash", timeout_seconds=10)
    waiting = await bare.wait_for("Pod", waits_for("NothingFits"), timeout_seconds=10)
    assert_names_nothing(event)
    assert_names_nothing(waiting)
