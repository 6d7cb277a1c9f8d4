"""Taking back on the real control plane: kube-scheduler, its binds and its PostFilter are the real ones."""

from __future__ import annotations

from e2e.harness import objects
from e2e.harness.cluster import Cluster
from e2e.harness.kube import Object, condition, running
from e2e.tests.claims import (
    CLASSES,
    gated,
    gpu_slice,
    nic_slice,
    numa_mapping,
    pair,
    reserved_for,
    runs_on,
    waits,
)

PROMPT = {"lease_seconds": 3, "unschedulable_seconds": 2, "take_back_pause_seconds": 1, "avoid_seconds": 60}


async def nodes(cluster: Cluster, *names: str, cpu: str = "4") -> str:
    """Nodes with one pair each, the mapping, and a namespace with a template."""
    for name in names:
        await cluster.add_node(name, cpu=cpu)
        await cluster.apply(gpu_slice(name, 0), nic_slice(name, 0))
    await cluster.apply(*CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    return namespace


def filler(node: str, cpu: str = "3500m") -> Object:
    """A plain pod that takes most of a node's CPU, past the scheduler."""
    return objects.pod(f"filler-{node}", gates=(), cpu=cpu, nodeName=node)


async def test_a_confined_pod_whose_node_fills_up_gives_its_devices_back(cluster: Cluster) -> None:
    """Taken back after the set time, another pod gets them, and the condition says why (V-17)."""
    namespace = await nodes(cluster, "n1", "n2")
    scheduler = cluster.plane.scheduler
    await cluster.operator(**PROMPT)
    await scheduler.stop()
    confined = objects.pod(
        "p", templates={"devices": "pair"}, cpu="1", nodeSelector={"kubernetes.io/hostname": "n1"}
    )
    await cluster.kube.create(confined, namespace)
    await cluster.kube.wait_for("Pod", "p", lambda pod: not gated(pod), namespace)
    await cluster.kube.create(filler("n1"), namespace)

    await scheduler.start()

    waiting = await cluster.kube.wait_for("Pod", "p", waits(), namespace, within=60)
    assert "n1" in (condition(waiting, "dovetail.dev/Allocated") or {})["message"]
    small = objects.pod("next", templates={"devices": "pair"}, nodeSelector={"kubernetes.io/hostname": "n1"})
    await cluster.kube.create(small, namespace)
    await cluster.kube.wait_for("Pod", "next", runs_on("n1"), namespace)


async def test_an_unconfined_pod_is_placed_elsewhere(cluster: Cluster) -> None:
    """kube-scheduler takes the claim back by itself (S42): the pod runs on the other node."""
    namespace = await nodes(cluster, "n1", "n2")
    scheduler = cluster.plane.scheduler
    await cluster.operator(**PROMPT)
    await scheduler.stop()
    await cluster.kube.create(objects.pod("p", templates={"devices": "pair"}, cpu="1"), namespace)
    await cluster.kube.wait_for("Pod", "p", lambda pod: not gated(pod), namespace)
    (claim,) = await cluster.kube.list("ResourceClaim", namespace)
    (term,) = claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    (first,) = term["matchFields"][0]["values"]
    await cluster.kube.create(filler(first), namespace)

    await scheduler.start()

    other = "n2" if first == "n1" else "n1"
    await cluster.kube.wait_for("Pod", "p", runs_on(other), namespace, within=60)


async def test_a_pod_whose_bind_is_under_way_keeps_its_claim(cluster: Cluster) -> None:
    """The bind is held longer than the pod's patience: in the end the claim is whole (V-16)."""
    namespace = await nodes(cluster, "n1")
    webhook = await cluster.webhook("pods/binding")
    await cluster.operator(**PROMPT | {"take_back_pause_seconds": 20})
    await cluster.kube.create(objects.pod("blocker", gates=(), cpu="3500m"), namespace)
    await cluster.kube.wait_for("Pod", "blocker", running, namespace)
    webhook.hold()
    await cluster.kube.create(objects.claim("mine", pair()), namespace)
    await cluster.kube.create(objects.pod("p", claims={"devices": "mine"}, cpu="100m"), namespace)
    await webhook.arrived(lambda request: request["name"] == "p")
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "stale"}
    await cluster.kube.patch(
        "Pod", "p", {"status": {"conditions": [refusal]}}, namespace, how="strategic", subresource="status"
    )
    await cluster.kube.wait_for(
        "ResourceClaim", "mine", lambda claim: not reserved_for(claim), namespace, within=20
    )

    webhook.release()

    pod = await cluster.kube.wait_for("Pod", "p", running, namespace)
    claim = await cluster.kube.wait_for(
        "ResourceClaim", "mine", lambda item: bool(reserved_for(item)), namespace
    )
    assert reserved_for(claim) == [pod["metadata"]["uid"]]
    assert "allocation" in claim["status"]
