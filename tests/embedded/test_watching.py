"""Watches of the embedded API server, as clients meet them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from dovetail.embedded import EmbeddedCluster
from tests.embedded.objects import config_map

MAPS = "/api/v1/configmaps"


class Stream:
    """An open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> tuple[str, Any]:
        """Type and name (or, of an error, the code) of the next event; an empty type at the end."""
        line = await self._response.content.readline()
        if not line:
            return "", None
        event = json.loads(line)
        found = event["object"]
        return event["type"], found.get("code") or found["metadata"].get("name")


@asynccontextmanager
async def watching(session: aiohttp.ClientSession, **query: str) -> AsyncIterator[Stream]:
    """A watch of all ConfigMaps."""
    async with session.get(MAPS, params={"watch": "true"} | query) as response:
        yield Stream(response)


async def version_of(session: aiohttp.ClientSession) -> str:
    """The version of a LIST."""
    async with session.get(MAPS) as response:
        return str((await response.json())["metadata"]["resourceVersion"])


async def test_a_watch_without_a_version_begins_with_what_there_is(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """What exists is told as ADDED, then what happens."""
    cluster.create(config_map("old"))
    async with watching(session) as stream:
        assert await stream.next() == ("ADDED", "old")
        cluster.create(config_map("new"))
        assert await stream.next() == ("ADDED", "new")


async def test_a_watch_goes_on_after_the_version_of_a_list(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """Nothing between LIST and watch is lost, and nothing is told twice."""
    cluster.create(config_map("listed"))
    version = await version_of(session)
    cluster.create(config_map("between"))
    async with watching(session, resourceVersion=version) as stream:
        cluster.delete("ConfigMap", "listed")
        assert [await stream.next(), await stream.next()] == [("ADDED", "between"), ("DELETED", "listed")]


async def test_a_compacted_version_is_gone(cluster: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """After `compact` a watch from an older version is answered with an ERROR of code 410, and ends."""
    version = await version_of(session)
    cluster.compact()
    async with watching(session, resourceVersion=version) as stream:
        assert await stream.next() == ("ERROR", 410)
        assert await stream.next() == ("", None)


async def test_an_open_watch_survives_compaction(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """Whoever already watches hears of what comes next."""
    async with watching(session) as stream:
        cluster.create(config_map("before"))
        await stream.next()
        cluster.compact()
        cluster.create(config_map("after"))
        assert await stream.next() == ("ADDED", "after")


async def test_bookmarks_tell_how_far_a_quiet_watch_has_come() -> None:
    """A watch that asks for bookmarks gets one when nothing else happens."""
    async with (
        EmbeddedCluster(bookmark_seconds=0.05) as cluster,
        aiohttp.ClientSession(cluster.url) as client,
        watching(client, allowWatchBookmarks="true") as stream,
    ):
        assert (await stream.next())[0] == "BOOKMARK"


async def test_initial_events_end_with_a_bookmark(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """A watch instead of a LIST says by a bookmark that the initial objects are complete."""
    cluster.create(config_map("old"))
    async with watching(session, sendInitialEvents="true", allowWatchBookmarks="true") as stream:
        assert [(await stream.next())[0], (await stream.next())[0]] == ["ADDED", "BOOKMARK"]


async def test_watches_end_at_their_timeout(session: aiohttp.ClientSession) -> None:
    """`timeoutSeconds` ends a watch without an error."""
    async with watching(session, timeoutSeconds="0.05") as stream:
        assert await stream.next() == ("", None)


async def test_closing_ends_every_watch(cluster: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """`watches.close` ends what is open; what happened before is still told."""
    async with watching(session) as stream:
        cluster.create(config_map("last"))
        cluster.watches.close()
        assert [await stream.next(), await stream.next()] == [("ADDED", "last"), ("", None)]


async def test_a_silenced_watch_tells_later(cluster: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """What happens in the silence is told after it, in order."""
    async with watching(session) as stream:
        cluster.create(config_map("before"))
        await stream.next()
        with cluster.watches.silenced():
            cluster.create(config_map("meanwhile"))
        cluster.create(config_map("after"))
        assert [await stream.next(), await stream.next()] == [("ADDED", "meanwhile"), ("ADDED", "after")]


async def test_a_lossy_silence_tells_never(cluster: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """With `lose`, what happened in the silence is missing from the watch, not from a LIST."""
    async with watching(session) as stream:
        cluster.create(config_map("before"))
        await stream.next()
        with cluster.watches.silenced(lose=True):
            cluster.create(config_map("lost"))
        cluster.create(config_map("after"))
        assert await stream.next() == ("ADDED", "after")
    async with session.get(MAPS) as response:
        assert len((await response.json())["items"]) == 3


async def test_pages_and_a_watch_make_the_whole_picture(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """A paged LIST and a watch from its version miss nothing that is written between the pages."""
    for name in ("a", "b", "c"):
        cluster.create(config_map(name))
    async with session.get(MAPS, params={"limit": "2"}) as response:
        first = await response.json()
    cluster.create(config_map("aa"))
    query = {"limit": "2", "continue": first["metadata"]["continue"]}
    async with session.get(MAPS, params=query) as response:
        second = await response.json()
    seen = {item["metadata"]["name"] for page in (first, second) for item in page["items"]}
    async with watching(session, resourceVersion=second["metadata"]["resourceVersion"]) as stream:
        seen.add((await stream.next())[1])
    assert seen == {"a", "aa", "b", "c"}
    assert "continue" not in second["metadata"]


async def test_an_old_page_is_gone(cluster: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """After `compact` the next page of an older LIST is answered with 410."""
    for name in ("a", "b"):
        cluster.create(config_map(name))
    async with session.get(MAPS, params={"limit": "1"}) as response:
        token = (await response.json())["metadata"]["continue"]
    cluster.compact()
    async with session.get(MAPS, params={"limit": "1", "continue": token}) as response:
        assert response.status == 410


async def test_selectors_choose_as_labels_and_fields_say(
    cluster: EmbeddedCluster, session: aiohttp.ClientSession
) -> None:
    """Equality, sets, existence and fields choose the objects of a LIST."""
    for name, side in (("a", "left"), ("b", "right"), ("c", "")):
        cluster.create(config_map(name, **({"side": side} if side else {})))

    async def chosen(**query: str) -> list[str]:
        async with session.get(MAPS, params=query) as response:
            return [item["metadata"]["name"] for item in (await response.json())["items"]]

    assert await chosen(labelSelector="side=left") == ["a"]
    assert await chosen(labelSelector="side!=left") == ["b", "c"]
    assert await chosen(labelSelector="side in (left,right)") == ["a", "b"]
    assert await chosen(labelSelector="side notin (left),side") == ["b"]
    assert await chosen(labelSelector="!side") == ["c"]
    assert await chosen(fieldSelector="metadata.name!=a") == ["b", "c"]
