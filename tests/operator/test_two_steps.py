"""Taking back, step by step, on objects that were read a while ago: what moved keeps its devices."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.embedded import EmbeddedCluster
from dovetail.services.picture import Picture
from dovetail.services.takeback import TakeBack, TakenBack
from tests.operator.worlds import GATE, Body, aligned, bind, claim, pod, times_taken, written_statuses
from tests.support.servers import connected

KEYS = {name: ("default", name) for name in ("a", "b")}


def entry(of: Body) -> Body:
    """A pod as consumer of a claim."""
    return {"resource": "pods", "name": of["metadata"]["name"], "uid": of["metadata"]["uid"]}


def allocate(cluster: EmbeddedCluster, name: str, *consumers: Body) -> Body:
    """The claim with a GPU of its own, reserved for these pods."""
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": f"gpu-{name}"}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [entry(each) for each in consumers],
    }
    return cluster.replace(cluster.get("ResourceClaim", name) | {"status": status}, status=True)


class Scene:
    """A pod with two allocated claims, and what takes them back."""

    def __init__(self, cluster: EmbeddedCluster, takeback: TakeBack, *, gated: bool) -> None:
        self.cluster = cluster
        self._takeback = takeback
        for name in KEYS:
            cluster.create(claim(name, aligned("gpu")))
        gates = (GATE,) if gated else ()
        self.pod = cluster.create(pod(claim="a", gates=gates))
        self.held = [allocate(cluster, name, self.pod) for name in KEYS]

    async def take_back(self) -> TakenBack:
        """Take back from the pod, and the claims, as they were read at the beginning."""
        return await self._takeback.take_back(self.pod, self.held)

    @property
    def taken(self) -> list[int]:
        """How often the devices of each claim were taken away."""
        return [times_taken(self.cluster, name) for name in KEYS]


@pytest.fixture
async def takeback(bare: EmbeddedCluster) -> AsyncIterator[TakeBack]:
    """Steps without a pause; the picture learns of our own writes alone."""
    async with connected() as wire:
        pen = Pen(wire, permit=lambda: None)
        yield TakeBack(pen=pen, reader=Reader(wire), picture=Picture(), pause_seconds=0.0)


def statuses(cluster: EmbeddedCluster, name: str) -> list[Any]:
    """Of every status that was sent for a claim: whether it has devices, and how many consumers."""
    return [
        ("allocation" in status, len(status.get("reservedFor", ())))
        for status in written_statuses(cluster, name)
    ]


async def test_the_reservation_goes_first(bare: EmbeddedCluster, takeback: TakeBack) -> None:
    """Of an ungated pod: what every other test takes for granted."""
    scene = Scene(bare, takeback, gated=False)

    taken = await scene.take_back()

    assert taken == TakenBack(tuple(KEYS.values()))
    assert statuses(bare, "a") == [(True, 0), (False, 0)]


async def test_a_pod_that_only_seems_gated_keeps_its_devices(
    bare: EmbeddedCluster, takeback: TakeBack
) -> None:
    """It was let go and bound, and the watch is late: nothing is written."""
    scene = Scene(bare, takeback, gated=True)
    bare.patch("Pod", "p", {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}})
    bind(bare)

    taken = await scene.take_back()

    assert taken.moved
    assert not written_statuses(bare, "a") + written_statuses(bare, "b")


@pytest.mark.parametrize("gated", [True, False])
async def test_a_claim_that_moved_ends_it_for_all(
    bare: EmbeddedCluster, takeback: TakeBack, gated: bool
) -> None:
    """Somebody wrote the second claim meanwhile: in two steps nobody loses devices; it never does."""
    scene = Scene(bare, takeback, gated=gated)
    patched = {"metadata": {"labels": {"somebody": "was-here"}}}
    bare.patch("ResourceClaim", "b", patched)

    taken = await scene.take_back()

    assert taken.moved
    assert (scene.taken[0], "allocation" in bare.get("ResourceClaim", "b")["status"]) == (int(gated), True)


@pytest.mark.parametrize("gated", [True, False])
async def test_what_others_use_as_well_keeps_its_devices(
    bare: EmbeddedCluster, takeback: TakeBack, gated: bool
) -> None:
    """Only the pod is taken out of the claim."""
    scene = Scene(bare, takeback, gated=gated)
    other = bare.create(pod("other", claim="b"))
    scene.held[1] = bare.replace(
        scene.held[1]
        | {"status": scene.held[1]["status"] | {"reservedFor": [entry(scene.pod), entry(other)]}},
        status=True,
    )

    await scene.take_back()

    assert scene.taken == [1, 0]
    assert bare.get("ResourceClaim", "b")["status"]["reservedFor"] == [entry(other)]
