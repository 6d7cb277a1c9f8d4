"""A pod for all devices of a node beside many that want one: it is served although they keep coming."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest_asyncio

from e2e.harness import Cluster, Object, objects, running
from e2e.tests.claims import CLASSES, GPU, NUMA, gpu_slice, numa_mapping

QUICK = {"lease_seconds": 3, "claim_generation": "never"}
HIGH = "fire-holding"
SMALL_PODS = 39


@pytest_asyncio.fixture(loop_scope="session")
async def one_node(cluster: Cluster) -> AsyncIterator[str]:
    """A namespace; a node with four GPUs on one NUMA node, templates for one and for four, and a priority."""
    await cluster.add_node("n1", cpu="16")
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": HIGH},
        "value": 1000,
    }
    await cluster.apply(gpu_slice("n1", 0, 0, 0, 0), *CLASSES, numa_mapping(), high)
    namespace = await cluster.namespace()
    for name, count in (("small", 1), ("large", 4)):
        wish: Object = {"deviceClassName": GPU, "count": count}
        await cluster.apply(
            objects.template(name, objects.claim_spec({"gpu": wish}, match=NUMA)), namespace=namespace
        )
    yield namespace
    await cluster.kube.delete("PriorityClass", HIGH)


@asynccontextmanager
async def coming_and_going(cluster: Cluster, namespace: str) -> AsyncIterator[None]:
    """One by one pods that run end, and for each a new one comes, while the block lasts."""

    async def churn() -> None:
        number = SMALL_PODS
        while True:
            pods = await cluster.kube.list("Pod", namespace)
            for body in pods:
                if running(body) and body["metadata"]["name"].startswith("small"):
                    await cluster.kube.create(small(number), namespace)
                    await cluster.kube.delete("Pod", body["metadata"]["name"], namespace)
                    number += 1
                    break
            await asyncio.sleep(0.5)

    task = asyncio.create_task(churn())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def small(number: int) -> Object:
    """A pod for one device."""
    return objects.pod(f"small-{number}", templates={"devices": "small"})


async def test_a_large_pod_is_served_beside_small_ones(cluster: Cluster, one_node: str) -> None:
    """Four of four devices, while 39 pods of lower priority take turns with one each."""
    await cluster.operator(**QUICK)
    await cluster.create_all([small(number) for number in range(SMALL_PODS)], one_node)
    async with coming_and_going(cluster, one_node):
        large = objects.pod("large", templates={"devices": "large"}, priorityClassName=HIGH)
        await cluster.kube.create(large, one_node)

        await cluster.kube.wait_for("Pod", "large", running, one_node, within=90)
