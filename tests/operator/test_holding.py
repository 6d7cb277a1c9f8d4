"""Devices that get free are held for a pod that needs several at once."""

import asyncio
from functools import partial

from dovetail.embedded import EmbeddedCluster
from dovetail.handlers.context import Context
from tests.operator.conftest import OperatorStarter
from tests.operator.test_order import is_open
from tests.operator.worlds import (
    CLASSES,
    Body,
    aligned,
    claim,
    condition,
    devices_of,
    gpus,
    is_gated,
    node,
    pod,
    waits_for,
)

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
WORLD = [node(), *CLASSES, gpus(0, 0, 0, 0), NAMESPACE]


def create(
    cluster: EmbeddedCluster, name: str, *, count: int = 1, priority: int = 0, namespace: str = "default"
) -> None:
    """A pod for some GPUs of one NUMA node, with its claim."""
    for body in (claim(name, aligned("gpu", gpu=count)), pod(name, claim=name, priority=priority)):
        cluster.create(body | {"metadata": body["metadata"] | {"namespace": namespace}})


def finish(cluster: EmbeddedCluster, name: str) -> None:
    """The pod is done and gone, and so is its claim."""
    cluster.delete("Pod", name)
    held = cluster.get("ResourceClaim", name)
    held["metadata"].pop("finalizers", None)
    cluster.replace(held)
    cluster.delete("ResourceClaim", name)


async def crowd(cluster: EmbeddedCluster) -> list[str]:
    """Four small pods have all four devices."""
    names = [f"small-{index}" for index in range(4)]
    for name in names:
        create(cluster, name)
        await cluster.wait_for("Pod", partial(is_open, name))
    return names


async def large_waits(cluster: EmbeddedCluster, name: str = "large", priority: int = 100) -> None:
    """A pod for all four devices comes, and devices are held for it."""
    create(cluster, name, count=4, priority=priority)
    await cluster.wait_for("Event", partial(is_held_for, name), timeout_seconds=20)


def is_held_for(name: str, body: Body) -> bool:
    """The event says that devices are held for the pod."""
    return bool(body["reason"] == "DevicesHeld" and body["involvedObject"]["name"] == name)


def is_told(name: str, reason: str, body: Body) -> bool:
    """The pod of this name says that it waits, for this reason."""
    return bool(body["metadata"]["name"] == name and waits_for(reason)(body))


def held_pods(context: Context) -> float:
    """For how many pods devices are held."""
    assert context.operation is not None
    return context.operation.metrics.registry.get_sample_value("dovetail_held_pods") or 0.0


async def until_held(context: Context, count: int) -> None:
    """Wait until devices are held for so many pods."""
    async with asyncio.timeout(20):
        while held_pods(context) != count:  # noqa: ASYNC110 - a metric is no event
            await asyncio.sleep(0.05)


async def test_a_large_pod_is_served_while_small_ones_keep_coming(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Devices that get free one by one collect; small pods come before each of them, and wait."""
    bare.load(*WORLD)
    await operator()
    running = await crowd(bare)
    await large_waits(bare)

    for number, name in enumerate(running):
        late = f"late-{number}"
        create(bare, late)
        finish(bare, name)
        await bare.wait_for("Pod", partial(is_told, late, ""))

    await bare.wait_for("Pod", partial(is_open, "large"), timeout_seconds=20)
    assert len(devices_of(bare.get("ResourceClaim", "large"))) == 4
    assert all(is_gated(bare.get("Pod", f"late-{number}")) for number in range(4))


async def test_who_is_held_back_is_told_for_whom(bare: EmbeddedCluster, operator: OperatorStarter) -> None:
    """By name within the namespace, without it in another one."""
    bare.load(*WORLD)
    await operator()
    running = await crowd(bare)
    await large_waits(bare)
    finish(bare, running[0])

    create(bare, "near")
    create(bare, "far", namespace="other")

    near = await bare.wait_for("Pod", partial(is_told, "near", "HeldForAnother"))
    far = await bare.wait_for("Pod", partial(is_told, "far", "HeldForAnother"))
    assert "'large'" in condition(near)["message"]
    assert "large" not in condition(far)["message"]


async def test_a_hold_ends_after_its_time_and_does_not_come_back_at_once(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The other holders run for ever: what is free goes to whoever waits."""
    bare.load(*WORLD)
    context = await operator(hold_seconds=3)
    running = await crowd(bare)
    await large_waits(bare)
    create(bare, "small")
    finish(bare, running[0])
    await bare.wait_for("Pod", partial(is_told, "small", "HeldForAnother"))

    await bare.wait_for("Pod", partial(is_open, "small"), timeout_seconds=20)

    assert is_gated(bare.get("Pod", "large"))
    assert held_pods(context) == 0


async def test_a_hold_ends_with_its_pod(bare: EmbeddedCluster, operator: OperatorStarter) -> None:
    """The pod is deleted: who was held back is served."""
    bare.load(*WORLD)
    context = await operator()
    running = await crowd(bare)
    await large_waits(bare)
    create(bare, "small")
    finish(bare, running[0])
    await bare.wait_for("Pod", partial(is_told, "small", "HeldForAnother"))

    bare.delete("Pod", "large")

    await bare.wait_for("Pod", partial(is_open, "small"), timeout_seconds=20)
    await until_held(context, 0)


async def test_a_more_urgent_pod_is_not_held_back(bare: EmbeddedCluster, operator: OperatorStarter) -> None:
    """It takes the device that is free, and the hold goes on with what it can have later."""
    bare.load(*WORLD)
    context = await operator()
    running = await crowd(bare)
    await large_waits(bare)
    finish(bare, running[0])

    create(bare, "urgent", priority=200)

    await bare.wait_for("Pod", partial(is_open, "urgent"))
    await until_held(context, 1)


async def test_two_large_pods_are_served_one_after_the_other(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The more urgent one first; neither waits for devices that are held for the other."""
    bare.load(*WORLD)
    await operator()
    running = await crowd(bare)
    await large_waits(bare, "second", priority=50)
    await large_waits(bare, "first", priority=100)

    for name in running:
        finish(bare, name)

    await bare.wait_for("Pod", partial(is_open, "first"), timeout_seconds=20)
    assert is_gated(bare.get("Pod", "second"))
    finish(bare, "first")
    await bare.wait_for("Pod", partial(is_open, "second"), timeout_seconds=20)


async def test_without_seconds_nothing_is_held(bare: EmbeddedCluster, operator: OperatorStarter) -> None:
    """The setting switches it off: the small pod takes what is free."""
    bare.load(*WORLD)
    context = await operator(hold_seconds=0)
    running = await crowd(bare)
    create(bare, "large", count=4, priority=100)
    await bare.wait_for("Pod", partial(is_told, "large", "NothingFits"))

    create(bare, "small")
    finish(bare, running[0])

    await bare.wait_for("Pod", partial(is_open, "small"))
    assert held_pods(context) == 0
