"""Pods of high priority on full nodes: Dovetail gives the devices, kube-scheduler makes the room (V-20)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from e2e.harness import Cluster, Object, allocated, objects, running
from e2e.tests.claims import CLASSES, gated, gpu_slice, nic_slice, numa_mapping, pair, runs_on, waits

QUICK = {"lease_seconds": 3, "claim_generation": "never", "take_back_pause_seconds": 1}
HIGH, POLITE = "fire-high", "fire-polite"


def priority(name: str, policy: str) -> Object:
    """A PriorityClass above that of pods without one."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": 1000,
        "preemptionPolicy": policy,
    }


@pytest_asyncio.fixture(loop_scope="session")
async def two_nodes(cluster: Cluster) -> AsyncIterator[str]:
    """A namespace; two nodes with four CPUs and a pair of devices each, and two classes of priority."""
    for name in ("n1", "n2"):
        await cluster.add_node(name, cpu="4")
        await cluster.apply(gpu_slice(name, 0), nic_slice(name, 0))
    classes = (priority(HIGH, "PreemptLowerPriority"), priority(POLITE, "Never"))
    await cluster.apply(*CLASSES, numa_mapping(), *classes)
    namespace = await cluster.namespace()
    await cluster.apply(objects.template("pair", pair()), namespace=namespace)
    yield namespace
    for name in (HIGH, POLITE):
        await cluster.kube.delete("PriorityClass", name)


def important(priority_class: str = HIGH) -> Object:
    """A pod that needs a pair and most of a node's CPU."""
    return objects.pod("important", templates={"pair": "pair"}, cpu="3", priorityClassName=priority_class)


async def fill(cluster: Cluster, namespace: str, *nodes: str) -> None:
    """A pod of the lowest priority on each node takes nearly all CPU."""
    fillers = [objects.pod(f"filler-{node}", gates=(), cpu="3500m", nodeName=node) for node in nodes]
    await cluster.create_all(fillers, namespace)
    for node in nodes:
        await cluster.kube.wait_for("Pod", f"filler-{node}", running, namespace)


async def names(cluster: Cluster, namespace: str) -> set[str]:
    """The pods that are there."""
    return {pod["metadata"]["name"] for pod in await cluster.kube.list("Pod", namespace)}


async def test_room_is_made_where_the_devices_were_given(cluster: Cluster, two_nodes: str) -> None:
    """All nodes are full of lower priority: one pod is evicted, and the important one runs in its place."""
    await fill(cluster, two_nodes, "n1", "n2")
    await cluster.operator(**QUICK)

    await cluster.kube.create(important(), two_nodes)

    pod = await cluster.kube.wait_for("Pod", "important", running, two_nodes, within=60)
    node = pod["spec"]["nodeName"]
    other = "n2" if node == "n1" else "n1"
    assert await names(cluster, two_nodes) == {"important", f"filler-{other}"}


async def test_nobody_is_evicted_while_a_node_has_room(cluster: Cluster, two_nodes: str) -> None:
    """One node is full, the other is not: it is chosen, and everybody stays."""
    await fill(cluster, two_nodes, "n1")
    await cluster.operator(**QUICK)

    await cluster.kube.create(important(), two_nodes)

    await cluster.kube.wait_for("Pod", "important", runs_on("n2"), two_nodes)
    assert await names(cluster, two_nodes) == {"important", "filler-n1"}


async def test_a_pod_that_preempts_nobody_waits(cluster: Cluster, two_nodes: str) -> None:
    """PreemptionPolicy Never: it keeps its gate and says what is short, and runs when there is room."""
    await fill(cluster, two_nodes, "n1", "n2")
    await cluster.operator(**QUICK)
    await cluster.kube.create(important(POLITE), two_nodes)
    waiting = await cluster.kube.wait_for("Pod", "important", waits(text="cpu"), two_nodes)
    assert gated(waiting)
    assert await names(cluster, two_nodes) == {"important", "filler-n1", "filler-n2"}

    await cluster.kube.delete("Pod", "filler-n2", two_nodes)

    await cluster.kube.wait_for("Pod", "important", runs_on("n2"), two_nodes)


async def test_the_nominated_node_is_used(cluster: Cluster, two_nodes: str) -> None:
    """One PostFilter takes our allocation back and evicts a pod for ours: it gets its devices there again."""
    await cluster.operator(**QUICK)
    cluster.plane.scheduler.program.pause()
    await cluster.kube.create(important(), two_nodes)
    await cluster.kube.wait_for("Pod", "important", lambda pod: not gated(pod), two_nodes)
    (claim,) = await cluster.kube.list("ResourceClaim", two_nodes)
    terms = claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    node = terms[0]["matchFields"][0]["values"][0]
    await fill(cluster, two_nodes, node)
    states = asyncio.create_task(
        cluster.kube.wait_for("ResourceClaim", claim["metadata"]["name"], taken_back, two_nodes)
    )
    cluster.plane.scheduler.program.resume()

    await states
    nominated = await cluster.kube.wait_for("Pod", "important", lambda pod: bool(nomination(pod)), two_nodes)
    assert nomination(nominated) == node
    await cluster.kube.wait_for("Pod", "important", runs_on(node), two_nodes, within=60)
    assert await names(cluster, two_nodes) == {"important"}


def taken_back(claim: Object) -> bool:
    """Whether the claim has no devices any more."""
    return not allocated(claim)


def nomination(pod: Object) -> str:
    """The node that kube-scheduler nominated."""
    return str((pod.get("status") or {}).get("nominatedNodeName") or "")
