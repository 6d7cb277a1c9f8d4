"""The gate by policy, and what an ungated pod costs everybody (V-15)."""

from __future__ import annotations

from time import monotonic

from e2e.harness import objects
from e2e.harness.cluster import Cluster
from e2e.harness.kube import Object, running
from e2e.tests.claims import CLASSES, GPU, NIC, NUMA, gated, gpu_slice, nic_slice, numa_mapping, waits

QUICK = {"lease_seconds": 3}
CPU = "cpu.example.com"


def stalling() -> Object:
    """The claim of V-15: many CPUs first, and a constraint on later requests that nothing satisfies."""
    return objects.claim_spec(
        {"cpu": {"deviceClassName": CPU, "count": 8}, "gpu": GPU, "nic": NIC},
        constraints=[{"matchAttribute": NUMA, "requests": ["gpu", "nic"]}],
    )


async def world(cluster: Cluster, **labels: str) -> str:
    """A node with 32 CPUs, and a GPU and a NIC on different NUMA nodes."""
    await cluster.add_node("n1")
    cpus = [objects.device(f"cpu-{index}", numaNode=index % 2) for index in range(32)]
    await cluster.apply(
        gpu_slice("n1", 0),
        nic_slice("n1", 1),
        objects.resource_slice("n1", CPU, cpus),
        objects.device_class(CPU),
        *CLASSES,
        numa_mapping(),
    )
    namespace = await cluster.namespace(**labels)
    await cluster.kube.create(objects.template("stalling", stalling()), namespace)
    return namespace


async def test_plain_pods_bind_at_once_beside_gated_ones(cluster: Cluster) -> None:
    """The shipped policy gates the pods; plain ones still bind in under a second."""
    namespace = await world(cluster, **{"dovetail.dev/gate": "enabled"})
    await cluster.operator(**QUICK)
    for number in range(3):
        await cluster.kube.create(
            objects.pod(f"p{number}", templates={"devices": "stalling"}, gates=()), namespace
        )
        waiting = await cluster.kube.wait_for("Pod", f"p{number}", waits(), namespace)
        assert gated(waiting)

    for number in range(5):
        before = monotonic()
        await cluster.kube.create(objects.pod(f"plain-{number}", gates=()), namespace)
        await cluster.kube.wait_for(
            "Pod", f"plain-{number}", lambda pod: bool(pod["spec"].get("nodeName")), namespace
        )
        assert monotonic() - before < 1


async def test_an_ungated_pod_is_warned(cluster: Cluster) -> None:
    """Without the policy's label the pod stays ungated, and one Warning names the gate."""
    namespace = await world(cluster)
    await cluster.operator(**QUICK)

    await cluster.kube.create(objects.pod("p", templates={"devices": "stalling"}, gates=()), namespace)

    events = await cluster.kube.wait_all(
        "Event", lambda items: any(item["reason"] == "NotGated" for item in items), namespace
    )
    (warning,) = [event for event in events if event["reason"] == "NotGated"]
    assert warning["type"] == "Warning"
    assert objects.GATE in warning["message"]


async def test_a_pod_with_a_node_is_not_gated(cluster: Cluster) -> None:
    """The policy leaves pods alone that have a node already: they could never be ungated in time."""
    namespace = await world(cluster, **{"dovetail.dev/gate": "enabled"})

    made = await cluster.kube.create(
        objects.pod("p", templates={"devices": "stalling"}, gates=(), nodeName="n1"), namespace
    )

    assert not gated(made)
    assert not running(made)
