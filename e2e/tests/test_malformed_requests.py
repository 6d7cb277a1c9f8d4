"""The embedded API server refuses what the real one refuses."""

from __future__ import annotations

import aiohttp

from dovetail.embedded import EmbeddedCluster
from e2e.harness.cluster import Cluster
from tests.embedded.malformed import OBJECTS, answered, every_mistake


async def embedded_answers() -> dict[str, int]:
    """What the embedded server answers, by the request's name."""
    async with EmbeddedCluster() as embedded, aiohttp.ClientSession() as session:
        for body in OBJECTS.values():
            embedded.create(body)
        return {each.name: await answered(session, embedded.url, each) for each in every_mistake()}


async def test_what_means_nothing_is_refused_alike(cluster: Cluster) -> None:
    """Each kind of mistake is answered with 4xx, also where the real one takes it for a fault of its own."""
    headers = {"Authorization": f"Bearer {cluster.plane.kube.token}"}
    connector = aiohttp.TCPConnector(ssl=False)
    for body in OBJECTS.values():
        await cluster.kube.create(body)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
        real = {each.name: await answered(session, cluster.plane.server, each) for each in every_mistake()}
    for body in OBJECTS.values():
        await cluster.kube.delete(body["kind"], "one", "default")

    embedded = await embedded_answers()

    differing = {
        name: (status, embedded[name])
        for name, status in real.items()
        if embedded[name] // 100 != min(status // 100, 4)
    }
    assert differing == {}
