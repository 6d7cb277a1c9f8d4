"""What the operator finds out about a cluster before its first decision: its API, its gates (T-30, V69)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from e2e import build
from e2e.harness import Cluster, ClusterFactory, ControlPlane, Object, Options, objects, running
from e2e.tests.claims import CLASSES, GPU, devices, gpu_slice, nic_slice, numa_mapping, pair
from e2e.tests.test_fire_apiserver import health

QUICK: dict[str, Any] = {"lease_seconds": 3}

WITHOUT_THE_API = Options(
    runtime_config={"resource.k8s.io/v1": "false"},
    controllers=(),
    scheduler=False,
    kwok=False,
    # The Node authorizer follows ResourceSlices, and without them is never ready.
    authorization=("RBAC",),
)


@pytest.mark.oldest
@pytest.mark.parametrize("version", [build.KUBERNETES, build.OLDEST_KUBERNETES])
async def test_a_cluster_without_the_api_is_told_in_one_sentence(version: str) -> None:
    """resource.k8s.io/v1 is switched off: the process ends with status 1, and says what it needs (T-30)."""
    async with ControlPlane(replace(WITHOUT_THE_API, kubernetes=version)) as plane:
        cluster = Cluster(plane)
        await cluster.install({"gatePolicy": {"enabled": False}})
        operator = await cluster.new_operator(**QUICK)
        operator.program.start()

        assert await operator.program.ended(within=120) == 1
    (told,) = [entry for entry in operator.events if entry.get("event") == "operator_cannot_start"]
    assert told["reason"] == (
        f"Kubernetes v{version} does not serve resource.k8s.io/v1 ResourceClaims, which Dovetail needs: "
        "the API server's --runtime-config switches it off"
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


async def test_a_gate_that_is_switched_off_is_done_without(cluster_with: ClusterFactory) -> None:
    """The API server comes back without it and drops shares (V69): devices are given whole (R-B13)."""
    cluster = await cluster_with(Options(gates={SHARES: True}))
    await cluster.add_node("n1")
    await cluster.apply(shareable_gpu("n1"), nic_slice("n1", 0, 0), *CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    operator = await cluster.operator(**QUICK)
    program = cluster.plane.apiserver.program
    program.command = [str(flag).replace(f"{SHARES}=true", f"{SHARES}=false") for flag in program.command]

    await cluster.plane.apiserver.restart()
    await cluster.kube.create(objects.pod("p", templates={"devices": "pair"}), namespace)

    await cluster.kube.wait_for("Pod", "p", running, namespace, within=90)
    learnt = await operator.event("feature_gate_off")
    assert (learnt["gates"], learnt["fields"]) == ([SHARES], ["consumedCapacity", "shareID"])
    (claim,) = await cluster.kube.list("ResourceClaim", namespace)
    assert not any("shareID" in result for result in claim["status"]["allocation"]["devices"]["results"])
    await health(f"http://{operator.settings['listen']}/readyz", 503, within=10)


SHARES = "DRAConsumableCapacity"


def shareable_gpu(node: str) -> Object:
    """A GPU that several claims may share by its capacity (KEP-5075)."""
    policy = {"default": "10Gi", "validRange": {"min": "1Gi"}}
    gpu = objects.device("gpu-0", numaNode=0) | {
        "capacity": {"memory": {"value": "80Gi", "requestPolicy": policy}},
        "allowMultipleAllocations": True,
    }
    return objects.resource_slice(node, GPU, [gpu])
