"""Claims with opaque parameters: the API server keeps their bytes, and takes other bytes for a change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from dovetail.cluster.json_text import SPELLINGS
from e2e.harness import Cluster, objects, running
from e2e.tests.claims import devices, reserved_for
from e2e.tests.test_ownership import ATTRIBUTE, DRIVER, prepare

PARAMETERS = {"zone": "<a> & é", "gain": 1.5, "also": [1, 2, {"deep": None}]}


@pytest.mark.parametrize("spell", SPELLINGS)
async def test_parameters_stay_as_their_author_wrote_them(
    cluster: Cluster, spell: Callable[[object], str]
) -> None:
    """A claim is served and given back whatever blanks are between its parameters."""
    namespace = await prepare(cluster, devices=1)
    config = {"opaque": {"driver": DRIVER, "parameters": PARAMETERS}}
    spec = objects.claim_spec({"gpu": DRIVER}, match=ATTRIBUTE, config=[config])
    manifest = objects.claim("mine", spec)
    path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims"
    text = spell(manifest)
    async with cluster.kube._call("POST", path, data=text) as answer:
        assert answer.status == 201
    await cluster.operator(lease_seconds=3, release="always", release_grace_seconds=0)

    await cluster.kube.create(objects.pod("p", claims={"gpu": "mine"}), namespace)
    await cluster.kube.wait_for("Pod", "p", running, namespace)

    claim = await cluster.kube.get("ResourceClaim", "mine", namespace)
    assert claim["status"]["allocation"]["devices"]["config"][0]["opaque"]["parameters"] == PARAMETERS


async def test_a_pod_joins_what_kube_scheduler_allocated_with_parameters(cluster: Cluster) -> None:
    """The allocation that the second pod is added to stays the same, byte by byte."""
    namespace = await prepare(cluster, devices=2)
    parameters = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "ClaimParameters"}
    ours = {"opaque": {"driver": "dovetail.dev", "parameters": parameters}}
    theirs = {"opaque": {"driver": DRIVER, "parameters": PARAMETERS}}
    spec = objects.claim_spec({"gpu": DRIVER}, config=[ours, theirs])
    await cluster.kube.create(objects.claim("shared", spec), namespace)
    await cluster.kube.create(objects.pod("open", claims={"gpu": "shared"}, gates=()), namespace)
    await cluster.kube.wait_for("Pod", "open", running, namespace)
    before = await cluster.kube.get("ResourceClaim", "shared", namespace)
    await cluster.operator(lease_seconds=3)

    await cluster.kube.create(objects.pod("gated", claims={"gpu": "shared"}), namespace)
    await cluster.kube.wait_for("Pod", "gated", running, namespace)

    after = await cluster.kube.get("ResourceClaim", "shared", namespace)
    assert devices(after) == devices(before)
    pods = await asyncio.gather(*(cluster.kube.get("Pod", name, namespace) for name in ("open", "gated")))
    assert sorted(reserved_for(after)) == sorted(pod["metadata"]["uid"] for pod in pods)
