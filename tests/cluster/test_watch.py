"""A watch tells what happened after a version, and every way in which it ends is an error of its own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from dovetail.api.kinds import POD
from dovetail.cluster import watch as watching
from dovetail.cluster.reader import Reader
from dovetail.cluster.watch import Event
from dovetail.cluster.wire import Wire
from dovetail.embedded import EmbeddedCluster
from dovetail.errors import Forbidden, Gone, Unavailable
from tests.support.servers import answering, connected, write_kubeconfig

CHARACTERS = "größer ☃ \u2028"


@pytest.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster() as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "kubeconfig")))
        yield server


@pytest.fixture
async def wire(cluster: EmbeddedCluster) -> AsyncIterator[Wire]:
    async with connected() as made:
        yield made


async def _until(wire: Wire, since: str, name: str) -> list[Event]:
    """Everything that is told until an object of this name is."""
    told: list[Event] = []
    async with aclosing(Reader(wire).watch(POD, since)) as batches:
        async for events in batches:
            told += events
            if any(event.body["metadata"].get("name") == name for event in events):
                return told
    raise AssertionError(f"the watch ended without {name}")


async def _first(wire: Wire, since: str = "1") -> Sequence[Event]:
    async with aclosing(Reader(wire).watch(POD, since)) as batches:
        return await anext(events async for events in batches if events)


def _pod(name: str, text: str = "") -> dict[str, Any]:
    container = {"name": "main", "image": "example", "args": [text]}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


async def test_it_tells_in_order_what_happened_after_the_version(
    cluster: EmbeddedCluster, wire: Wire
) -> None:
    """What was there before is not told; what came, changed and went is."""
    cluster.create(_pod("before"))
    since = (await Reader(wire).list_all(POD)).resource_version

    cluster.create(_pod("a"))
    cluster.patch("Pod", "a", {"metadata": {"labels": {"is": "changed"}}})
    cluster.delete("Pod", "a", now=True)
    cluster.create(_pod("last"))
    told = await _until(wire, since, "last")

    assert [(event.type, event.body["metadata"]["name"]) for event in told] == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        ("ADDED", "last"),
    ]


async def test_it_goes_on_from_the_version_of_any_event(cluster: EmbeddedCluster, wire: Wire) -> None:
    """A watch that begins where another one ended misses nothing, and repeats nothing."""
    since = (await Reader(wire).list_all(POD)).resource_version
    cluster.create(_pod("a"))
    first = await _until(wire, since, "a")

    cluster.create(_pod("b"))
    second = await _until(wire, first[-1].version, "b")

    assert [event.body["metadata"]["name"] for event in second] == ["b"]


async def test_objects_larger_than_any_buffer_arrive_whole(cluster: EmbeddedCluster, wire: Wire) -> None:
    """A megabyte of text, with characters that a cut could hit, is one event."""
    since = (await Reader(wire).list_all(POD)).resource_version
    large = CHARACTERS * 60_000
    cluster.create(_pod("large", large))

    told = await _until(wire, since, "large")

    assert told[-1].body["spec"]["containers"][0]["args"] == [large]


async def test_a_quiet_watch_brings_bookmarks(cluster: EmbeddedCluster, wire: Wire) -> None:
    """So that it can go on from a version that the server still remembers."""
    cluster.watches.bookmark_seconds = 0.05
    since = (await Reader(wire).list_all(POD)).resource_version

    (event,) = await _first(wire, since)

    assert event.type == "BOOKMARK"
    assert event.version.isdecimal()


async def test_a_history_that_is_gone_is_told_apart(cluster: EmbeddedCluster, wire: Wire) -> None:
    """Only a new list helps (410)."""
    since = (await Reader(wire).list_all(POD)).resource_version
    cluster.create(_pod("a"))
    cluster.compact()

    with pytest.raises(Gone):
        await _first(wire, since)


async def test_a_missing_right_is_told_apart(cluster: EmbeddedCluster, wire: Wire) -> None:
    """As for every other request (403)."""
    cluster.faults.deny("watch", "pods")

    with pytest.raises(Forbidden, match="pods"):
        await _first(wire)


async def test_a_connection_that_falls_silent_is_given_up(
    cluster: EmbeddedCluster, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a bookmark for longer than any server is quiet: nobody is at the other end."""
    monkeypatch.setattr(watching, "SILENCE_SECONDS", 0.2)
    with cluster.watches.silenced(), pytest.raises(Unavailable, match="no answer in time"):
        await _first(wire, (await Reader(wire).list_all(POD)).resource_version)


@pytest.mark.parametrize(
    "line",
    [b"<html>", b"[]", b"{}", b'"text"', b'{"type":"ADDED"}', b'{"type":"ADDED","object":{}}', b"\xff"],
)
async def test_an_answer_that_is_no_event_is_a_failure(
    line: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy's error page does not end the operator, and is no news either."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=line + b"\n")

    async with answering(answer) as server:
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "kubeconfig", server)))
        async with connected() as wire:
            with pytest.raises(Unavailable, match="no watch event"):
                await _first(wire)
