"""Trouble on demand: each kind of it happens to the requests it names, as often as it says."""

import asyncio

import aiohttp
import pytest

from dovetail.embedded import EmbeddedCluster
from tests.embedded.objects import allocation, claim, config_map, consumer
from tests.embedded.steps import MERGE

MAPS = "/api/v1/namespaces/default/configmaps"
CLAIM = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/one"


@pytest.mark.parametrize("status", [403, 409, 422, 429, 500])
async def test_failures_are_used_up(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession, status: int
) -> None:
    """The next two requests fail with the given status and write nothing; the third works."""
    cluster.faults.fail("POST", "configmaps", status=status, times=2, retry_after_seconds=3)
    statuses = []
    for _ in range(3):
        async with session.post(MAPS, json=config_map("a")) as response:
            statuses.append((response.status, response.headers.get("Retry-After")))
    assert statuses == [(status, "3"), (status, "3"), (201, None)]


async def test_failures_hit_only_what_they_name(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """A fault of one verb and resource leaves other requests alone, the same path by another verb too."""
    cluster.faults.fail("update", "configmaps", status=409)
    async with session.post(MAPS, json=config_map("a")) as response:
        assert response.status == 201
    async with session.put(f"{MAPS}/a", json=config_map("a")) as response:
        assert response.status == 409


async def test_a_dropped_answer_leaves_the_write(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """The client sees a broken connection, and the object is there."""
    cluster.faults.drop_answer("POST", "configmaps")
    with pytest.raises(aiohttp.ClientError):
        await session.post(MAPS, json=config_map("a"))
    assert cluster.find("ConfigMap", "a") is not None


async def test_held_requests_wait(cluster: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """A held request has arrived, has not been served, and is served once it is released."""
    held = cluster.faults.hold("POST", "configmaps")
    asked = asyncio.create_task(_posted(session, "a"))
    await held.arrived.wait()
    assert cluster.find("ConfigMap", "a") is None
    held.release()
    assert await asked == 201


async def _posted(session: aiohttp.ClientSession, name: str) -> int:
    async with session.post(MAPS, json=config_map(name)) as response:
        return response.status


async def test_somebody_writes_first(cluster: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """A write just before a PUT makes it a conflict."""
    body = cluster.create(config_map("a"))
    cluster.faults.before(
        "PUT", "configmaps", lambda: cluster.patch("ConfigMap", "a", {"data": {"first": "yes"}})
    )
    async with session.put(f"{MAPS}/a", json=body) as response:
        assert response.status == 409


async def test_delays_are_waited_for(cluster: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """A delayed request outlasts a shorter time-out of its client."""
    cluster.faults.delay("GET", "configmaps", seconds=30)
    with pytest.raises(TimeoutError):
        await session.get(MAPS, timeout=aiohttp.ClientTimeout(total=0.05))


async def test_a_missing_right_is_told_twice(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """A denied right answers 403, and the access review for it says no; other rights stay."""
    cluster.faults.deny("create", "configmaps")
    async with session.post(MAPS, json=config_map("a")) as response:
        assert response.status == 403
    assert [await _allowed(session, verb) for verb in ("create", "update")] == [False, True]


async def _allowed(session: aiohttp.ClientSession, verb: str) -> bool:
    review = {"spec": {"resourceAttributes": {"verb": verb, "resource": "configmaps"}}}
    url = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    async with session.post(url, json=review) as response:
        return bool((await response.json())["status"]["allowed"])


async def test_allocating_needs_the_right_to_bind(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """Without `resourceclaims/binding` a change of allocation or reservation is refused as a field (A5)."""
    cluster.create(claim("one"))
    cluster.faults.deny("patch", "resourceclaims/binding", "resource.k8s.io")
    status = {"status": {"allocation": allocation(), "reservedFor": [consumer()]}}
    async with session.patch(f"{CLAIM}/status", json=status, headers={"Content-Type": MERGE}) as response:
        answer = await response.json()
    assert (response.status, answer["details"]["causes"][0]["field"]) == (422, "status.allocation")
    assert 'requires resource="resourceclaims/binding", verb="patch" permission' in answer["message"]


async def test_the_journal_names_writes_and_writers(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """The journal tells who wrote what and how it ended; reads and reviews are no writes."""
    headers = {"User-Agent": "tester"}
    await session.post(MAPS, json=config_map("a"), headers=headers)
    await session.post(MAPS, json=config_map("a"), headers=headers)
    await session.get(MAPS)
    await _allowed(session, "get")
    told = [(write.verb, write.resource, write.user_agent, write.status) for write in cluster.writes()]
    assert told == [("create", "configmaps", "tester", 201), ("create", "configmaps", "tester", 409)]
    assert cluster.writes(method="PUT") == []


async def test_waiting_ends_with_what_there_was(cluster: EmbeddedCluster) -> None:
    """A wait in vain raises, and its message shows the objects."""
    cluster.create(config_map("there"))
    with pytest.raises(TimeoutError, match="name: there"):
        await cluster.wait_for("ConfigMap", lambda body: body.get("data"), timeout_seconds=0.05)


async def test_a_dry_run_is_refused(cluster: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """What cannot be tried without being done is not done."""
    async with session.post(MAPS, json=config_map("a"), params={"dryRun": "All"}) as response:
        assert response.status == 400
    assert cluster.find("ConfigMap", "a") is None
