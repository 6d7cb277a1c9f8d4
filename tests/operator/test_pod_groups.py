"""Members of a PodGroup: kube-scheduler reserves for them, so that an empty `reservedFor` says nothing."""

from collections.abc import Callable

import pytest

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import Body, claim, is_gated, is_running, our_writes, pairs, pod, running_pod


def member(name: str = "p", **source: str) -> Body:
    """A gated pod of a group."""
    body = pod(name, **source)  # type: ignore[arg-type]
    body["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    return body


def has_devices(body: Body) -> bool:
    """The claim is allocated."""
    return "allocation" in (body.get("status") or {})


def is_open(name: str = "p") -> Callable[[Body], bool]:
    """A condition to wait for: the pod is there and its gate is gone."""
    return lambda body: body["metadata"]["name"] == name and not is_gated(body)


async def test_a_member_gets_devices_without_a_reservation(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A group cycle takes away what it finds reserved; it reserves itself what it finds free (T37-12)."""
    cluster.load(*pairs())
    await operator()

    cluster.create(member())

    running = await cluster.wait_for("Pod", running_pod("p"))
    (written,) = [request.body for request in cluster.writes("resourceclaims/status")]
    assert isinstance(written, dict)
    assert has_devices(written)
    assert "reservedFor" not in written["status"]
    (made,) = cluster.objects("ResourceClaim")
    assert [entry["uid"] for entry in made["status"]["reservedFor"]] == [running["metadata"]["uid"]]


async def test_members_share_a_claim_without_a_reservation(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The second joins what the first was given: one allocation, and both run."""
    cluster.load(*pairs())
    await operator()
    cluster.create(claim("mine"))

    for name in ("a", "b"):
        cluster.create(member(name, claim="mine"))

    await cluster.wait_for("Pod", running_pod("a"))
    await cluster.wait_for("Pod", running_pod("b"))
    assert our_writes(cluster).count(("PUT", "resourceclaims/status")) == 1


@pytest.mark.parametrize("mode", ["never", "auto", "always"])
async def test_devices_of_a_member_that_went_before_it_was_reserved_for_are_free(
    bare: EmbeddedCluster, operator: OperatorStarter, mode: str
) -> None:
    """kube-controller-manager frees only what was reserved, so that Dovetail does it in every mode."""
    bare.load(*pairs())
    await operator(release=mode, release_grace_seconds=0.3)
    bare.create(claim("mine"))
    bare.create(member(claim="mine"))
    await bare.wait_for("Pod", is_open())

    bare.delete("Pod", "p", now=True)

    await bare.wait_for("ResourceClaim", lambda body: not has_devices(body))


async def test_a_claim_that_somebody_else_allocated_is_not_freed(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """It has devices and neither consumers nor pods: whoever did that knows why."""
    bare.load(*pairs(2))
    await operator(release="always")
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}
    theirs = bare.create(claim("theirs"))
    bare.replace(theirs | {"status": {"allocation": {"devices": {"results": [result]}}}}, status=True)
    bare.create(claim("mine"))
    bare.create(member(claim="mine"))
    await bare.wait_for("Pod", is_open())

    bare.delete("Pod", "p", now=True)

    await bare.wait_for(
        "ResourceClaim", lambda body: body["metadata"]["name"] == "mine" and not has_devices(body)
    )
    assert has_devices(bare.get("ResourceClaim", "theirs"))


async def test_what_another_member_counts_on_is_not_taken_back(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A stuck member gives back what another uses unreserved only once that one is gone."""
    bare.load(*pairs())
    await operator(unschedulable_seconds=1, take_back_pause_seconds=0.2, resync_seconds=1)
    bare.create(claim("mine"))
    for name in ("a", "b"):
        bare.create(member(name, claim="mine"))
    await bare.wait_for("Pod", is_open("a"))
    await bare.wait_for("Pod", is_open("b"))
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    bare.patch("Pod", "a", {"status": {"conditions": [refusal]}}, status=True)

    with pytest.raises(TimeoutError):
        await bare.wait_for("ResourceClaim", lambda body: not has_devices(body), timeout_seconds=3)

    bare.delete("Pod", "b", now=True)
    await bare.wait_for("ResourceClaim", lambda body: not has_devices(body))
    assert not is_running(bare.get("Pod", "a"))
