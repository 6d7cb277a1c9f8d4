"""A token that has expired is read anew: from the program, the file or the text that the kubeconfig names."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from dovetail.api.kinds import POD
from dovetail.errors import Forbidden
from tests.support.servers import answering, connected, write_kubeconfig

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Doorkeeper:
    """Lets in whoever has the token of the day, and counts the others."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.refused = 0
        self.taken: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """200 or 401."""
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            self.refused += 1
            return web.json_response({"message": "Unauthorized"}, status=401)
        self.taken.append(request.method)
        return web.json_response({"kind": "Pod", "metadata": {"name": "p"}})


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the client looks."""
    path = tmp_path / "kubeconfig"
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_a_request_is_sent_again_with_the_new_token(kubeconfig: Path, method: str) -> None:
    """A write too: what was refused at the door has changed nothing."""
    keeper = Doorkeeper("monday")
    async with answering(keeper.answer) as server:
        write_kubeconfig(kubeconfig, server, "monday")
        async with connected() as wire:
            await wire.send(method, POD.path("default", "p"), body={})
            keeper.token = "tuesday"
            write_kubeconfig(kubeconfig, server, "tuesday")

            await wire.send(method, POD.path("default", "p"), body={})

    assert (keeper.taken, keeper.refused) == ([method, method], 1)


async def test_many_requests_read_the_token_once(kubeconfig: Path) -> None:
    """All those that were under way when it expired."""
    keeper = Doorkeeper("tuesday")
    async with answering(keeper.answer) as server:
        write_kubeconfig(kubeconfig, server, "monday")
        async with connected() as wire:
            write_kubeconfig(kubeconfig, server, "tuesday")
            await asyncio.gather(*(wire.send("GET", POD.path()) for _ in range(20)))

    assert len(keeper.taken) == 20


async def test_a_token_that_stays_refused_is_told(kubeconfig: Path) -> None:
    """Once per request that is made: nothing is asked in a loop."""
    keeper = Doorkeeper("nobody has it")
    async with answering(keeper.answer) as server:
        write_kubeconfig(kubeconfig, server)
        async with connected() as wire:
            for _ in range(3):
                with pytest.raises(Forbidden, match="Unauthorized"):
                    await wire.send("GET", POD.path())

    assert keeper.refused == 4


async def test_a_watch_goes_on_with_the_new_token(kubeconfig: Path) -> None:
    """Whoever takes it up again is let in."""
    keeper = Doorkeeper("tuesday")
    async with answering(keeper.answer) as server:
        write_kubeconfig(kubeconfig, server, "monday")
        async with connected() as wire:
            write_kubeconfig(kubeconfig, server, "tuesday")
            with pytest.raises(Forbidden):
                await anext(wire.stream(POD.path(), query={}, silence_seconds=5))
            pieces = [piece async for piece in wire.stream(POD.path(), query={}, silence_seconds=5)]

    assert b"".join(pieces).startswith(b"{")
