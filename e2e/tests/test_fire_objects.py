"""Objects that change under the operator: pods replaced, claims deleted, slices renewed, nodes gone."""

from __future__ import annotations

import asyncio
from typing import Any

from e2e.harness import OPERATOR_USER, Cluster, Object, allocated, objects, running
from e2e.tests.claims import (
    CLASSES,
    GPU,
    NIC,
    devices,
    gated,
    gpu_slice,
    held_twice,
    nic_slice,
    numa_mapping,
    pair,
    placed,
    plain_gpu,
    reserved_for,
    runs_on,
    waits,
)

QUICK: dict[str, Any] = {"lease_seconds": 3, "claim_generation": "never"}
PROMPT = QUICK | {"unschedulable_seconds": 2, "take_back_pause_seconds": 1, "avoid_seconds": 5}


async def pairs(cluster: Cluster, count: int = 1, *nodes: str) -> str:
    """So many pairs on each node, the mapping, and a namespace with a template."""
    for name in nodes or ("n1",):
        await cluster.add_node(name)
        places = [index % 2 for index in range(count)]
        await cluster.apply(gpu_slice(name, *places), nic_slice(name, *places))
    await cluster.apply(*CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    return namespace


def pod(name: str, **spec: Any) -> Object:
    """A gated pod that wants a pair."""
    return objects.pod(name, templates={"devices": "pair"}, **spec)


async def test_a_pod_replaced_under_its_name_again_and_again_leaves_nothing(cluster: Cluster) -> None:
    """Ten pods of one name, each deleted at another point of its way: the last runs, with the only claim."""
    namespace = await pairs(cluster, 2)
    # What is done for a pod and undone counts by its name: here none of the ten has to wait for that.
    await cluster.operator(**QUICK, attempts_per_minute=40)
    # KWOK, unlike a kubelet, deletes by name: bound pods that go would take their successors with them.
    await cluster.plane.scheduler.kill()
    stages = [lambda _: True, lambda item: bool(item["status"].get("resourceClaimStatuses")), gated_no_more]

    for index in range(10):
        await cluster.kube.create(pod("same"), namespace)
        await cluster.kube.wait_for("Pod", "same", stages[index % 3], namespace)
        await cluster.kube.delete("Pod", "same", namespace, grace=0)
        await cluster.kube.wait_gone("Pod", "same", namespace)
    await cluster.kube.create(pod("same"), namespace)
    await cluster.plane.scheduler.start()

    last = await cluster.kube.wait_for("Pod", "same", running, namespace, within=60)
    (claim,) = await cluster.kube.wait_all(
        "ResourceClaim", lambda items: len(items) == 1 and allocated(items[0]), namespace, within=60
    )
    assert claim["metadata"]["ownerReferences"][0]["uid"] == last["metadata"]["uid"]
    assert reserved_for(claim) == [last["metadata"]["uid"]]


def gated_no_more(item: Object) -> bool:
    """The gate is gone."""
    return not gated(item)


async def test_a_claim_that_is_being_deleted_serves_who_has_it_and_nobody_else(cluster: Cluster) -> None:
    """Its pod runs on, a later one waits; when both are gone the claim goes, and its devices are free."""
    namespace = await pairs(cluster)
    await cluster.operator(**QUICK)
    await cluster.kube.create(objects.claim("mine", pair()), namespace)
    await cluster.kube.create(objects.pod("early", claims={"devices": "mine"}), namespace)
    await cluster.kube.wait_for("Pod", "early", running, namespace)

    await cluster.kube.delete("ResourceClaim", "mine", namespace)
    await cluster.kube.create(objects.pod("late", claims={"devices": "mine"}), namespace)
    waiting = await cluster.kube.wait_for("Pod", "late", waits(), namespace)

    assert gated(waiting)
    assert running(await cluster.kube.get("Pod", "early", namespace))
    claim = await cluster.kube.get("ResourceClaim", "mine", namespace)
    assert len(reserved_for(claim)) == 1
    await cluster.kube.delete("Pod", "late", namespace)
    await cluster.kube.delete("Pod", "early", namespace)
    await cluster.kube.wait_gone("ResourceClaim", "mine", namespace)
    await cluster.kube.create(pod("next"), namespace)
    await cluster.kube.wait_for("Pod", "next", running, namespace)


async def test_a_claim_deleted_before_it_has_devices_is_missed_by_name(cluster: Cluster) -> None:
    """The waiting pod says so, and runs when a claim of that name is there again."""
    namespace = await pairs(cluster)
    await cluster.operator(**QUICK)
    await cluster.kube.create(
        objects.claim("mine", objects.claim_spec({"gpu": GPU}, match=["a.b/c"])), namespace
    )
    await cluster.kube.create(objects.pod("p", claims={"devices": "mine"}), namespace)
    await cluster.kube.wait_for("Pod", "p", waits(), namespace)

    await cluster.kube.delete("ResourceClaim", "mine", namespace)
    await cluster.kube.wait_for("Pod", "p", waits(text="mine"), namespace)
    await cluster.kube.create(objects.claim("mine", pair()), namespace)

    await cluster.kube.wait_for("Pod", "p", running, namespace)


async def test_a_namespace_that_is_being_deleted_sets_its_devices_free(cluster: Cluster) -> None:
    """Running and waiting pods go with it; a pod elsewhere gets the devices, and no write is wasted there."""
    namespace = await pairs(cluster)
    other = await cluster.namespace()
    await cluster.kube.create(objects.template("pair", pair()), other)
    await cluster.operator(**QUICK)
    await cluster.kube.create(pod("running"), namespace)
    await cluster.kube.wait_for("Pod", "running", running, namespace)
    await cluster.kube.create(pod("waiting"), namespace)
    await cluster.kube.wait_for("Pod", "waiting", waits(), namespace)
    await cluster.kube.create(pod("elsewhere"), other)
    await cluster.kube.wait_for("Pod", "elsewhere", waits(), other)
    mark = cluster.plane.audit.mark()

    await cluster.kube.delete("Namespace", namespace)

    await cluster.kube.wait_for("Pod", "elsewhere", running, other, within=60)
    await cluster.kube.wait_all("ResourceClaim", lambda items: not items, namespace, within=60)
    writes = [write for write in cluster.plane.audit.writes(OPERATOR_USER, since=mark) if write.code >= 400]
    assert len([write for write in writes if write.namespace == namespace]) <= 6


async def test_a_template_swapped_under_its_name_serves_later_pods(cluster: Cluster) -> None:
    """Who has a claim keeps to the old content; who comes after the swap gets the new one (V1)."""
    namespace = await pairs(cluster, 2)
    await cluster.operator(**QUICK)
    await cluster.kube.create(pod("old"), namespace)
    await cluster.kube.wait_for("Pod", "old", running, namespace)

    await cluster.kube.delete("ResourceClaimTemplate", "pair", namespace)
    await cluster.kube.create(pod("new"), namespace)
    await cluster.kube.wait_for("Pod", "new", waits(text="pair"), namespace, within=40)
    await cluster.kube.create(
        objects.template("pair", objects.claim_spec({"only": NIC}, match=OTHER)), namespace
    )
    await cluster.apply(objects.mapping("other", OTHER, [{"driver": NIC, "expression": "1"}]))

    await cluster.kube.wait_for("Pod", "new", running, namespace, within=60)
    claims = await cluster.kube.list("ResourceClaim", namespace)
    sizes = {claim["metadata"]["ownerReferences"][0]["name"]: len(devices(claim)) for claim in claims}
    assert sizes == {"old": 2, "new": 1}


OTHER = "dovetail.example/other"


def half(node: str, part: int, generation: int, *places: int) -> Object:
    """One of the two slices of a node's GPU pool."""
    found = objects.resource_slice(node, GPU, placed(places, f"gpu-{part}"), generation=generation)
    found["metadata"]["name"] += f"-{part}"
    found["spec"]["pool"]["resourceSliceCount"] = 2
    return found


async def test_slices_replaced_one_by_one_are_used_when_all_are_there(cluster: Cluster) -> None:
    """A pool half in its next generation gives nothing and takes nothing away; whole, it serves (R-A16)."""
    await cluster.add_node("n1")
    await cluster.apply(
        half("n1", 1, 1, 0), half("n1", 2, 1), nic_slice("n1", 0, 0), *CLASSES, numa_mapping()
    )
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    await cluster.operator(**QUICK)
    await cluster.kube.create(pod("first"), namespace)
    await cluster.kube.wait_for("Pod", "first", running, namespace)

    await cluster.apply(half("n1", 1, 2, 0))
    await cluster.kube.create(pod("second"), namespace)
    await cluster.kube.wait_for("Pod", "second", waits(), namespace)
    await cluster.kube.stays("Pod", "second", gated, namespace, seconds=2)
    await cluster.apply(half("n1", 2, 2, 0))

    await cluster.kube.wait_for("Pod", "second", running, namespace)
    assert held_twice(await cluster.kube.list("ResourceClaim", namespace)) == []
    assert running(await cluster.kube.get("Pod", "first", namespace))


async def test_a_driver_that_goes_and_comes_back_wakes_who_waits(cluster: Cluster) -> None:
    """Its slices are wiped: who runs keeps its devices, nobody gets any until they are back (T-20)."""
    namespace = await pairs(cluster, 2)
    await cluster.operator(**QUICK)
    await cluster.kube.create(pod("first"), namespace)
    await cluster.kube.wait_for("Pod", "first", running, namespace)
    (before,) = await cluster.kube.list("ResourceClaim", namespace)

    for driver in (GPU, NIC):
        await cluster.kube.delete("ResourceSlice", f"n1-{driver}")
    await cluster.kube.create(pod("second"), namespace)
    waiting = await cluster.kube.wait_for("Pod", "second", waits(), namespace)
    (claim,) = [item for item in await cluster.kube.list("ResourceClaim", namespace) if allocated(item)]
    assert claim["status"] == before["status"]
    assert gated(waiting)
    await cluster.apply(gpu_slice("n1", 0, 1), nic_slice("n1", 0, 1))

    await cluster.kube.wait_for("Pod", "second", running, namespace)
    assert held_twice(await cluster.kube.list("ResourceClaim", namespace)) == []


async def test_a_pod_whose_node_goes_before_it_is_bound_runs_elsewhere(cluster: Cluster) -> None:
    """Allocated on a node that is deleted: the devices are given up, and it runs on the other node."""
    namespace = await pairs(cluster, 1, "n1")
    await cluster.operator(**PROMPT)
    await cluster.plane.scheduler.kill()
    await cluster.kube.create(pod("p"), namespace)
    await cluster.kube.wait_for("Pod", "p", gated_no_more, namespace)

    await cluster.kube.delete("Node", "n1")
    for driver in (GPU, NIC):
        await cluster.kube.delete("ResourceSlice", f"n1-{driver}")
    await cluster.add_node("n2")
    await cluster.apply(gpu_slice("n2", 0), nic_slice("n2", 0))
    await cluster.plane.scheduler.start()

    await cluster.kube.wait_for("Pod", "p", runs_on("n2"), namespace, within=90)


async def test_pods_that_go_with_their_node_give_back_what_they_had(cluster: Cluster) -> None:
    """Node and pod are gone, and a node of that name comes back: a waiting pod gets the pair."""
    namespace = await pairs(cluster, 1, "n1")
    await cluster.operator(**QUICK)
    await cluster.kube.create(pod("first"), namespace)
    await cluster.kube.wait_for("Pod", "first", running, namespace)
    await cluster.kube.create(pod("second"), namespace)
    await cluster.kube.wait_for("Pod", "second", waits(), namespace)

    await cluster.kube.delete("Node", "n1")
    await cluster.kube.delete("Pod", "first", namespace, grace=0)
    for driver in (GPU, NIC):
        await cluster.kube.delete("ResourceSlice", f"n1-{driver}")
    await cluster.kube.wait_all("ResourceClaim", lambda items: len(items) == 1, namespace)
    assert gated(await cluster.kube.get("Pod", "second", namespace))
    await cluster.add_node("n1")
    await cluster.apply(gpu_slice("n1", 0), nic_slice("n1", 0))

    await cluster.kube.wait_for("Pod", "second", running, namespace)


async def test_claims_made_by_dovetail_go_with_their_pod_while_it_is_away(cluster: Cluster) -> None:
    """The pod is deleted while Dovetail, which made its claim, is down: nothing is left (R-B3)."""
    namespace = await pairs(cluster)
    controllers = cluster.plane.controller_manager
    await controllers.kill()
    operator = await cluster.operator(**QUICK | {"claim_generation": "always"})
    await cluster.kube.create(pod("p"), namespace)
    made = await cluster.kube.wait_for("Pod", "p", running, namespace)
    (claim,) = await cluster.kube.list("ResourceClaim", namespace)
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)
    await operator.kill()
    await controllers.restart()

    await cluster.kube.delete("Pod", "p", namespace)

    await cluster.kube.wait_all("ResourceClaim", lambda items: not items, namespace, within=60)


async def test_a_crash_looping_pod_keeps_its_devices(cluster: Cluster) -> None:
    """Bound and never ready, for whatever reason: its devices stay taken (R-B7)."""
    namespace = await pairs(cluster)
    await cluster.operator(**PROMPT)
    await cluster.kube.create(pod("crashes"), namespace)
    await cluster.kube.wait_for("Pod", "crashes", running, namespace)
    unready = [
        {"type": kind, "status": "False", "reason": "CrashLoopBackOff"} for kind in ("Ready", "PodScheduled")
    ]
    await cluster.kube.patch(
        "Pod",
        "crashes",
        {"status": {"conditions": unready}},
        namespace,
        how="strategic",
        subresource="status",
    )
    await cluster.kube.create(pod("waits"), namespace)

    await cluster.kube.wait_for("Pod", "waits", waits("NothingFits"), namespace)
    await cluster.kube.stays("Pod", "waits", gated, namespace, seconds=5)


async def test_a_plain_pod_and_ours_do_not_wait_for_each_other(cluster: Cluster) -> None:
    """A bound pod whose plain claim is still kube-scheduler's does not hold ours up, nor the reverse."""
    namespace = await pairs(cluster, 2)
    await cluster.kube.create(objects.template("plain", plain_gpu()), namespace)
    await cluster.operator(**QUICK)

    async with asyncio.TaskGroup() as group:
        group.create_task(cluster.create_all([pod("ours")], namespace))
        group.create_task(
            cluster.create_all([objects.pod("theirs", templates={"gpu": "plain"}, gates=())], namespace)
        )

    for name in ("ours", "theirs"):
        await cluster.kube.wait_for("Pod", name, running, namespace)
    assert held_twice(await cluster.kube.list("ResourceClaim", namespace)) == []
