"""The main job: from a gated pod with a template to a running pod with aligned devices."""

import json

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import (
    CLASSES,
    Body,
    aligned,
    claim,
    condition,
    devices_of,
    gpus,
    nics,
    node,
    our_writes,
    pod,
    running_pod,
    template,
)


def world(*extra: Body) -> list[Body]:
    """One node with a GPU and a NIC on NUMA node 1, and a NIC on NUMA node 0."""
    return [node(), *CLASSES, gpus(1), nics(0, 1), template(), *extra]


async def test_a_gated_pod_runs_with_aligned_devices(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A gated pod with a template gets a claim, devices on one NUMA node, its reservation, and runs."""
    cluster.load(*world())
    await operator()

    cluster.create(pod())

    running = await cluster.wait_for("Pod", running_pod("p"))
    (made,) = cluster.objects("ResourceClaim")
    assert devices_of(made) == ["gpu-0", "nic-1"]
    assert [entry["uid"] for entry in made["status"]["reservedFor"]] == [running["metadata"]["uid"]]
    assert made["status"]["allocation"]["allocationTimestamp"]
    assert json.loads(made["metadata"]["annotations"]["dovetail.dev/alignment"]) == [
        {"attribute": "dovetail.dev/numaNode", "requests": ["gpu", "nic"], "value": 1}
    ]


async def test_one_pod_costs_five_writes(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """A generated claim costs its creation and record, finalizer and status, and the gate of its pod."""
    cluster.load(*world())
    await operator()

    cluster.create(pod())
    await cluster.wait_for("Pod", running_pod("p"))

    assert our_writes(cluster) == [
        ("POST", "resourceclaims"),
        ("PATCH", "pods/status"),
        ("PUT", "resourceclaims"),
        ("PUT", "resourceclaims/status"),
        ("PATCH", "pods"),
    ]


async def test_pods_that_exist_before_the_operator_are_served(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """What arrived while no operator ran is served when one starts."""
    cluster.load(*world())
    cluster.create(pod())

    await operator()

    await cluster.wait_for("Pod", running_pod("p"))


async def test_two_claims_of_a_pod_are_written_together(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Both claims get their devices before the gate is opened once."""
    cluster.load(node(), *CLASSES, gpus(0, 1), nics(0, 1), template())
    await operator()
    both = [{"name": name, "resourceClaimTemplateName": "pair"} for name in ("a", "b")]

    cluster.create(pod(resourceClaims=both, containers=[{"name": "main", "image": "pause"}]))

    await cluster.wait_for("Pod", running_pod("p"))
    held = [device for made in cluster.objects("ResourceClaim") for device in devices_of(made)]
    assert sorted(held) == ["gpu-0", "gpu-1", "nic-0", "nic-1"]
    assert [kind for kind in our_writes(cluster) if kind == ("PATCH", "pods")] == [("PATCH", "pods")]


async def test_a_pod_that_does_not_fit_is_told_why(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The condition names the attribute, one event says the same, and the gate stays."""
    cluster.load(node(), *CLASSES, gpus(1), nics(0), template())
    await operator()

    cluster.create(pod())

    waiting = await cluster.wait_for("Pod", lambda body: condition(body).get("status") == "False")
    assert "dovetail.dev/numaNode" in condition(waiting)["message"]
    assert waiting["spec"]["schedulingGates"] == [{"name": "dovetail.dev/allocation"}]
    event = await cluster.wait_for("Event", lambda body: body["involvedObject"]["name"] == "p")
    assert (event["type"], event["reason"]) == ("Warning", condition(waiting)["reason"])


async def test_a_new_slice_makes_a_waiting_pod_fit(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The pod is tried again at once when devices appear, and its condition turns True."""
    cluster.load(node(), *CLASSES, gpus(1), template())
    await operator()
    cluster.create(pod())
    await cluster.wait_for("Pod", lambda body: condition(body).get("status") == "False")

    cluster.create(nics(1))

    running = await cluster.wait_for("Pod", running_pod("p"), timeout_seconds=5)
    assert condition(running)["status"] == "True"


async def test_a_plain_claim_is_none_of_our_business(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A gated pod without a claim of ours is ungated at once; its claim is neither allocated nor reserved."""
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    cluster.load(*world())
    await operator()
    cluster.create(claim("plain", spec))

    cluster.create(pod(claim="plain"))

    await cluster.wait_for("Pod", lambda body: not body["spec"].get("schedulingGates"))
    assert not cluster.writes("resourceclaims/status")
    assert not cluster.writes("resourceclaims")


async def test_fields_that_no_model_knows_survive(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A claim is written from the JSON that was read: unknown fields in spec and status stay."""
    cluster.load(*world())
    await operator()
    made = cluster.create(claim("odd", aligned() | {"future": {"field": [1]}}))
    cluster.replace(made | {"status": {"futureStatus": {"kept": True}}}, status=True)

    cluster.create(pod(claim="odd"))

    await cluster.wait_for("Pod", running_pod("p"))
    kept = cluster.get("ResourceClaim", "odd")
    assert kept["spec"]["future"] == {"field": [1]}
    assert kept["status"]["futureStatus"] == {"kept": True}


async def test_kopf_leaves_no_trace_on_objects(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """No object carries an annotation or finalizer of Kopf."""
    cluster.load(*world())
    await operator()
    cluster.create(pod())
    await cluster.wait_for("Pod", running_pod("p"))

    kinds = ("Pod", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass", "Node")
    assert not [kind for kind in kinds for body in cluster.objects(kind) if "kopf" in json.dumps(body)]
