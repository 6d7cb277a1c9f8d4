"""The proxy passes everything on, and disturbs what it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from e2e.harness.cluster import Cluster
from e2e.harness.errors import ApiError
from e2e.harness.kube import Kube, Object
from e2e.harness.proxy import FaultProxy


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(cluster: Cluster) -> FaultProxy:
    """A proxy in front of the cluster's API server."""
    return await cluster.proxy()


@pytest_asyncio.fixture(loop_scope="session")
async def client(cluster: Cluster, proxy: FaultProxy) -> AsyncIterator[Kube]:
    """The admin, through the proxy."""
    async with Kube(proxy.url, cluster.kube.token) as through:
        yield through


def config_map(name: str) -> Object:
    """Something small to write."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


async def test_reads_and_writes_go_through(cluster: Cluster, client: Kube) -> None:
    """What is written through the proxy is in the cluster."""
    namespace = await cluster.namespace()

    await client.create(config_map("here"), namespace)

    assert (await cluster.kube.get("ConfigMap", "here", namespace))["metadata"]["name"] == "here"


@pytest.mark.parametrize("status", [403, 409, 422, 429, 500])
async def test_an_injected_error_never_reaches_the_server(
    cluster: Cluster, proxy: FaultProxy, client: Kube, status: int
) -> None:
    """The client gets the status as Kubernetes sends it, once, and the server knows nothing."""
    namespace = await cluster.namespace()
    fault = proxy.answer(status, method="POST", path="/configmaps", headers={"Retry-After": "1"})

    with pytest.raises(ApiError) as refusal:
        await client.create(config_map("twice"), namespace)

    assert refusal.value.status == status
    assert fault.hits == 1
    assert await cluster.kube.find("ConfigMap", "twice", namespace) is None
    await client.create(config_map("twice"), namespace)


async def test_a_lost_answer_is_a_write_all_the_same(
    cluster: Cluster, proxy: FaultProxy, client: Kube
) -> None:
    """The server has done what the client never hears of."""
    namespace = await cluster.namespace()
    fault = proxy.lose_answers(method="POST", path="/configmaps")
    waiting = asyncio.create_task(client.create(config_map("lost"), namespace))

    await proxy.struck(fault)
    await cluster.kube.wait_for("ConfigMap", "lost", lambda _: True, namespace)

    assert not waiting.done()
    waiting.cancel()


async def test_a_delayed_answer_comes_late(cluster: Cluster, proxy: FaultProxy, client: Kube) -> None:
    """A delay holds one request and no other."""
    proxy.delay(0.5, path="/nodes")
    loop = asyncio.get_running_loop()

    start = loop.time()
    await client.list("Node")
    first, start = loop.time() - start, loop.time()
    await client.list("Node")

    assert first > 0.5 > loop.time() - start


async def test_a_silent_watch_stays_open_and_says_nothing(
    cluster: Cluster, proxy: FaultProxy, client: Kube
) -> None:
    """While the proxy is silent no event arrives; afterwards all of them do."""
    namespace = await cluster.namespace()
    since = (await client.listing("ConfigMap", namespace)).resource_version
    watch = client.watch("ConfigMap", namespace, since=since)
    first = asyncio.ensure_future(anext(watch))
    await proxy.passed(lambda seen: seen.watch)

    proxy.silence()
    await cluster.kube.create(config_map("quiet"), namespace)
    await asyncio.wait({first}, timeout=0.5)
    assert not first.done()
    proxy.talk()

    assert (await first)[1]["metadata"]["name"] == "quiet"


async def test_a_closed_watch_is_a_broken_connection(
    cluster: Cluster, proxy: FaultProxy, client: Kube
) -> None:
    """The client of a watch that the proxy closes sees the connection break."""
    since = (await client.listing("Node")).resource_version
    first = asyncio.ensure_future(anext(client.watch("Node", since=since)))
    await proxy.passed(lambda seen: seen.watch)

    proxy.close_watches()

    with pytest.raises((aiohttp.ClientError, StopAsyncIteration)):
        await first
