"""Every write asks for permission just before it is sent, also when it is sent again."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dovetail.api.kinds import CLAIM
from dovetail.cluster.pen import Pen
from dovetail.cluster.wire import Wire
from dovetail.embedded import EmbeddedCluster
from dovetail.errors import NotLeading
from tests.support.servers import connected

BODY = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": {}}
PLACE = (CLAIM, "default", "c")

WRITES: dict[str, Callable[[Pen], Awaitable[Any]]] = {
    "create": lambda pen: pen.create(CLAIM, "default", BODY),
    "replace": lambda pen: pen.replace(*PLACE, BODY),
    "merge": lambda pen: pen.merge(*PLACE, {}),
    "merge_strategically": lambda pen: pen.merge_strategically(*PLACE, {}),
    "apply": lambda pen: pen.apply(*PLACE, BODY),
    "delete": lambda pen: pen.delete(*PLACE, uid="u"),
}


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedCluster]:
    """An API server."""
    async with EmbeddedCluster() as cluster:
        monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig(tmp_path / "kubeconfig")))
        yield cluster


@pytest.fixture
async def wire(server: EmbeddedCluster) -> AsyncIterator[Wire]:
    """A connection to it."""
    async with connected() as made:
        yield made


def only(times: int) -> Callable[[], None]:
    """A permission that is over after so many requests."""
    left = [None] * times

    def permit() -> None:
        if not left:
            raise NotLeading("not now")
        left.pop()

    return permit


@pytest.mark.parametrize("write", WRITES)
async def test_nothing_is_sent_without_permission(server: EmbeddedCluster, wire: Wire, write: str) -> None:
    """Whatever the write."""
    with pytest.raises(NotLeading):
        await WRITES[write](Pen(wire, permit=only(0)))

    assert not server.writes()


@pytest.mark.parametrize("write", WRITES)
async def test_a_write_that_is_sent_again_asks_again(server: EmbeddedCluster, wire: Wire, write: str) -> None:
    """The API server asked for patience, and the permission was over meanwhile."""
    server.faults.fail("", "resourceclaims", status=429, retry_after_seconds=0)

    with pytest.raises(NotLeading):
        await WRITES[write](Pen(wire, permit=only(1)))

    assert len(server.writes()) == 1
