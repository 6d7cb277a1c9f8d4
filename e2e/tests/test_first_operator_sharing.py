"""Claims with several consumers, and pods that got their node before their devices."""

from __future__ import annotations

import asyncio
import copy
import itertools
from functools import partial

import pytest

from dovetail.services.claims import joining
from e2e.harness import OPERATOR_USER, objects
from e2e.harness.cluster import Cluster
from e2e.harness.errors import ApiError
from e2e.harness.kube import Object, running
from e2e.tests.claims import (
    CLASSES,
    gated,
    gpu_slice,
    nic_slice,
    numa_mapping,
    pair,
    reserved_for,
)

QUICK = {"lease_seconds": 3}


async def two_nodes(cluster: Cluster) -> str:
    """Two nodes with a pair each, the mapping, and a namespace with the claim `shared`."""
    for name in ("n1", "n2"):
        await cluster.add_node(name)
        await cluster.apply(gpu_slice(name, 0), nic_slice(name, 0))
    await cluster.apply(*CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.claim("shared", pair()), namespace)
    return namespace


def consumer(name: str, **wishes: object) -> Object:
    """A pod that uses the shared claim."""
    return objects.pod(name, claims={"devices": "shared"}, **wishes)  # type: ignore[arg-type]


async def test_three_pods_that_arrive_together_share_a_claim(cluster: Cluster) -> None:
    """All run on the node of the claim, and each is a consumer."""
    namespace = await two_nodes(cluster)
    await cluster.operator(**QUICK)

    await cluster.create_all([consumer(name) for name in ("a", "b", "c")], namespace)

    pods = [await cluster.kube.wait_for("Pod", name, running, namespace) for name in ("a", "b", "c")]
    claim = await cluster.kube.get("ResourceClaim", "shared", namespace)
    assert {pod["spec"]["nodeName"] for pod in pods} == {pods[0]["spec"]["nodeName"]}
    assert sorted(reserved_for(claim)) == sorted(pod["metadata"]["uid"] for pod in pods)


async def test_pods_join_a_claim_that_others_write_to_without_end(cluster: Cluster) -> None:
    """As kube-controller-manager does where a finished pod shares it: each pod costs the claim one write."""
    namespace = await two_nodes(cluster)
    await cluster.operator(**QUICK)
    await cluster.kube.create(consumer("a"), namespace)
    await cluster.kube.wait_for("Pod", "a", running, namespace)
    mark = cluster.plane.audit.mark()

    async def write_without_end() -> None:
        for number in itertools.count():
            await cluster.kube.patch(
                "ResourceClaim", "shared", {"metadata": {"labels": {"turn": str(number)}}}, namespace
            )

    writers = [asyncio.create_task(write_without_end()) for _ in range(3)]
    try:
        for name in ("b", "c", "d", "e"):
            await cluster.kube.create(consumer(name), namespace)
            await cluster.kube.wait_for("Pod", name, running, namespace)
    finally:
        for writer in writers:
            writer.cancel()

    ours = [
        write for write in cluster.plane.audit.writes(OPERATOR_USER, since=mark) if write.name == "shared"
    ]
    assert [write.code for write in ours] == [200] * 4
    claim = await cluster.kube.get("ResourceClaim", "shared", namespace)
    assert len(reserved_for(claim)) == 5


async def test_the_api_server_applies_the_patch_that_joins_a_claim(cluster: Cluster) -> None:
    """To a claim without consumers and to one with some; not where that has changed, nor to other devices."""
    namespace = await two_nodes(cluster)
    await cluster.kube.create(
        objects.claim("mine", objects.claim_spec({"gpu": "gpu.example.com"})), namespace
    )
    pods = [await cluster.kube.create(consumer(name, gates=("example.com/x",)), namespace) for name in "ab"]
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}

    async def write(patch: object, how: str) -> Object:
        return await cluster.kube.patch(
            "ResourceClaim", "mine", patch, namespace, how=how, subresource="status"
        )

    free = await write({"status": {"allocation": {"devices": {"results": [result]}}}}, "merge")
    first = await write(list(joining(free, pods[0])), "json")
    moved = copy.deepcopy(first)
    moved["status"]["allocation"]["devices"]["results"][0]["device"] = "gpu-1"

    for stale in (free, moved):
        with pytest.raises(ApiError, match="422"):
            await write(list(joining(stale, pods[1])), "json")
    second = await write(list(joining(first, pods[1])), "json")
    assert reserved_for(second) == [pod["metadata"]["uid"] for pod in pods]


async def test_the_node_suits_all_consumers_known_by_then(cluster: Cluster) -> None:
    """One of two pods can only run on the second node: the claim is allocated there for both."""
    namespace = await two_nodes(cluster)
    pods = [consumer("a"), consumer("b", nodeSelector={"kubernetes.io/hostname": "n2"})]
    await cluster.create_all(pods, namespace)

    await cluster.operator(**QUICK)

    for name in ("a", "b"):
        pod = await cluster.kube.wait_for("Pod", name, running, namespace)
        assert pod["spec"]["nodeName"] == "n2"


async def test_a_claim_is_free_when_its_last_consumer_has_left(cluster: Cluster) -> None:
    """Pods come one after another; the first leaves and the claim stays, the last leaves and it is free."""
    namespace = await two_nodes(cluster)
    await cluster.operator(**QUICK)
    for name in ("a", "b", "c"):
        await cluster.kube.create(consumer(name), namespace)
        await cluster.kube.wait_for("Pod", name, running, namespace)

    await cluster.kube.delete("Pod", "a", namespace)
    kept = await cluster.kube.wait_for(
        "ResourceClaim", "shared", lambda item: len(reserved_for(item)) == 2, namespace
    )
    for name in ("b", "c"):
        await cluster.kube.delete("Pod", name, namespace)

    assert "allocation" in kept["status"]
    await cluster.kube.wait_for(
        "ResourceClaim", "shared", lambda item: "allocation" not in (item.get("status") or {}), namespace
    )


async def test_a_pod_with_a_node_gets_its_devices_there(cluster: Cluster) -> None:
    """`nodeName` is set at creation: the claim is allocated on that node, and the pod runs."""
    namespace = await two_nodes(cluster)
    await cluster.operator(**QUICK)

    await cluster.kube.create(consumer("p", gates=(), nodeName="n2"), namespace)

    claim = await cluster.kube.wait_for("ResourceClaim", "shared", partial(_is_reserved), namespace)
    (term,) = claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == ["n2"]
    pod = await cluster.kube.wait_for("Pod", "p", running, namespace)
    assert not gated(pod)


def _is_reserved(claim: Object) -> bool:
    return bool(reserved_for(claim))
