"""Pods and claims are followed through whatever servers, and those between, do to watches."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from dovetail.api.kinds import CLAIM, POD, Kind
from dovetail.cluster.reader import Reader
from dovetail.cluster.wire import Wire
from dovetail.embedded import EmbeddedCluster
from dovetail.errors import Throttled, Unavailable
from dovetail.services import streams
from dovetail.services.echoes import Echoes
from dovetail.services.healing import Healing
from dovetail.services.metrics import Metrics
from dovetail.services.picture import Picture
from dovetail.services.served import Served
from dovetail.services.streams import Streams
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import pairs, pod, running_pod
from tests.support.servers import answering, connected, write_kubeconfig

LIST = {"kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": []}


class Cutter:
    """Lists nothing; takes up every watch and cuts it before it has said anything."""

    def __init__(self, enough: int) -> None:
        self.cut = 0
        self.enough = asyncio.Event()
        self._enough = enough

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """A list, or a watch that breaks off."""
        if "watch" not in request.query:
            return web.json_response(LIST)
        response = web.StreamResponse()
        await response.prepare(request)
        self.cut += 1
        if self.cut >= self._enough:
            self.enough.set()
        assert request.transport is not None
        request.transport.abort()
        return response


def healing(reader: Reader, echoes: Echoes) -> Healing:
    """Complete lists into a picture that nobody looks at."""
    return Healing(
        reader=reader,
        picture=Picture(),
        echoes=echoes,
        metrics=Metrics(),
        served=Served(frozenset(), complain=lambda *_: None),
        resync_seconds=600,
    )


def made(wire: Wire) -> Streams:
    """Streams that tell nobody."""
    reader = Reader(wire)
    return Streams(reader=reader, healing=healing(reader, Echoes()), observe=lambda *_: None)


async def test_watches_that_are_cut_while_nothing_happens_are_no_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A balancer that ends quiet connections does not end the operator, however often it does so."""
    monkeypatch.setattr(streams, "PATIENCE", 2)
    monkeypatch.setattr(streams, "FIRST_PAUSE_SECONDS", 0.001)
    cutter = Cutter(enough=12)
    async with answering(cutter.answer) as server:
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "kubeconfig", server)))
        async with connected() as wire:
            following = asyncio.create_task(made(wire).follow(POD))
            try:
                async with asyncio.timeout(10):
                    await cutter.enough.wait()
                assert not following.done()
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)


async def test_a_server_that_is_gone_for_good_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many failures in a row the error is told to whoever runs the process."""
    monkeypatch.setattr(streams, "PATIENCE", 3)
    monkeypatch.setattr(streams, "FIRST_PAUSE_SECONDS", 0.001)
    asked = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        if "watch" not in request.query:
            return web.json_response(LIST)
        asked += 1
        return web.json_response({"message": "nobody is here"}, status=503)

    async with answering(answer) as server:
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "kubeconfig", server)))
        async with connected() as wire:
            with pytest.raises(Unavailable, match="nobody is here"):
                await asyncio.wait_for(made(wire).follow(POD), 10)

    assert asked == 4


def test_the_pause_grows_and_is_what_a_busy_server_asks_for() -> None:
    """Within reason: what happens meanwhile is not seen."""
    broken, busy = Unavailable("watching", "cut"), Throttled("watching", "busy", 8.0)

    assert streams._pause(1, broken) < streams._pause(2, broken) < streams._pause(50, broken) == 5.0
    assert streams._pause(1, busy) == 8.0
    assert streams._pause(1, Throttled("watching", "busy", 3600.0)) == streams.LONGEST_WISH_SECONDS


@pytest.mark.parametrize("kind", [POD, CLAIM])
async def test_a_list_says_all_that_was_written_before_it(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for the watch to show a write that a complete list has shown."""
    async with EmbeddedCluster() as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "kubeconfig")))
        echoes = Echoes()
        async with connected() as wire:
            version = int(await healing(Reader(wire), echoes).list_anew(kind))

    assert echoes.has_reached(kind, version)
    assert not echoes.has_reached(kind, version + 1)


@pytest.mark.parametrize("status", [401, 403, 404, 410, 429, 500, 503])
async def test_a_refused_watch_is_taken_up_again(
    cluster: EmbeddedCluster, operator: OperatorStarter, status: int
) -> None:
    """Whatever the reason: a pod that arrives afterwards is served."""
    cluster.load(*pairs())
    await operator(resync_seconds=600)
    for plural in ("pods", "resourceclaims"):
        cluster.faults.fail("watch", plural, status=status, times=3)
    cluster.watches.close()

    cluster.create(pod())

    await cluster.wait_for("Pod", running_pod("p"), timeout_seconds=30)
