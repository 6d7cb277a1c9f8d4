"""What one tenant writes into a claim disturbs nobody else."""

import sys
from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest

from e2e.chaos import attacks, world
from e2e.chaos.attacks import Attack
from e2e.chaos.stage import MOST_MEGABYTES
from e2e.harness import objects
from e2e.harness.cluster import Cluster
from e2e.harness.kube import running
from e2e.harness.usage import memory_mib
from e2e.tests.claims import gpu_slice, nic_slice, pair, waits

DEEP = 5000
"""Ten kilobytes of brackets, opened and closed."""


@pytest.fixture
def deep_json() -> Iterator[None]:
    """The test itself has to write such a claim, and to list it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(3 * DEEP)
    yield
    sys.setrecursionlimit(before)


def nested(depth: int) -> dict[str, Any]:
    """Parameters as deep as ten kilobytes allow."""
    inner: Any = "x"
    for _ in range(depth):
        inner = [inner]
    return {"p": inner}


@pytest.mark.usefixtures("deep_json")
async def test_parameters_that_are_nested_without_end_stop_nobody(cluster: Cluster) -> None:
    """The API server takes them; the pods of others run all the same, and the claim's own pod is told."""
    await cluster.add_world(objects.AZURE_GB300, "gb1")
    tenant, namespace = await cluster.namespace(), await cluster.namespace()
    spec = objects.claim_spec({"gpu": "gpu.nvidia.com", "nic": "dra.net"}, match="dovetail.dev/numaNode")
    config = [{"opaque": {"driver": "gpu.nvidia.com", "parameters": nested(DEEP)}}]
    hostile = {"devices": copy(spec["devices"]) | {"config": config}}
    await cluster.apply(objects.template("pair", spec), namespace=namespace)
    await cluster.kube.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "deep"},
            "spec": hostile,
        },
        tenant,
    )
    await cluster.operator(claim_generation="never")

    await cluster.kube.create(objects.pod("p", templates={"pair": "pair"}), namespace)
    await cluster.kube.create(objects.pod("p", claims={"deep": "deep"}), tenant)

    await cluster.kube.wait_for("Pod", "p", running, namespace)
    await cluster.kube.wait_for("Pod", "p", waits("ClaimMalformed", "nested more than"), tenant)


async def test_a_pod_runs_beside_every_attack(cluster: Cluster) -> None:
    """All attacks of `make chaos` at once: a pod of others runs, each attacker is told, memory is bounded."""
    await cluster.add_node("n3")
    await cluster.apply(*world.classes(), *attacks.hardware(), gpu_slice("n3", 0, 0), nic_slice("n3", 0, 0))
    tenant, namespace = await cluster.namespace(), await cluster.namespace()
    await cluster.apply(objects.template("pair", pair()), namespace=namespace)
    operator = await cluster.operator(claim_generation="always")
    names = {f"attacker-{index}": attack for index, attack in enumerate(Attack)}
    for name, attack in names.items():
        await cluster.kube.create(attacks.claim(name, attack), tenant)
        await cluster.kube.create(attacks.pod(name, is_gated=True), tenant)

    await cluster.kube.create(objects.pod("p", templates={"pair": "pair"}), namespace)

    await cluster.kube.wait_for("Pod", "p", running, namespace)
    told = waits()
    await cluster.kube.wait_all(
        "Pod", lambda pods: len(pods) == len(names) and all(map(told, pods)), tenant, within=120
    )
    assert memory_mib(operator.program.pid) < MOST_MEGABYTES
