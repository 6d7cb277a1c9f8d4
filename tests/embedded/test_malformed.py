"""Requests that mean nothing are refused, never answered as a fault of the server."""

import aiohttp

from dovetail.embedded import EmbeddedCluster
from tests.embedded.malformed import OBJECTS, answered, at_random, every_mistake


async def test_every_mistake_is_refused(cluster: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """With 4xx, and nothing is changed."""
    for body in OBJECTS.values():
        cluster.create(body)
    before = cluster.store.version
    wrong = [
        (request.name, status)
        for request in every_mistake()
        if not 400 <= (status := await answered(session, cluster.url, request)) < 500
    ]
    assert wrong == []
    assert cluster.store.version == before


async def test_requests_at_random_are_no_fault_of_the_server(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """Whatever is asked; and what was stored can be listed afterwards."""
    wrong = []
    for seed in range(1500):
        if seed % 100 == 0:
            for body in OBJECTS.values():
                if cluster.find(body["kind"], "one") is None:
                    cluster.create(body)
        request = at_random(seed)
        if "watch" in request.path:
            continue
        status = await answered(session, cluster.url, request)
        if status >= 500:
            wrong.append((request.name, status))
    assert wrong == []
    for path in OBJECTS:
        async with session.get(path) as response:
            assert response.status == 200
