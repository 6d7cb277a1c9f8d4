"""What the operator finds out about a cluster before its first decision: its API, its gates (T-30, V69)."""

from __future__ import annotations

from typing import Any

from e2e.harness import ClusterFactory, Options, objects, running
from e2e.tests.claims import CLASSES, devices, gpu_slice, nic_slice, numa_mapping, pair

QUICK: dict[str, Any] = {"lease_seconds": 3}
NO_API = Options(runtime_config={"resource.k8s.io/v1": "false"})


async def test_a_cluster_without_the_api_is_told_in_one_sentence(cluster_with: ClusterFactory) -> None:
    """resource.k8s.io/v1 is not served: the process ends with status 1, and says what it needs (T-30)."""
    cluster = await cluster_with(NO_API)
    operator = await cluster.new_operator(**QUICK)
    operator.program.start()

    assert await operator.program.ended(within=60) == 1
    (told,) = [entry for entry in operator.events if entry.get("event") == "operator_cannot_start"]
    assert told["reason"] == (
        "Kubernetes v1.37.2 does not serve resource.k8s.io/v1 ResourceClaims, which Dovetail needs: "
        "upgrade to 1.34 or newer"
    )


async def test_gates_are_asked_of_the_api_server(cluster_with: ClusterFactory) -> None:
    """One that is on by default is off, one that is off by default is on: the log says so, and pods run."""
    gates = {"DRAConsumableCapacity": False, "DRAListTypeAttributes": True}
    cluster = await cluster_with(Options(gates=gates))
    await cluster.add_node("n1")
    await cluster.apply(gpu_slice("n1", 0), nic_slice("n1", 0), *CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.template("pair", pair()), namespace)

    operator = await cluster.operator(**QUICK)
    await cluster.kube.create(objects.pod("p", templates={"devices": "pair"}), namespace)

    await cluster.kube.wait_for("Pod", "p", running, namespace)
    (claim,) = await cluster.kube.list("ResourceClaim", namespace)
    assert len(devices(claim)) == 2
    on = (await operator.event("cluster_examined"))["gates"]
    assert {name: name in on for name in gates} == gates
    assert "DRADeviceTaints" in on
