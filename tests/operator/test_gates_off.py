"""Feature gates that turn out to be off: the API server keeps less than was sent (V69)."""

import aiohttp

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import (
    Body,
    claim,
    is_gated,
    nics,
    our_writes,
    pairs,
    pod,
    running_pod,
    waits_for,
)


def shareable_gpu() -> Body:
    """A GPU that several claims may share by its capacity (KEP-5075)."""
    memory = {"value": "80Gi", "requestPolicy": {"default": "10Gi", "validRange": {"min": "1Gi"}}}
    device = {
        "name": "gpu-0",
        "attributes": {"numa": {"int": 0}},
        "capacity": {"memory": memory},
        "allowMultipleAllocations": True,
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "n1-gpu.nvidia.com"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [device],
        },
    }


def world() -> list[Body]:
    """One shareable GPU and two NICs on one NUMA node."""
    return [*(item for item in pairs(2) if item["kind"] != "ResourceSlice"), shareable_gpu(), nics(0, 0)]


async def test_shares_are_given_where_the_gate_is_on(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Two pods share the GPU: what the next test takes away."""
    cluster.load(*world())
    await operator()

    for name in ("p1", "p2"):
        cluster.create(pod(name))

    for name in ("p1", "p2"):
        await cluster.wait_for("Pod", running_pod(name))


async def test_a_dropped_field_is_noticed_and_done_without(
    cluster: EmbeddedCluster, operator: OperatorStarter, unused_tcp_port: int
) -> None:
    """The share comes back whole: Event and /readyz name the gate, and the device is not shared (R-B13)."""
    cluster.load(*world())
    cluster.faults.drop_fields("shareID", "consumedCapacity")
    address = f"127.0.0.1:{unused_tcp_port}"
    await operator(listen=address)
    cluster.create(claim("mine"))

    cluster.create(pod("p1", claim="mine"))

    await cluster.wait_for("Pod", running_pod("p1"))
    event = await cluster.wait_for("Event", lambda body: body["reason"] == "FeatureGateOff")
    assert "feature gate DRAConsumableCapacity is off" in event["message"]
    cluster.create(pod("p2"))
    waiting = await cluster.wait_for("Pod", waits_for("NothingFits"))
    assert is_gated(waiting)
    # The whole allocation, its taking back, and the one without the share.
    assert our_writes(cluster).count(("PUT", "resourceclaims/status")) == 3
    async with (
        aiohttp.ClientSession(f"http://{address}") as session,
        session.get("/readyz") as answer,
    ):
        assert answer.status == 503
        assert "feature gate DRAConsumableCapacity is off" in await answer.text()
