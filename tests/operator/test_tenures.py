"""What becomes of a hold: a pod that got its devices owes nothing, and every other one does."""

import pytest

from dovetail.api.kinds import CLAIM, POD
from dovetail.core.earmarks import Earmark
from dovetail.core.holdings import Hold
from dovetail.core.terms import Terms
from dovetail.core.values import DeviceKey
from dovetail.services.picture import Picture
from dovetail.services.tenures import OPEN_SECONDS, Tenures
from tests.operator.worlds import Body, claim, pod

HOLD = Hold(DeviceKey("gpu.nvidia.com", "n1", "gpu-0"))


class World:
    """A picture with a pod that has one claim, and what follows its holds."""

    def __init__(self) -> None:
        self.picture = Picture()
        self.terms = Terms(100)
        self.tenures = Tenures(self.terms, self.picture)
        self._version = 0
        self.pod = self.see(pod("large", claim="large"), "pod-uid")
        self.claim = self.see(claim("large"), "claim-uid")

    def see(self, body: Body, uid: str, **more: object) -> Body:
        """The object as it is now."""
        self._version += 1
        metadata = body["metadata"] | {"uid": uid, "resourceVersion": str(self._version)}
        seen = body | {"metadata": metadata} | more
        self.picture.see(POD if body["kind"] == "Pod" else CLAIM, seen)
        return seen

    def is_spent(self, now: float) -> bool:
        """Whether something is owed for the node."""
        return "n1" in self.terms.spent_nodes(0, now) and self.terms.owed("default", now) > 0


def earmark(node: str = "n1", claim: str = "claim-uid") -> Earmark:
    """What is held for the pod."""
    rank = (0, "", "default", "large")
    return Earmark(("default", "large"), "pod-uid", rank, node, (HOLD,), frozenset(), frozenset({claim}))


@pytest.fixture
def world() -> World:
    """Devices are held for the pod from the beginning."""
    world = World()
    world.tenures.follow([earmark()], 0)
    return world


def allocate(world: World, uid: str = "claim-uid") -> None:
    """The claim has its devices."""
    results = [{"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0", "request": "gpu"}]
    world.see(world.claim, uid, status={"allocation": {"devices": {"results": results}}})


def test_a_pod_that_gets_its_devices_owes_nothing(world: World) -> None:
    """Also where that is seen a moment after the hold."""
    world.tenures.follow([], 60)
    world.tenures.settle(60)
    was_open = world.tenures.are_open

    allocate(world)
    world.tenures.settle(61)

    assert (was_open, world.tenures.are_open) == (True, False)
    assert not world.is_spent(61)
    assert world.terms.left("pod-uid", 61) == 100


@pytest.mark.parametrize("how", ["gone", "replaced", "waits", "another claim"])
def test_whoever_did_not_get_them_owes_the_time(world: World, how: str) -> None:
    """The pod goes, one of its name follows, it waits on, or it has a claim of that name for less."""
    seen_after = 0.0
    if how == "gone":
        world.picture.forget(POD, world.pod)
    elif how == "replaced":
        world.see(world.pod, "another-uid")
    else:
        seen_after = OPEN_SECONDS
    if how == "another claim":
        allocate(world, "another-claim-uid")

    world.tenures.follow([], 60)
    world.tenures.settle(60 + seen_after)

    assert not world.tenures.are_open
    assert world.is_spent(60 + seen_after + 119)
    assert not world.is_spent(60 + seen_after + 120)


def test_a_term_that_is_over_is_owed_at_once(world: World) -> None:
    """The pod rests no longer than the node, and would come back before."""
    world.tenures.end("pod-uid", 100)
    world.tenures.follow([], 100)
    world.tenures.settle(100)

    assert not world.tenures.are_open
    assert world.is_spent(299)
    assert world.terms.rests("pod-uid", 299)


def test_nobody_takes_over_before_that_is_known(world: World) -> None:
    """Others of no higher priority stay away from the node and its pools; the pod itself goes on."""
    world.tenures.follow([], 60)

    assert world.tenures.nodes(0, "other") == {"n1"}
    assert world.tenures.pools(-1, "other") == earmark().pools
    assert world.tenures.nodes(1, "other") == world.tenures.nodes(0, "pod-uid") == frozenset()


@pytest.mark.parametrize("other", [earmark(node="n2"), earmark(claim="claim-2")])
def test_a_hold_elsewhere_or_for_other_claims_is_another_one(world: World, other: Earmark) -> None:
    """The first one is owed, and the pod's term goes on."""
    world.tenures.follow([other], 60)
    world.tenures.settle(60 + OPEN_SECONDS)

    assert world.is_spent(60 + OPEN_SECONDS)
    assert world.terms.left("pod-uid", 70) == 30


def test_nothing_is_remembered_of_pods_that_are_gone(world: World) -> None:
    """Neither what they held nor their terms."""
    world.tenures.follow([], 60)
    world.tenures.settle(60 + OPEN_SECONDS)
    assert world.terms.left("pod-uid", 70) == 40

    world.picture.forget(POD, world.pod)
    world.tenures.settle(80)

    assert world.terms.left("pod-uid", 80) == 100
    assert not world.tenures._known
