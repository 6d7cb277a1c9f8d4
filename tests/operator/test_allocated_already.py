"""T-12: an allocated claim keeps what it has; the pod joins it, in the write of what it gets."""

from typing import Any

import pytest

from dovetail.embedded import EmbeddedCluster
from dovetail.embedded.faults import Request
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import (
    Body,
    claim,
    condition,
    devices_of,
    is_gated,
    node,
    our_writes,
    pairs,
    pod,
    running_pod,
    waits_for,
)

PAIR = (("gpu", "gpu.nvidia.com", "gpu-1"), ("nic", "dra.net", "nic-1"))


def given_by_another(node_name: str = "n1") -> Body:
    """The status that somebody else writes: the second GPU and the second NIC of a node."""
    results = [
        {"request": request, "driver": driver, "pool": node_name, "device": device}
        for request, driver, device in PAIR
    ]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    return {
        "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}},
    }


def allocate(cluster: EmbeddedCluster, name: str, node_name: str = "n1") -> None:
    """Somebody else allocates the claim."""
    cluster.replace(cluster.get("ResourceClaim", name) | {"status": given_by_another(node_name)}, status=True)


def consumer(cluster: EmbeddedCluster, name: str) -> Body:
    """The entry of `reservedFor` that stands for a pod."""
    return {"resource": "pods", "name": name, "uid": cluster.get("Pod", name)["metadata"]["uid"]}


def sent(request: Request) -> Any:
    """The status that was sent."""
    return request.body["status"] if isinstance(request.body, dict) else None


async def test_an_allocated_claim_is_joined_and_not_overwritten(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """T-12: one write adds the pod; the devices are those that somebody else chose."""
    cluster.load(*pairs(2))
    cluster.create(claim("theirs"))
    allocate(cluster, "theirs")
    before = cluster.get("ResourceClaim", "theirs")["status"]["allocation"]
    await operator()

    cluster.create(pod(claim="theirs"))

    await cluster.wait_for("Pod", running_pod("p"))
    after = cluster.get("ResourceClaim", "theirs")["status"]
    assert after["allocation"] == before
    assert after["reservedFor"] == [consumer(cluster, "p")]
    assert our_writes(cluster) == [("PATCH", "resourceclaims/status"), ("PATCH", "pods")]


@pytest.mark.parametrize("write", ["resourceclaims", "resourceclaims/status"])
async def test_an_allocation_that_comes_just_before_the_write_stays(
    cluster: EmbeddedCluster, operator: OperatorStarter, write: str
) -> None:
    """T-12: Dovetail's write is refused for its old version, and the pod joins what is there."""
    cluster.load(*pairs(2))
    await operator()
    cluster.create(claim("raced"))
    cluster.faults.before("PUT", write, lambda: allocate(cluster, "raced"))

    cluster.create(pod(claim="raced"))

    await cluster.wait_for("Pod", running_pod("p"))
    status = cluster.get("ResourceClaim", "raced")["status"]
    assert devices_of({"status": status}) == ["gpu-1", "nic-1"]
    assert status["reservedFor"] == [consumer(cluster, "p")]


async def test_the_pod_is_reserved_in_the_write_of_the_allocation(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """T-12: `reservedFor` is appended with resource, name and UID, in the same request."""
    cluster.load(*pairs())
    await operator()

    cluster.create(pod())

    await cluster.wait_for("Pod", running_pod("p"))
    (write,) = cluster.writes("resourceclaims/status", "PUT")
    assert sent(write)["reservedFor"] == [consumer(cluster, "p")]
    assert [result["device"] for result in sent(write)["allocation"]["devices"]["results"]] == [
        "gpu-0",
        "nic-0",
    ]


async def test_a_claim_that_is_allocated_elsewhere_is_said_and_left_alone(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """T-12: the pod may not run on the node of its devices; it waits, and nothing is written to the claim."""
    cluster.load(*pairs(2), node("n2"))
    cluster.create(claim("theirs"))
    allocate(cluster, "theirs")
    before = cluster.get("ResourceClaim", "theirs")
    await operator()

    cluster.create(pod(claim="theirs", nodeSelector={"kubernetes.io/hostname": "n2"}))

    waiting = await cluster.wait_for("Pod", waits_for("NoNodeUsable"))
    assert condition(waiting)["message"] == (
        "The pod can use no node: 1 node is without the labels of the pod's node selector "
        "(kubernetes.io/hostname=n2). Claim 'theirs' is allocated on node n1."
    )
    assert is_gated(waiting)
    assert cluster.get("ResourceClaim", "theirs") == before
