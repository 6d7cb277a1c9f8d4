"""What was given is taken back where it cannot be used: carefully, and never from a bound pod."""

import asyncio
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any

import pytest
import structlog

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import (
    Body,
    bind,
    claim,
    condition,
    gpus,
    is_gated,
    nics,
    node,
    our_writes,
    pairs,
    pod,
    times_taken,
    waits_for,
)

PROMPT = {"unschedulable_seconds": 1, "take_back_pause_seconds": 0.3}


def has_devices(body: Body) -> bool:
    """The claim is allocated."""
    return "allocation" in (body.get("status") or {})


def unschedulable(cluster: EmbeddedCluster, name: str = "p") -> None:
    """kube-scheduler says that the pod fits nowhere."""
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    cluster.patch("Pod", name, {"status": {"conditions": [refusal]}}, status=True)


async def given(cluster: EmbeddedCluster, name: str = "p") -> Body:
    """The pod once its gate is open."""
    return await cluster.wait_for("Pod", lambda body: body["metadata"]["name"] == name and not is_gated(body))


async def test_devices_that_a_pod_cannot_use_go_to_another(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Unschedulable for the set time: taken back in two steps, said on the pod, given to the next (V-17)."""
    bare.load(*pairs())
    await operator(unschedulable_seconds=2, take_back_pause_seconds=0.3)
    bare.create(pod(claim="mine"))
    bare.create(claim("mine"))
    await given(bare)

    began = monotonic()
    unschedulable(bare)

    waiting = await bare.wait_for("Pod", waits_for())
    # kube-scheduler may find a place with one of its next tries.
    assert monotonic() - began >= 2.3
    assert "n1" in condition(waiting)["message"] or "avoid" in condition(waiting)["message"]
    event = await bare.wait_for("Event", lambda body: body["reason"] == "TakenBack")
    assert "0/1 nodes" in event["message"]
    bare.create(claim("theirs"))
    bare.create(pod("next", claim="theirs"))
    await given(bare, "next")


async def test_a_stuck_pod_stays_a_consumer_of_what_others_use(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A pod that is stuck a little later, with a claim of its own, gives that back."""
    bare.load(*pairs(2))
    await operator(**PROMPT)
    for name in ("shared", "own"):
        bare.create(claim(name))
    for name, of in (("a", "shared"), ("b", "shared"), ("c", "own")):
        bare.create(pod(name, claim=of))
        await given(bare, name)
    before = bare.get("ResourceClaim", "shared")["status"]

    with structlog.testing.capture_logs() as lines:
        unschedulable(bare, "a")
        unschedulable(bare, "c")
        await bare.wait_for(
            "ResourceClaim", lambda body: body["metadata"]["name"] == "own" and not has_devices(body)
        )

    assert bare.get("ResourceClaim", "shared")["status"] == before
    # Nothing was begun that had to be given up.
    assert "not_taken_back" not in [line["event"] for line in lines]


async def test_a_pod_whose_node_failed_it_is_placed_elsewhere(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The node is avoided: the same claim is allocated on the other one."""
    bare.load(*pairs(), node("n2"), gpus(0, node="n2"), nics(0, node="n2"))
    await operator(**PROMPT)
    bare.create(claim("mine"))
    bare.create(pod(claim="mine"))
    await given(bare)
    first = node_of(bare.get("ResourceClaim", "mine"))

    unschedulable(bare)

    await bare.wait_for("ResourceClaim", lambda body: has_devices(body) and node_of(body) != first)


async def test_a_pod_that_is_bound_between_the_steps_keeps_its_devices(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The reservation went first; the pod turns out to be bound: it is restored (V-16)."""
    bare.load(*pairs())
    await operator(unschedulable_seconds=1, take_back_pause_seconds=1)
    bare.create(claim("mine"))
    bare.create(pod(claim="mine"))
    await given(bare)
    unschedulable(bare)
    await bare.wait_for("ResourceClaim", lambda body: not body["status"].get("reservedFor"))

    bound = bind(bare)

    restored = await bare.wait_for("ResourceClaim", lambda body: body["status"].get("reservedFor"))
    assert restored["status"]["reservedFor"][0]["uid"] == bound["metadata"]["uid"]
    assert times_taken(bare, "mine") == 0


async def test_a_reservation_between_the_steps_ends_the_taking_back(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """kube-scheduler took the pod up again and reserved: the devices stay."""
    bare.load(*pairs())
    await operator(unschedulable_seconds=1, take_back_pause_seconds=0.5)
    bare.create(claim("mine"))
    made = bare.create(pod(claim="mine"))
    await given(bare)
    unschedulable(bare)
    between = await bare.wait_for("ResourceClaim", lambda body: not body["status"].get("reservedFor"))

    entry = {"resource": "pods", "name": "p", "uid": made["metadata"]["uid"]}
    with structlog.testing.capture_logs() as lines:
        bare.replace(between | {"status": between["status"] | {"reservedFor": [entry]}}, status=True)
        await until_logged(lines, "taken_back", "not_taken_back")

    assert times_taken(bare, "mine") == 0


async def test_a_bound_pod_with_an_unallocated_claim_is_served_on_its_node(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """`nodeName` is the only candidate, whatever other nodes offer (V-19)."""
    bare.load(*pairs(), node("n2"), gpus(0, 0, node="n2"), nics(0, 0, node="n2"))
    await operator()
    bare.create(claim("mine"))

    bare.create(pod(claim="mine", gates=(), nodeName="n2"))

    served = await bare.wait_for("ResourceClaim", lambda body: body["status"].get("reservedFor"))
    assert node_of(served) == "n2"


async def test_what_the_scheduler_took_back_is_given_elsewhere(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """An allocation cleared by somebody else: the pod is placed on another node (S42)."""
    bare.load(*pairs(), node("n2"), gpus(0, node="n2"), nics(0, node="n2"))
    await operator()
    bare.create(claim("mine"))
    bare.create(pod(claim="mine"))
    await given(bare)
    taken = bare.get("ResourceClaim", "mine")
    first = node_of(taken)

    bare.replace(taken | {"status": {}}, status=True)

    await bare.wait_for("ResourceClaim", lambda body: has_devices(body) and node_of(body) != first)


async def test_a_removed_reservation_is_not_fought_over(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """kube-scheduler's Unreserve takes our entry: it is left to reserve by itself (R4, S52)."""
    bare.load(*pairs())
    await operator()
    bare.create(claim("mine"))
    bare.create(pod(claim="mine"))
    await given(bare)
    before = our_writes(bare).count(("PUT", "resourceclaims/status"))

    held = bare.get("ResourceClaim", "mine")
    bare.replace(held | {"status": {"allocation": held["status"]["allocation"]}}, status=True)

    bare.create(claim("other"))
    with pytest.raises(TimeoutError):
        await bare.wait_for(
            "ResourceClaim", lambda body: body["status"].get("reservedFor"), timeout_seconds=1
        )
    assert our_writes(bare).count(("PUT", "resourceclaims/status")) == before


async def test_of_two_claims_with_one_device_the_gated_pods_gives_way(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Somebody else allocates the same GPU just before our write: ours is taken back, and said (R-A15)."""
    bare.load(*pairs())
    await operator()
    bare.create(claim("mine"))
    theirs = bare.create(claim("theirs"))

    def steal() -> None:
        result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}
        status = {"allocation": {"devices": {"results": [result]}}}
        bare.replace(theirs | {"status": status}, status=True)

    bare.faults.before("PUT", "resourceclaims/status", steal)
    bare.create(pod(claim="mine"))

    await bare.wait_for("Event", lambda body: body["reason"] == "DeviceClash")
    await bare.wait_for(
        "ResourceClaim", lambda body: body["metadata"]["name"] == "mine" and not has_devices(body)
    )
    waiting = await bare.wait_for("Pod", waits_for("NothingFits"))
    assert is_gated(waiting)


async def test_an_ungated_pod_of_ours_is_warned_once(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """It is served all the same, with one Warning that names the gate."""
    bare.load(*pairs())
    await operator()
    bare.create(claim("mine"))

    bare.create(pod(claim="mine", gates=()))

    await bare.wait_for("ResourceClaim", has_devices)
    event = await bare.wait_for("Event", lambda body: body["reason"] == "NotGated")
    assert "dovetail.dev/allocation" in event["message"]
    assert event["count"] == 1


async def until_logged(lines: Sequence[Mapping[str, Any]], *events: str) -> None:
    """Return once the log has one of these events."""
    async with asyncio.timeout(20):
        while not any(line["event"] in events for line in lines):  # noqa: ASYNC110 - a list tells nobody
            await asyncio.sleep(0.05)


def node_of(body: Body) -> str:
    """The node that a claim's allocation is for."""
    (term,) = body["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    return str(term["matchFields"][0]["values"][0])
