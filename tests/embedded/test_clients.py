"""The clients that Dovetail is built on work with the embedded API server as they are."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import pytest
import yaml
from kubernetes_asyncio import client, config, watch

from dovetail.api.kinds import ACCESS_REVIEW, EVENT, LEASE, WATCHED
from dovetail.embedded import EmbeddedCluster
from dovetail.embedded.crds import KINDS
from tests.embedded.objects import allocation, claim, config_map, consumer, node

CRDS = Path(__file__).parent.parent.parent / "crds"


async def test_kubernetes_asyncio_reads_writes_and_watches(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """The generated client creates, replaces a status, gets its conflict, lists and watches."""
    configuration = client.Configuration()
    path = cluster.kubeconfig(tmp_path / "kubeconfig")
    await config.load_kube_config(str(path), client_configuration=configuration)
    async with client.ApiClient(configuration) as api:
        claims = client.ResourceV1Api(api)
        new: Any = claim("one")
        await claims.create_namespaced_resource_claim("default", new)
        body: Any = cluster.get("ResourceClaim", "one")
        body["status"] = {"allocation": allocation(), "reservedFor": [consumer()]}
        await claims.replace_namespaced_resource_claim_status("one", "default", body)
        with pytest.raises(client.ApiException) as refused:
            await claims.replace_namespaced_resource_claim_status("one", "default", body)
        assert refused.value.status == 409
        listed = await claims.list_resource_claim_for_all_namespaces()
        assert listed.items[0].status.reserved_for[0].uid == "uid-1"
        core = client.CoreV1Api(api)
        cluster.create(config_map("watched"))
        stream = watch.Watch().stream(core.list_namespaced_config_map, "default", timeout_seconds=1)
        assert [event["object"].metadata.name async for event in stream] == ["watched"]


async def test_kopf_sees_objects_come_change_and_go(cluster: EmbeddedCluster) -> None:
    """An unchanged Kopf operator finds the kinds, lists, watches, patches and resumes after a gap."""
    seen: asyncio.Queue[tuple[str | None, str]] = asyncio.Queue()
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def _login(**_: object) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=cluster.url)

    @kopf.on.event("configmaps", registry=registry)
    async def _seen(event: kopf.RawEvent, name: str, patch: kopf.Patch, **_: object) -> None:
        if event["type"] != "DELETED":
            patch.metadata.annotations["example.com/seen"] = "yes"
        seen.put_nowait((event["type"], name))

    settings = kopf.OperatorSettings()
    settings.watching.reconnect_backoff = 0.01
    cluster.create(config_map("old"))
    stop = asyncio.Event()
    operator = asyncio.create_task(
        kopf.operator(registry=registry, settings=settings, standalone=True, clusterwide=True, stop_flag=stop)
    )
    assert await seen.get() == (None, "old")
    await cluster.wait_for("ConfigMap", lambda body: body["metadata"].get("annotations"))
    assert await seen.get() == ("MODIFIED", "old")
    cluster.compact()
    cluster.watches.close()
    cluster.create(config_map("after-the-gap"))
    while (await seen.get())[1] != "after-the-gap":
        pass
    cluster.delete("ConfigMap", "old")
    while await seen.get() != ("DELETED", "old"):
        pass
    stop.set()
    await operator


async def test_discovery_is_the_same_in_both_forms(session: aiohttp.ClientSession) -> None:
    """The aggregated document lists the same resources as the groups one by one."""
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    async with session.get("/apis", headers=accept) as response:
        whole = await response.json()
    for group in whole["items"]:
        for version in group["versions"]:
            path = f"/apis/{group['metadata']['name']}/{version['version']}"
            async with session.get(path) as response:
                single = {entry["name"] for entry in (await response.json())["resources"]}
            assert {entry["resource"] for entry in version["resources"]} == {
                name for name in single if "/" not in name
            }


async def test_a_definition_brings_its_kind_and_takes_it_away(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """A kind is served while its definition is there."""
    path = "/apis/dovetail.dev/v1alpha1/derivedattributes"
    mapping = {"metadata": {"name": "a"}, "spec": {"attribute": "example.com/a"}}
    async with session.post(path, json=mapping) as response:
        assert response.status == 201
    cluster.delete("CustomResourceDefinition", "derivedattributes.dovetail.dev")
    async with session.get(path) as response:
        assert response.status == 404


async def test_the_known_definitions_are_the_shipped_ones(cluster: EmbeddedCluster) -> None:
    """Group, names, scope and subresources are those of the files in `crds/`."""
    shipped = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(CRDS.glob("*.yaml"))]
    assert sorted(body["spec"]["names"]["kind"] for body in shipped) == sorted(KINDS)
    for body in shipped:
        known = cluster.get("CustomResourceDefinition", body["metadata"]["name"])["spec"]
        assert known["scope"] == body["spec"]["scope"]
        assert known["names"]["plural"] == body["spec"]["names"]["plural"]
        assert known["versions"][0]["name"] == body["spec"]["versions"][0]["name"]
        assert "status" in body["spec"]["versions"][0]["subresources"]


async def test_every_kind_that_dovetail_knows_is_served(cluster: EmbeddedCluster) -> None:
    """Group, version, plural and scope of each kind are the embedded server's."""
    for kind in (*WATCHED, EVENT, LEASE, ACCESS_REVIEW):
        served = cluster.kinds.find(kind.group, kind.version, kind.plural)
        assert served is not None, kind
        assert (served.name, served.namespaced) == (kind.name, kind.namespaced)


async def test_loaded_objects_keep_what_they_are(cluster: EmbeddedCluster) -> None:
    """`load` keeps UID and status, so that a picture of another cluster stays whole."""
    cluster.load(node("node-a") | {"metadata": {"name": "node-a", "uid": "u-1"}, "status": {"phase": "x"}})
    found = cluster.get("Node", "node-a")
    assert (found["metadata"]["uid"], found["status"]) == ("u-1", {"phase": "x"})
