"""Beside kube-scheduler without a fence: a gate stays shut while it may be giving the same devices away."""

from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest

from dovetail.embedded import EmbeddedCluster
from dovetail.services.rivals import SETTLE_SECONDS
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import (
    Body,
    aligned,
    claim,
    condition,
    device_class,
    devices_of,
    gpus,
    is_gated,
    node,
    our_writes,
    pairs,
    plain,
    pod,
    waits_for,
)

PROMPT_SECONDS = 2.5
"""A gate that nothing keeps shut is open by then, on a busy machine too."""


def world(cluster: EmbeddedCluster, *, gpu_count: int = 2) -> None:
    """One node with GPUs; a claim of ours asks for one."""
    cluster.load(node(), device_class("gpu", "gpu.nvidia.com"), gpus(*[0] * gpu_count))


def ours(cluster: EmbeddedCluster, name: str = "mine") -> None:
    """A gated pod with a claim of ours."""
    cluster.create(claim(name, aligned("gpu")))
    cluster.create(pod(name, claim=name))


def theirs(cluster: EmbeddedCluster, name: str = "theirs", **of_pod: Any) -> None:
    """A pod of kube-scheduler's, which has not found its device yet."""
    cluster.create(claim(name, plain("gpu")))
    cluster.create(pod(name, claim=name, gates=(), **of_pod))


def named(name: str, test: Callable[[Body], object]) -> Callable[[Body], bool]:
    """The test holds for the object of this name."""
    return lambda body: body["metadata"]["name"] == name and bool(test(body))


def has_devices(body: Body) -> bool:
    """The claim is allocated."""
    return "allocation" in (body.get("status") or {})


def give(cluster: EmbeddedCluster, name: str, device: str) -> None:
    """What kube-scheduler writes when it has chosen."""
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": device}
    body = cluster.get("ResourceClaim", name)
    allocation = {"devices": {"results": [result]}, "allocationTimestamp": "2026-01-01T00:00:00Z"}
    cluster.replace(body | {"status": {"allocation": allocation}}, status=True)


async def allocated(cluster: EmbeddedCluster, name: str = "mine") -> Body:
    """The claim once it has its devices."""
    return await cluster.wait_for("ResourceClaim", named(name, has_devices))


async def ungated(cluster: EmbeddedCluster, name: str = "mine", *, within: float = PROMPT_SECONDS) -> Body:
    """The pod once its gate is open."""
    return await cluster.wait_for("Pod", named(name, lambda body: not is_gated(body)), timeout_seconds=within)


async def stays_gated(cluster: EmbeddedCluster, name: str = "mine", *, seconds: float = 1.5) -> None:
    """The gate is not opened for so long."""
    with pytest.raises(TimeoutError):
        await ungated(cluster, name, within=seconds)


@pytest.fixture(params=["dated", "undated"])
def dating(request: pytest.FixtureRequest, bare: EmbeddedCluster) -> None:
    """Whether the API server keeps the time of an allocation: before 1.36 its gate is off."""
    if request.param == "undated":
        bare.faults.drop_fields("allocationTimestamp")


@pytest.mark.usefixtures("dating")
async def test_the_gate_opens_when_the_rival_has_another_device(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """While a plain claim could take the device the pod waits; it is let go when that claim is allocated."""
    world(bare)
    await operator()
    theirs(bare)
    ours(bare)
    (mine,) = devices_of(await allocated(bare))
    await stays_gated(bare)

    give(bare, "theirs", "gpu-1" if mine == "gpu-0" else "gpu-0")

    await ungated(bare)
    assert devices_of(bare.get("ResourceClaim", "mine")) == [mine]


@pytest.mark.usefixtures("dating")
async def test_of_a_clash_the_gated_pod_backs_out(bare: EmbeddedCluster, operator: OperatorStarter) -> None:
    """The rival got the very device after our write: ours goes to another one, with an Event (R2, R-A15)."""
    world(bare)
    await operator()
    theirs(bare)
    ours(bare)
    (mine,) = devices_of(await allocated(bare))

    give(bare, "theirs", mine)

    await bare.wait_for("Event", lambda body: body["reason"] == "DeviceClash")
    await ungated(bare, within=10)
    (now,) = devices_of(bare.get("ResourceClaim", "mine"))
    assert now != mine


async def test_a_device_held_twice_is_kept_from_a_third(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A taint is there before ours gives the device back, and goes when the rival has given it back too.

    By the time that ours has another device and its gate is open, an early deletion would have been sent.
    """
    world(bare)
    await operator()
    theirs(bare)
    ours(bare)
    (mine,) = devices_of(await allocated(bare))
    held_at_first: list[bool] = []
    bare.faults.before(
        "POST",
        "devicetaintrules",
        lambda: held_at_first.append(has_devices(bare.get("ResourceClaim", "mine"))),
    )

    give(bare, "theirs", mine)

    rule = await bare.wait_for(
        "DeviceTaintRule", lambda body: body["spec"]["taint"]["effect"] == "NoSchedule"
    )
    assert rule["spec"]["deviceSelector"] == {"driver": "gpu.nvidia.com", "pool": "n1", "device": mine}
    await ungated(bare, within=10)
    assert held_at_first == [True]
    assert devices_of(bare.get("ResourceClaim", "mine")) != [mine]
    assert bare.writes("devicetaintrules", "DELETE") == []
    body = bare.get("ResourceClaim", "theirs")
    bare.replace(body | {"status": {}}, status=True)
    await bare.wait_gone("DeviceTaintRule", rule["metadata"]["name"])


@pytest.mark.usefixtures("dating")
async def test_a_rival_keeps_a_gate_shut_for_five_seconds_at_most(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A plain pod that stays pending delays ours, and no longer; all claims are read once more before."""
    world(bare)
    await operator()
    theirs(bare)
    ours(bare)
    await allocated(bare)
    began, asked = monotonic(), len(bare.journal)

    await ungated(bare, within=8)

    assert 3.5 < monotonic() - began < 7
    reads = [(each.verb, each.resource) for each in bare.journal[asked:] if not each.is_write]
    assert ("list", "resourceclaims") in reads
    assert condition(bare.get("Pod", "mine")) == {}


@pytest.mark.usefixtures("dating")
async def test_without_rivals_nothing_waits_and_nothing_is_read(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Pods that are bound, gated, or want other devices cost no request and no time."""
    world(bare)
    bare.load(device_class("nic", "dra.net"))
    watch = bare.faults.hold("watch", "resourceclaims")
    await operator()
    # A watch that begins asks first whether the cluster was restored, which has nothing to do with rivals.
    await watch.arrived.wait()
    watch.release()
    bare.create(claim("bound", plain("gpu")))
    bare.create(pod("bound", claim="bound", gates=(), nodeName="n1"))
    bare.create(claim("gated", plain("gpu")))
    bare.create(pod("gated", claim="gated", gates=("example.com/other",)))
    asked = len(bare.journal)

    ours(bare)

    await ungated(bare)
    reads = [each for each in bare.journal[asked:] if each.verb in ("get", "list")]
    assert [each for each in reads if each.resource == "resourceclaims"] == []
    assert our_writes(bare)[-3:] == [
        ("PUT", "resourceclaims"),
        ("PUT", "resourceclaims/status"),
        ("PATCH", "pods"),
    ]


async def test_pods_that_want_other_devices_are_no_rivals(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A plain claim for NICs keeps a pod with a GPU waiting for a moment, in which a rival may come."""
    world(bare)
    bare.load(device_class("nic", "dra.net"))
    times: list[float] = []
    for method, resource in (("PUT", "resourceclaims/status"), ("PATCH", "pods")):
        bare.faults.before(method, resource, lambda: times.append(monotonic()))
    await operator()
    bare.create(claim("theirs", plain("nic")))
    bare.create(pod("theirs", claim="theirs", gates=()))

    ours(bare)

    await ungated(bare)
    written, opened = times
    assert opened - written >= SETTLE_SECONDS


async def test_a_pod_for_an_extended_resource_is_waited_for(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """kube-scheduler allocates devices for it too, by a claim that it makes itself (KEP-5004)."""
    world(bare)
    gpu = device_class("gpu", "gpu.nvidia.com")
    gpu["spec"]["extendedResourceName"] = "example.com/gpu"
    bare.delete("DeviceClass", "gpu")
    bare.create(gpu)
    await operator()
    wish = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    containers = [{"name": "main", "image": "registry.k8s.io/pause", "resources": wish}]
    bare.create(pod("theirs", gates=(), containers=containers, resourceClaims=[]))
    ours(bare)
    await allocated(bare)
    await stays_gated(bare)

    bare.delete("Pod", "theirs", now=True)

    await ungated(bare)


async def test_a_new_fence_is_not_trusted_at_once(bare: EmbeddedCluster, operator: OperatorStarter) -> None:
    """kube-scheduler may have chosen before it saw the taint; some seconds later nothing waits any more."""
    world(bare)
    await operator()
    owned = {"devices": [{"driver": "gpu.nvidia.com"}]}
    theirs(bare)
    bare.create(
        {
            "apiVersion": "dovetail.dev/v1alpha1",
            "kind": "DeviceOwnership",
            "metadata": {"name": "gpus"},
            "spec": owned,
        }
    )
    await bare.wait_for("DeviceTaintRule", lambda body: body["spec"]["taint"]["effect"] == "NoSchedule")

    ours(bare)

    await allocated(bare)
    await stays_gated(bare)
    await ungated(bare, within=8)
    ours(bare, "second")
    await ungated(bare, "second")


async def test_a_clash_behind_an_open_gate_is_told_only(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Once the pod is let go nothing is taken from it: an Event names the other claim."""
    world(bare)
    await operator()
    ours(bare)
    (mine,) = devices_of(await allocated(bare))
    await ungated(bare)
    before = len(our_writes(bare))

    bare.create(claim("theirs", plain("gpu")))
    give(bare, "theirs", mine)

    event = await bare.wait_for("Event", lambda body: body["reason"] == "DeviceClash")
    assert "default/theirs" in event["message"]
    assert event["involvedObject"]["name"] == "mine"
    assert devices_of(bare.get("ResourceClaim", "mine")) == [mine]
    written = {resource for _, resource in our_writes(bare)[before:]}
    assert written <= {"devicetaintrules"}


async def test_a_clash_while_the_gate_is_being_opened_is_told(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """It comes between the last look and the answer to the write that opens the gate."""
    world(bare, gpu_count=1)
    await operator(resync_seconds=600)
    opening = bare.faults.hold("patch", "pods", times=1)
    ours(bare)
    await opening.arrived.wait()

    bare.create(claim("plain", plain("gpu")))
    (taken,) = devices_of(await allocated(bare))
    give(bare, "plain", taken)
    await bare.wait_for("DeviceTaintRule", lambda _: True)
    opening.release()

    await ungated(bare, within=15)
    event = await bare.wait_for("Event", lambda each: each["reason"] == "DeviceClash")
    assert event["involvedObject"]["name"] == "mine"


async def test_without_the_right_to_taint_a_clash_is_backed_out_of_all_the_same(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The taint is a help, not a condition."""
    world(bare)
    await operator()
    bare.faults.deny("create", "devicetaintrules", "resource.k8s.io")
    theirs(bare)
    ours(bare)
    (mine,) = devices_of(await allocated(bare))

    give(bare, "theirs", mine)

    await ungated(bare, within=10)
    assert devices_of(bare.get("ResourceClaim", "mine")) != [mine]


async def test_a_late_watch_is_made_up_for_by_a_list(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The other allocator's write is not reported for seconds: it is read, and ours gives way (R-A15)."""
    bare.load(*pairs())
    bare.faults.delay("watch", "resourceclaims", seconds=8)
    await operator()
    bare.create(claim("theirs", plain("gpu")))
    bare.faults.before("PUT", "resourceclaims/status", lambda: give(bare, "theirs", "gpu-0"))

    bare.create(pod("mine"))

    await bare.wait_for("Event", lambda body: body["reason"] == "DeviceClash", timeout_seconds=7)
    waiting = await bare.wait_for("Pod", waits_for("NothingFits"))
    assert is_gated(waiting)
