"""A write without an answer may have taken place: nobody else is given its devices before that is known."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest

from dovetail.api.kinds import CLAIM, CLASS, NODE, POD, SLICE
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.core.decisions import DoesNotFit, Place
from dovetail.core.features import Features
from dovetail.core.planner import PlanSettings
from dovetail.core.world import World
from dovetail.embedded import EmbeddedCluster
from dovetail.errors import Unavailable
from dovetail.services.allocation import AllocationWriter
from dovetail.services.mind import Limits, Mind
from dovetail.services.picture import Picture
from tests.operator.worlds import aligned, claim, device_class, gpus, node, pod
from tests.support.servers import connected

NOW = "2026-01-01T00:00:00Z"
FIRST = ("default", "first")
SECOND = ("default", "second")


@dataclass
class Scene:
    """Two gated pods that want the only GPU, and what decides and writes; no watch tells of anything."""

    cluster: EmbeddedCluster
    picture: Picture
    mind: Mind
    writer: AllocationWriter

    def see(self) -> None:
        """What a list would bring."""
        for kind in (NODE, CLASS, SLICE, CLAIM, POD):
            for body in self.cluster.objects(kind.name):
                self.picture.see(kind, body)

    async def write(self) -> tuple[tuple[str, str], ...]:
        """Decide about the first pod and write that; the claims of which nobody knows."""
        verdict = await self.mind.decide(FIRST, ())
        assert isinstance(verdict.decision, Place)
        return (await self.writer.write(self.cluster.get("Pod", "first"), verdict, now=NOW)).unknown

    async def is_second_served(self) -> bool:
        """Whether the second pod is given the GPU; it is refused otherwise."""
        decision = (await self.mind.decide(SECOND, ())).decision
        assert isinstance(decision, Place | DoesNotFit)
        return isinstance(decision, Place)


@pytest.fixture
async def scene(bare: EmbeddedCluster) -> AsyncIterator[Scene]:
    """The scene before anything is decided."""
    bare.load(node(), device_class("gpu", "gpu.nvidia.com"), gpus(0))
    for _, name in (FIRST, SECOND):
        bare.create(claim(name, aligned("gpu")))
        bare.create(pod(name, claim=name))
    picture = Picture()
    mind = Mind(World(Features()), plan=PlanSettings(), limits=Limits(1000, 5.0), now=lambda: NOW)
    picture.follow(mind.post)
    async with connected() as wire:
        pen = Pen(wire, permit=lambda: None)
        made = Scene(
            bare, picture, mind, AllocationWriter(pen=pen, reader=Reader(wire), picture=picture, mind=mind)
        )
        made.see()
        yield made
    mind.close()


def _never_written(cluster: EmbeddedCluster) -> None:
    """The server fails before it writes."""
    cluster.faults.fail("PUT", "resourceclaims/status", status=500)


def _conflict(cluster: EmbeddedCluster) -> None:
    """The write is refused as out of date, and the claim cannot be read."""
    cluster.faults.fail("PUT", "resourceclaims/status", status=409)
    cluster.faults.fail("get", "resourceclaims", status=500, times=100)


@pytest.mark.parametrize("trouble", [_never_written, _conflict])
async def test_devices_of_a_write_without_an_answer_are_given_to_nobody(
    scene: Scene, trouble: Callable[[EmbeddedCluster], None]
) -> None:
    """Until the claim has been read: it turns out to be without devices, and they are free."""
    trouble(scene.cluster)
    unknown = await scene.write()
    served_meanwhile = await scene.is_second_served()
    scene.cluster.faults.clear()

    await scene.writer.read_back(unknown)

    assert (unknown, served_meanwhile, await scene.is_second_served()) == ((FIRST,), False, True)


async def test_devices_of_a_write_whose_answer_was_lost_are_given_to_nobody(scene: Scene) -> None:
    """Neither while the claim cannot be read, nor afterwards: it has them."""
    scene.cluster.faults.drop_answer("PUT", "resourceclaims/status", times=5)
    scene.cluster.faults.fail("get", "resourceclaims", status=500, times=100)
    unknown = await scene.write()
    served_meanwhile = await scene.is_second_served()
    with pytest.raises(Unavailable):
        await scene.writer.read_back(unknown)
    served_meanwhile = served_meanwhile or await scene.is_second_served()
    scene.cluster.faults.clear()

    await scene.writer.read_back(unknown)

    assert (unknown, served_meanwhile, await scene.is_second_served()) == ((FIRST,), False, False)
    assert "allocation" in scene.cluster.get("ResourceClaim", "first")["status"]
