"""Beside a kube-scheduler that takes allocations back (S40-S45), unreserves (S52) and restarts."""

from __future__ import annotations

import asyncio
from collections import Counter

from e2e.harness import (
    OPERATOR_USER,
    ApiError,
    Cluster,
    NotSeen,
    Object,
    allocated,
    condition,
    objects,
    running,
)
from e2e.tests.claims import (
    CLASSES,
    gated,
    gpu_slice,
    held_twice,
    nic_slice,
    numa_mapping,
    pair,
    reserved_for,
    runs_on,
)

PROMPT = {
    "lease_seconds": 3,
    "claim_generation": "never",
    "unschedulable_seconds": 600,
    "take_back_pause_seconds": 1,
    "avoid_seconds": 60,
}
"""With this patience nothing is taken back but by kube-scheduler."""


async def nodes(cluster: Cluster, *names: str, cpu: str = "4", pairs: int = 1) -> str:
    """Nodes with pairs, the mapping, and a namespace with a template and a claim `shared`."""
    for name in names:
        await cluster.add_node(name, cpu=cpu)
        places = [index % 2 for index in range(pairs)]
        await cluster.apply(gpu_slice(name, *places), nic_slice(name, *places))
    await cluster.apply(*CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.apply(
        objects.template("pair", pair()), objects.claim("shared", pair()), namespace=namespace
    )
    return namespace


def filler(node: str) -> Object:
    """A plain pod that takes most of a node's CPU, past the scheduler."""
    return objects.pod(f"filler-{node}", gates=(), cpu="3500m", nodeName=node)


def node_of(claim: Object) -> str:
    """The node that a claim's allocation is for."""
    (term,) = claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    return str(term["matchFields"][0]["values"][0])


async def test_an_allocation_without_reservation_is_taken_back_and_given_anew(cluster: Cluster) -> None:
    """S42 with an empty `reservedFor`: its node has no room, and the pod runs on the other one."""
    namespace = await nodes(cluster, "n1", "n2")
    operator = await cluster.operator(**PROMPT)
    await cluster.plane.scheduler.kill()
    await cluster.kube.create(objects.pod("p", claims={"devices": "shared"}, cpu="1"), namespace)
    await cluster.kube.wait_for("Pod", "p", lambda pod: not gated(pod), namespace)
    claim = await cluster.kube.get("ResourceClaim", "shared", namespace)
    status = {name: value for name, value in claim["status"].items() if name != "reservedFor"}
    await cluster.kube.replace(claim | {"status": status}, subresource="status")
    first = node_of(claim)
    await cluster.kube.create(filler(first), namespace)

    await cluster.plane.scheduler.start()

    await operator.event("scheduler_took_back", within=60)
    other = "n2" if first == "n1" else "n1"
    await cluster.kube.wait_for("Pod", "p", runs_on(other), namespace, within=60)


async def test_an_allocation_that_others_use_is_not_taken_back(cluster: Cluster) -> None:
    """S42 with another pod's reservation: the claim stays where it runs, and the late pod gets in later."""
    namespace = await nodes(cluster, "n1", "n2")
    await cluster.operator(**PROMPT | {"unschedulable_seconds": 2})
    await cluster.kube.create(objects.pod("early", claims={"devices": "shared"}), namespace)
    await cluster.kube.wait_for("Pod", "early", running, namespace)
    before = await cluster.kube.get("ResourceClaim", "shared", namespace)
    await cluster.kube.create(filler(node_of(before)), namespace)

    await cluster.kube.create(objects.pod("late", claims={"devices": "shared"}, cpu="1"), namespace)
    await cluster.kube.stays(
        "ResourceClaim",
        "shared",
        lambda claim: claim["status"]["allocation"] == before["status"]["allocation"],
        namespace,
        seconds=6,
    )
    await cluster.kube.delete("Pod", f"filler-{node_of(before)}", namespace)

    pod = await cluster.kube.wait_for("Pod", "late", runs_on(node_of(before)), namespace, within=60)
    claim = await cluster.kube.get("ResourceClaim", "shared", namespace)
    assert pod["metadata"]["uid"] in reserved_for(claim)
    assert len(reserved_for(claim)) == 2


async def test_a_reservation_that_kube_scheduler_takes_away_is_not_fought_over(cluster: Cluster) -> None:
    """While binds are refused it reserves and unreserves (S52); Dovetail writes nothing, and the pod runs."""
    namespace = await nodes(cluster, "n1")
    await refuse_binds(cluster, namespace)
    await cluster.operator(**PROMPT)
    await cluster.kube.create(objects.pod("p", claims={"devices": "shared"}), namespace)
    await cluster.kube.wait_for("Pod", "p", lambda pod: not gated(pod), namespace)
    await cluster.kube.wait_for(
        "ResourceClaim", "shared", lambda item: allocated(item) and not reserved_for(item), namespace
    )
    mark = cluster.plane.audit.mark()
    claim = await cluster.kube.get("ResourceClaim", "shared", namespace)

    scheduler = "system:kube-scheduler"
    await cluster.plane.audit.seen(
        scheduler, lambda writes: sum(map(is_status_of_claim, writes)) >= 4, since=mark, within=60
    )
    await allow_binds(cluster)
    await cluster.kube.wait_for("Pod", "p", running, namespace, within=60)

    ours = cluster.plane.audit.writes(OPERATOR_USER, since=mark)
    assert [str(write) for write in ours if write.resource == "resourceclaims"] == []
    after = await cluster.kube.get("ResourceClaim", "shared", namespace)
    assert after["status"]["allocation"] == claim["status"]["allocation"]


def is_status_of_claim(write: object) -> bool:
    """Whether a write is to the status of a claim."""
    return (getattr(write, "resource", ""), getattr(write, "subresource", "")) == ("resourceclaims", "status")


async def refuse_binds(cluster: Cluster, namespace: str) -> None:
    """No pod of the namespace is bound until `allow_binds`."""
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-binds"},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods/binding"],
                    }
                ],
            },
            "validations": [{"expression": "false", "message": "no binds for now"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-binds"},
        "spec": {"policyName": "no-binds", "validationActions": ["Deny"]},
    }
    await cluster.apply(policy, binding)
    await cluster.kube.create(objects.pod("probe", gates=("example.com/never",)), namespace)
    bind = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "probe"},
        "target": {"kind": "Node", "name": "n1"},
    }
    async with asyncio.timeout(30):
        while True:
            try:
                # A policy is in force a moment after it was made; a dry run tells.
                await cluster.kube.request(
                    "POST",
                    f"/api/v1/namespaces/{namespace}/pods/probe/binding",
                    body=bind,
                    params={"dryRun": "All"},
                )
            except ApiError as refusal:
                if "no binds for now" in str(refusal):
                    break
            await asyncio.sleep(0.1)
    await cluster.kube.delete("Pod", "probe", namespace)


async def allow_binds(cluster: Cluster) -> None:
    """Take the policy away."""
    await cluster.kube.delete("ValidatingAdmissionPolicyBinding", "no-binds")
    await cluster.kube.delete("ValidatingAdmissionPolicy", "no-binds")


async def test_controllers_that_restart_under_load_cost_time_only(cluster: Cluster) -> None:
    """kube-scheduler and kube-controller-manager are killed while 30 pods arrive: each gets one claim."""
    namespace = await nodes(cluster, "n1", "n2", "n3", cpu="64", pairs=10)
    operator = await cluster.operator(**PROMPT)
    pods = [objects.pod(f"p{index}", templates={"devices": "pair"}) for index in range(30)]

    async with asyncio.TaskGroup() as group:
        group.create_task(cluster.create_all(pods, namespace))
        await operator.event("pod_allocated")
        await cluster.plane.controller_manager.restart()
        await cluster.plane.scheduler.restart()

    await cluster.kube.wait_all(
        "Pod", lambda items: len(items) == 30 and all(map(running, items)), namespace, within=120
    )
    claims = [claim for claim in await cluster.kube.list("ResourceClaim", namespace) if allocated(claim)]
    assert held_twice(claims) == []
    owners = Counter(claim["metadata"]["ownerReferences"][0]["uid"] for claim in claims)
    assert set(owners.values()) == {1}
    assert len(owners) == 30


async def test_an_allocation_that_somebody_clears_again_and_again_costs_few_writes(cluster: Cluster) -> None:
    """Cleared the moment it is written, for 20 seconds: at most four attempts of two writes (R-B11)."""
    namespace = await nodes(cluster, "n1", "n2", "n3")
    await cluster.plane.scheduler.kill()
    await cluster.operator(**PROMPT | {"avoid_seconds": 0})
    mark = cluster.plane.audit.mark()
    await cluster.kube.create(objects.pod("p", claims={"devices": "shared"}), namespace)

    cleared = await clear_for(cluster, "shared", namespace, seconds=20)

    writes = Counter(
        write.subresource
        for write in cluster.plane.audit.writes(OPERATOR_USER, since=mark)
        if write.resource == "resourceclaims"
    )
    assert cleared >= 2
    assert writes["status"] <= 4
    assert writes[""] <= 4


async def clear_for(cluster: Cluster, name: str, namespace: str, *, seconds: float) -> int:
    """Clear a claim's status whenever it is allocated; returns how often."""
    cleared = 0
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while (rest := end - loop.time()) > 0:
        try:
            await cluster.kube.wait_for("ResourceClaim", name, allocated, namespace, within=rest)
            claim = await cluster.kube.get("ResourceClaim", name, namespace)
            await cluster.kube.replace(claim | {"status": {}}, subresource="status")
            cleared += 1
        except (ApiError, NotSeen):
            continue
    return cleared


async def test_a_pod_that_no_node_can_take_keeps_trying_slowly(cluster: Cluster) -> None:
    """Its only node is full after the allocation: taken back, avoided, given again; few writes a minute."""
    namespace = await nodes(cluster, "n1")
    await cluster.plane.scheduler.kill()
    await cluster.operator(**PROMPT | {"unschedulable_seconds": 2, "avoid_seconds": 5})
    mark = cluster.plane.audit.mark()
    await cluster.kube.create(
        objects.pod("p", claims={"devices": "shared"}, cpu="1", tolerations=[{"operator": "Exists"}]),
        namespace,
    )
    await cluster.kube.wait_for("Pod", "p", lambda pod: not gated(pod), namespace)
    await cluster.kube.create(filler("n1"), namespace)
    await cluster.plane.scheduler.start()

    waiting = await cluster.kube.wait_for("Pod", "p", takes_back, namespace, within=60)
    assert "n1" in (condition(waiting, "dovetail.dev/Allocated") or {})["message"]
    await cluster.kube.delete("Pod", "filler-n1", namespace)
    await cluster.kube.wait_for("Pod", "p", running, namespace, within=90)

    writes = [
        w for w in cluster.plane.audit.writes(OPERATOR_USER, since=mark) if w.resource == "resourceclaims"
    ]
    assert len(writes) <= 8


def takes_back(pod: Object) -> bool:
    """The pod's condition says that its devices were taken back, or that nothing fits any more."""
    found = condition(pod, "dovetail.dev/Allocated") or {}
    return found.get("status") == "False"
