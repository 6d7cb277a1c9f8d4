"""The write that opens a gate concerns one pod and one gate, whatever happened since the pod was read."""

from collections.abc import AsyncIterator

import pytest

from dovetail.cluster.pen import Pen
from dovetail.embedded import EmbeddedCluster
from dovetail.errors import Conflict
from dovetail.services.gates import ungate
from tests.operator.worlds import GATE, is_gated, pod
from tests.support.servers import connected


@pytest.fixture
async def pen(bare: EmbeddedCluster) -> AsyncIterator[Pen]:
    """What writes to the API server."""
    async with connected() as wire:
        yield Pen(wire, permit=lambda: None)


async def test_a_namesake_keeps_its_gate(bare: EmbeddedCluster, pen: Pen) -> None:
    """The pod went, and another has its name by now: that one has no devices yet."""
    seen = bare.create(pod())
    bare.delete("Pod", "p", now=True)
    bare.create(pod())

    with pytest.raises(Conflict):
        await ungate(pen, seen)

    assert is_gated(bare.get("Pod", "p"))


async def test_a_gate_that_others_opened_meanwhile_stays_open(bare: EmbeddedCluster, pen: Pen) -> None:
    """Ours goes, theirs is not written again, and a third one stays shut."""
    seen = bare.create(pod(gates=(GATE, "example.com/gone", "example.com/kept")))
    gone = [{"$patch": "delete", "name": "example.com/gone"}]
    bare.patch("Pod", "p", {"spec": {"schedulingGates": gone}})

    assert await ungate(pen, seen)

    assert bare.get("Pod", "p")["spec"]["schedulingGates"] == [{"name": "example.com/kept"}]


async def test_a_pod_that_is_gone_has_no_gate_to_open(bare: EmbeddedCluster, pen: Pen) -> None:
    """Nobody took its name: that is no failure."""
    seen = bare.create(pod())
    bare.delete("Pod", "p", now=True)

    assert not await ungate(pen, seen)
