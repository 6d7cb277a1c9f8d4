"""Pods of a PodGroup: kube-scheduler's group cycle and Dovetail's allocations (T37-11 to T37-13).

A group cycle takes a reservation away that it finds, even when it succeeds, and does not write it again;
where it finds none, it writes one while binding.
"""

from __future__ import annotations

from collections import Counter

import pytest

from e2e.chaos.ledger import MOST_WRITES_A_MINUTE
from e2e.harness import OPERATOR_USER, Cluster, ClusterFactory, Object, Options, objects, running
from e2e.tests.claims import (
    CLASSES,
    devices,
    gated,
    gpu_slice,
    held_twice,
    nic_slice,
    numa_mapping,
    pair,
    reserved_for,
    waits,
)

GROUP = "scheduling.k8s.io/v1beta1/PodGroup"
GATES = {
    "GenericWorkload": True,
    "DRAWorkloadResourceClaims": True,
    "TopologyAwareWorkloadScheduling": True,
}
WITH_GROUPS = Options(gates=GATES, runtime_config={"scheduling.k8s.io/v1beta1": "true"})
ALONE = WITH_GROUPS.without("resourceclaim-controller")
"""Nobody but kube-scheduler and Dovetail reserves a claim here."""

NAMES = ("p0", "p1", "p2")


def group(policy: Object, **spec: object) -> Object:
    """A PodGroup named `g`."""
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": policy} | spec,
    }


def member(name: str, **wishes: object) -> Object:
    """A gated pod of the group."""
    return objects.pod(name, schedulingGroup={"podGroupName": "g"}, **wishes)  # type: ignore[arg-type]


async def stage(cluster: Cluster, *nodes: str) -> str:
    """Nodes with three pairs each, and a namespace with a template for one."""
    for node in nodes:
        await cluster.add_node(node)
        await cluster.apply(gpu_slice(node, 0, 0, 0), nic_slice(node, 0, 0, 0))
    await cluster.apply(*CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.apply(objects.template("pair", pair()), namespace=namespace)
    return namespace


async def all_run(cluster: Cluster, namespace: str) -> tuple[Object, ...]:
    """The claims, once all members run and every claim is reserved for its pod."""
    pods = await cluster.kube.wait_all("Pod", lambda pods: all(map(running, pods)), namespace, within=60)
    uids = {pod["metadata"]["uid"] for pod in pods}
    return await cluster.kube.wait_all(
        "ResourceClaim",
        lambda claims: uids == {uid for claim in claims for uid in reserved_for(claim)},
        namespace,
    )


@pytest.mark.parametrize("policy", [{"basic": {}}, {"gang": {"minCount": len(NAMES)}}], ids=["basic", "gang"])
async def test_pods_of_a_group_run_with_their_devices(cluster_with: ClusterFactory, policy: Object) -> None:
    """Two writes to each claim, and kube-scheduler's own reservation: none is taken away or restored."""
    cluster = await cluster_with(ALONE)
    namespace = await stage(cluster, "n1", "n2")
    operator = await cluster.operator(claim_generation="always", unschedulable_seconds=5)
    mark = cluster.plane.audit.mark()
    await cluster.kube.create(group(policy), namespace)

    for name in NAMES:
        await cluster.kube.create(member(name, templates={"devices": "pair"}), namespace)

    claims = await all_run(cluster, namespace)
    assert len(claims) == len(NAMES)
    assert not held_twice(claims)
    names = {claim["metadata"]["name"] for claim in claims}
    writes = [
        write
        for write in cluster.plane.audit.writes(OPERATOR_USER, since=mark)
        if write.name in names and write.verb == "update"
    ]
    assert len(writes) == 2 * len(names)
    assert not [entry for entry in operator.events if entry.get("event") == "reservation_restored"]


async def test_a_gang_that_lost_all_its_devices_is_placed_anew(cluster_with: ClusterFactory) -> None:
    """Their node is cordoned before kube-scheduler looks, which may take all back (T37-13)."""
    cluster = await cluster_with(ALONE)
    namespace = await stage(cluster, "n1")
    await cluster.operator(claim_generation="always", unschedulable_seconds=3, take_back_pause_seconds=1)
    mark = cluster.plane.audit.mark()
    await cluster.kube.create(group({"gang": {"minCount": len(NAMES)}}), namespace)
    cluster.plane.scheduler.program.pause()
    for name in NAMES:
        await cluster.kube.create(member(name, templates={"devices": "pair"}), namespace)
    await cluster.kube.wait_all(
        "Pod", lambda pods: len(pods) == len(NAMES) and not any(map(gated, pods)), namespace
    )

    await cluster.kube.patch("Node", "n1", {"spec": {"unschedulable": True}})
    await cluster.add_node("n2")
    await cluster.apply(gpu_slice("n2", 0, 0, 0), nic_slice("n2", 0, 0, 0))
    cluster.plane.scheduler.program.resume()

    claims = await all_run(cluster, namespace)
    assert {pool for claim in claims for _, pool, _ in devices(claim)} == {"n2"}
    assert not held_twice(claims)
    writes = Counter(
        write.name
        for write in cluster.plane.audit.writes(OPERATOR_USER, since=mark)
        if write.resource == "resourceclaims"
    )
    assert max(writes.values()) <= MOST_WRITES_A_MINUTE


async def test_a_claim_of_a_group_is_refused_with_a_reason(cluster_with: ClusterFactory) -> None:
    """kube-controller-manager makes it for the whole group; the pod stays gated and is told."""
    cluster = await cluster_with(WITH_GROUPS)
    namespace = await stage(cluster, "n1")
    await cluster.operator()
    entry = {"name": "devices", "resourceClaimTemplateName": "pair"}
    await cluster.kube.create(group({"basic": {}}, resourceClaims=[entry]), namespace)

    await cluster.kube.create(member("p0", templates={"devices": "pair"}), namespace)

    waiting = await cluster.kube.wait_for("Pod", "p0", waits("PodGroupUnsupported", "PodGroup"), namespace)
    assert gated(waiting)
