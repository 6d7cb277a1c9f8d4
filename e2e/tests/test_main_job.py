"""The main job on the real control plane: pods get aligned devices, and run."""

from __future__ import annotations

import asyncio

from e2e.harness import objects
from e2e.harness.cluster import Cluster
from e2e.harness.kube import running
from e2e.tests.claims import (
    CLASSES,
    NUMA,
    alignment,
    devices,
    gated,
    gpu_slice,
    held_twice,
    nic_slice,
    numa_mapping,
    pair,
    plain_gpu,
    reserved_for,
    runs_on,
    waits,
)

QUICK = {"lease_seconds": 3}
"""The Lease of an operator that a test killed keeps the next one waiting only this long."""


async def one_node(cluster: Cluster, name: str = "n1", *, pairs: int = 1) -> None:
    """A node with so many GPUs and NICs on NUMA node 0, and the mapping for them."""
    await cluster.add_node(name)
    places = [0] * pairs
    await cluster.apply(gpu_slice(name, *places), nic_slice(name, *places), *CLASSES, numa_mapping())


async def test_devices_of_a_gb300_node_are_on_one_numa_node(cluster: Cluster) -> None:
    """A template with one GPU and one NIC: the pod runs, and the annotation says on which NUMA node."""
    await cluster.add_world(objects.AZURE_GB300, "gb300-1")
    namespace = await cluster.namespace()
    await cluster.operator(**QUICK)
    spec = objects.claim_spec({"gpu": "gpu.nvidia.com", "nic": "dra.net"}, match=NUMA)
    await cluster.kube.create(objects.template("pair", spec), namespace)

    await cluster.kube.create(objects.pod("p", templates={"devices": "pair"}), namespace)

    pod = await cluster.kube.wait_for("Pod", "p", running, namespace)
    (claim,) = await cluster.kube.list("ResourceClaim", namespace)
    (entry,) = alignment(claim)
    assert (entry["attribute"], entry["requests"]) == (NUMA, ["gpu", "nic"])
    assert [driver for driver, _, _ in devices(claim)] == ["gpu.nvidia.com", "dra.net"]
    assert pod["spec"]["nodeName"] == "gb300-1"
    slices = await cluster.kube.list("ResourceSlice")
    nics = {
        device["name"]: device["attributes"]["dra.net/numaNode"]["int"]
        for item in slices
        if item["spec"]["driver"] == "dra.net"
        for device in item["spec"]["devices"]
        if "dra.net/numaNode" in device["attributes"]
    }
    assert nics[devices(claim)[1][2]] == entry["value"]


async def test_the_controller_manager_generates_and_dovetail_adopts(cluster: Cluster) -> None:
    """Each pod has exactly one claim, made by kube-controller-manager, and both pods run."""
    await one_node(cluster, pairs=2)
    namespace = await cluster.namespace()
    await cluster.operator(**QUICK)
    await cluster.kube.create(objects.template("pair", pair()), namespace)

    await cluster.create_all(
        [objects.pod(name, templates={"devices": "pair"}) for name in ("p1", "p2")], namespace
    )

    for name in ("p1", "p2"):
        await cluster.kube.wait_for("Pod", name, running, namespace)
    claims = await cluster.kube.list("ResourceClaim", namespace)
    owners = sorted(claim["metadata"]["ownerReferences"][0]["name"] for claim in claims)
    managers = [{entry["manager"] for entry in claim["metadata"]["managedFields"]} for claim in claims]
    assert owners == ["p1", "p2"]
    assert all("kube-controller-manager" in names for names in managers)
    assert not held_twice(claims)


async def test_the_gate_goes_last(cluster: Cluster) -> None:
    """In every state that the API server shows, an ungated pod has its claim allocated and reserved."""
    await one_node(cluster)
    namespace = await cluster.namespace()
    await cluster.operator(**QUICK)
    await cluster.kube.create(objects.claim("mine", pair()), namespace)

    await cluster.kube.create(objects.pod("p", claims={"devices": "mine"}), namespace)
    pod = await cluster.kube.wait_for("Pod", "p", lambda item: not gated(item), namespace)
    claim = await cluster.kube.get("ResourceClaim", "mine", namespace)

    assert reserved_for(claim) == [pod["metadata"]["uid"]]
    assert "allocationTimestamp" in claim["status"]["allocation"]
    await cluster.kube.wait_for("Pod", "p", running, namespace)


async def test_devices_of_a_deleted_pod_go_to_a_waiting_one(cluster: Cluster) -> None:
    """The second pod waits with a reason, and runs as soon as the first is gone."""
    await one_node(cluster)
    namespace = await cluster.namespace()
    await cluster.operator(**QUICK)
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    await cluster.kube.create(objects.pod("first", templates={"devices": "pair"}), namespace)
    await cluster.kube.wait_for("Pod", "first", running, namespace)
    await cluster.kube.create(objects.pod("second", templates={"devices": "pair"}), namespace)
    await cluster.kube.wait_for("Pod", "second", waits(), namespace)

    await cluster.kube.delete("Pod", "first", namespace)

    await cluster.kube.wait_for("Pod", "second", running, namespace)


async def test_a_new_slice_makes_a_waiting_pod_fit(cluster: Cluster) -> None:
    """Condition and one event say what is missing; when it appears, the pod runs untouched."""
    await cluster.add_node("n1")
    await cluster.apply(gpu_slice("n1", 0), nic_slice("n1", 1), *CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.operator(**QUICK)
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    await cluster.kube.create(objects.pod("p", templates={"devices": "pair"}), namespace)
    waiting = await cluster.kube.wait_for("Pod", "p", waits(text=NUMA), namespace)
    events = await cluster.kube.wait_all("Event", lambda items: any(map(_is_ours, items)), namespace)

    await cluster.add_node("n2")
    await cluster.apply(gpu_slice("n2", 0), nic_slice("n2", 0))

    pod = await cluster.kube.wait_for("Pod", "p", runs_on("n2"), namespace)
    reason = next(entry for entry in pod["status"]["conditions"] if entry["type"] == "dovetail.dev/Allocated")
    assert reason["status"] == "True"
    assert [event["reason"] for event in events if _is_ours(event)] == [
        next(
            entry["reason"]
            for entry in waiting["status"]["conditions"]
            if entry["type"] == "dovetail.dev/Allocated"
        )
    ]


async def test_a_corrected_mapping_makes_a_waiting_pod_fit(cluster: Cluster) -> None:
    """The NICs get their NUMA node from the mapping; with the typing error gone the pod runs untouched."""
    await cluster.add_node("n1")
    typo = numa_mapping(nic_expression='device.attributes["nic.example.com"].numaNodee')
    await cluster.apply(gpu_slice("n1", 0), nic_slice("n1", 0), *CLASSES, typo)
    namespace = await cluster.namespace()
    await cluster.operator(**QUICK)
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    await cluster.kube.create(objects.pod("p", templates={"devices": "pair"}), namespace)
    await cluster.kube.wait_for("Pod", "p", waits(text=NUMA), namespace)

    await cluster.apply(numa_mapping())

    await cluster.kube.wait_for("Pod", "p", running, namespace)


async def test_nodes_that_the_pod_cannot_use_are_not_chosen(cluster: Cluster) -> None:
    """Of a cordoned node, a tainted one, one without enough CPU and a good one, the good one is chosen."""
    taint = {"key": "example.com/no", "effect": "NoSchedule"}
    await cluster.add_node("a-cordoned", unschedulable=True)
    await cluster.add_node("b-tainted", taints=[taint])
    await cluster.add_node("c-small", cpu="1")
    await cluster.add_node("d-good")
    for name in ("a-cordoned", "b-tainted", "c-small", "d-good"):
        await cluster.apply(gpu_slice(name, 0), nic_slice(name, 0))
    await cluster.apply(*CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.operator(**QUICK)
    await cluster.kube.create(objects.template("pair", pair()), namespace)

    await cluster.kube.create(objects.pod("p", templates={"devices": "pair"}, cpu="2"), namespace)

    await cluster.kube.wait_for("Pod", "p", runs_on("d-good"), namespace)


async def test_a_plain_claim_of_another_pod_is_the_schedulers_alone(cluster: Cluster) -> None:
    """kube-scheduler serves it, and no field of it was written by Dovetail."""
    await one_node(cluster, pairs=2)
    namespace = await cluster.namespace()
    await cluster.operator(**QUICK)
    await cluster.apply(
        objects.template("pair", pair()), objects.template("plain", plain_gpu()), namespace=namespace
    )

    await cluster.kube.create(objects.pod("ours", templates={"devices": "pair"}), namespace)
    await cluster.kube.wait_for("Pod", "ours", running, namespace)
    await cluster.kube.create(objects.pod("theirs", templates={"devices": "plain"}, gates=()), namespace)

    await cluster.kube.wait_for("Pod", "theirs", running, namespace)
    claims = await cluster.kube.list("ResourceClaim", namespace)
    (theirs,) = [claim for claim in claims if claim["metadata"]["ownerReferences"][0]["name"] == "theirs"]
    assert "dovetail" not in {entry["manager"] for entry in theirs["metadata"]["managedFields"]}
    assert not held_twice(claims)


async def test_a_plain_claim_beside_ours_takes_both_to_its_node(cluster: Cluster) -> None:
    """The plain claim's device is only on the second node: ours is allocated there too."""
    await one_node(cluster, "n1")
    await cluster.add_node("n2")
    extra = "extra.example.com"
    await cluster.apply(
        gpu_slice("n2", 0),
        nic_slice("n2", 0),
        objects.resource_slice("n2", extra, [objects.device("only")]),
        objects.device_class(extra),
    )
    namespace = await cluster.namespace()
    await cluster.operator(**QUICK)
    await cluster.apply(
        objects.template("pair", pair()),
        objects.template("plain", objects.claim_spec({"extra": extra})),
        namespace=namespace,
    )

    await cluster.kube.create(objects.pod("p", templates={"devices": "pair", "other": "plain"}), namespace)

    await cluster.kube.wait_for("Pod", "p", runs_on("n2"), namespace)


async def test_a_mapping_that_does_not_compile_harms_no_other(cluster: Cluster) -> None:
    """Its status says where; a pod that needs another mapping runs."""
    await one_node(cluster)
    namespace = await cluster.namespace()
    await cluster.operator(**QUICK)
    await cluster.kube.create(
        objects.mapping("broken", "example.com/broken", [{"driver": "*", "expression": "device.("}])
    )
    await cluster.kube.create(objects.template("pair", pair()), namespace)

    await cluster.kube.create(objects.pod("p", templates={"devices": "pair"}), namespace)

    await cluster.kube.wait_for("Pod", "p", running, namespace)
    broken = await cluster.kube.wait_for(
        "DerivedAttribute", "broken", lambda item: bool((item.get("status") or {}).get("conditions"))
    )
    (ready,) = [entry for entry in broken["status"]["conditions"] if entry["type"] == "Ready"]
    assert ready["status"] == "False"
    assert "rule 1" in ready["message"]


async def test_a_killed_operator_loses_nothing(cluster: Cluster) -> None:
    """Killed while 50 pods arrive, and started again: every pod runs, no device and no claim twice."""
    for number in range(4):
        await cluster.add_node(f"n{number}")
        places = [index % 2 for index in range(20)]
        await cluster.apply(gpu_slice(f"n{number}", *places), nic_slice(f"n{number}", *places))
    await cluster.apply(*CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    operator = await cluster.operator(**QUICK)
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    pods = [
        objects.pod(f"p{number}", templates={"a": "pair"} | ({"b": "pair"} if number % 5 == 0 else {}))
        for number in range(50)
    ]

    async with asyncio.TaskGroup() as group:
        group.create_task(cluster.create_all(pods, namespace))
        await operator.event("pod_allocated")
        await operator.kill()
    await operator.start()

    await cluster.kube.wait_all(
        "Pod", lambda items: len(items) == 50 and all(map(running, items)), namespace, within=90
    )
    claims = await cluster.kube.list("ResourceClaim", namespace)
    assert not held_twice(claims)
    assert len(claims) == 60


async def test_a_foreign_gate_stays_until_its_owner_removes_it(cluster: Cluster) -> None:
    """Nothing is allocated while another gate is there; when it goes, the pod runs."""
    await one_node(cluster)
    namespace = await cluster.namespace()
    await cluster.operator(**QUICK)
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    await cluster.kube.create(
        objects.pod("p", templates={"devices": "pair"}, gates=(objects.GATE, "example.com/other")), namespace
    )

    await cluster.kube.wait_for("Pod", "p", waits("OtherGates"), namespace)
    (claim,) = await cluster.kube.list("ResourceClaim", namespace)
    assert "allocation" not in (claim.get("status") or {})
    await cluster.kube.patch(
        "Pod",
        "p",
        {"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/other"}]}},
        namespace,
        how="strategic",
    )

    await cluster.kube.wait_for("Pod", "p", running, namespace)


async def test_an_unknown_attribute_is_named_and_the_pod_stays_gated(cluster: Cluster) -> None:
    """The condition names the attribute and the nearest one that exists."""
    await one_node(cluster)
    namespace = await cluster.namespace()
    await cluster.operator(**QUICK)
    await cluster.kube.create(objects.template("typo", pair("dovetail.dev/numaNod")), namespace)

    await cluster.kube.create(objects.pod("p", templates={"devices": "typo"}), namespace)

    pod = await cluster.kube.wait_for("Pod", "p", waits("NoMapping", "dovetail.dev/numaNod"), namespace)
    (entry,) = [item for item in pod["status"]["conditions"] if item["type"] == "dovetail.dev/Allocated"]
    assert NUMA in entry["message"]
    assert gated(pod)


def _is_ours(event: dict[str, object]) -> bool:
    return event.get("source") == {"component": "dovetail"}
