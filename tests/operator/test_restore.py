"""The cluster is restored from an older state: versions are lower than what was seen before."""

from typing import Any

import pytest

from dovetail.api.kinds import CLAIM, SLICE
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.embedded import EmbeddedCluster
from dovetail.services.leadership import Leadership
from dovetail.services.picture import Change, Picture
from tests.operator.conftest import OperatorStarter
from tests.operator.test_leadership import Clock, replica
from tests.operator.test_picture import KEY, body, version
from tests.operator.worlds import claim, gpus, is_gated, nics, pairs, pod, running_pod, waits_for
from tests.support.servers import connected


def let_time_pass(cluster: EmbeddedCluster) -> None:
    """Versions go up by what nobody here looks at."""
    for _ in range(300):
        cluster.patch("Namespace", "kube-system", {"metadata": {"labels": {"n": str(cluster.store.version)}}})


async def test_what_comes_after_a_restore_is_served(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A pod ran and is gone with the restore; the next one gets the devices, within seconds."""
    cluster.load(*pairs())
    await operator()
    before = cluster.snapshot()
    cluster.create(claim("old"))
    cluster.create(pod("old", claim="old"))
    await cluster.wait_for("Pod", running_pod("old"))
    let_time_pass(cluster)
    cluster.create(claim("older"))

    cluster.restore(before)
    cluster.create(claim("new"))
    cluster.create(pod("new", claim="new"))

    await cluster.wait_for("Pod", running_pod("new"), timeout_seconds=20)


async def test_an_allocation_that_the_restore_undid_is_made_again(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The claim is as it was before it got devices: it is planned on that version."""
    cluster.load(*pairs())
    await operator()
    cluster.create(claim("mine"))
    before = cluster.snapshot()
    cluster.create(pod("first", claim="mine"))
    await cluster.wait_for("Pod", running_pod("first"))
    let_time_pass(cluster)

    cluster.restore(before)
    cluster.create(pod("second", claim="mine"))

    await cluster.wait_for("Pod", running_pod("second"), timeout_seconds=20)


async def test_devices_that_the_restore_took_away_are_not_given(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Slices are followed by Kopf, whose watch waits for versions that are to come: lists tell."""
    cluster.load(*pairs())
    for published in cluster.objects("ResourceSlice"):
        cluster.delete("ResourceSlice", published["metadata"]["name"])
    await operator(resync_seconds=2.0)
    before = cluster.snapshot()
    cluster.load(gpus(0), nics(0))
    cluster.create(pod("old"))
    await cluster.wait_for("Pod", running_pod("old"))
    let_time_pass(cluster)

    cluster.restore(before)
    cluster.create(pod("new"))

    waiting = await cluster.wait_for("Pod", waits_for(), timeout_seconds=20)
    assert is_gated(waiting)
    cluster.load(gpus(0), nics(0))
    await cluster.wait_for("Pod", running_pod("new"), timeout_seconds=20)


@pytest.fixture
def picture() -> Picture:
    """A picture of nothing."""
    return Picture()


def test_a_list_of_a_restored_cluster_is_believed(picture: Picture) -> None:
    """Whatever was seen since is not so: neither objects, nor versions, nor deletions."""
    heard: list[Change] = []
    picture.follow(heard.append)
    for seen in (body(90), body(80, name="gone-since"), body(95, name="made-since")):
        picture.see(CLAIM, seen)
    picture.forget(CLAIM, body(97, name="gone-since"))
    heard.clear()

    vanished = picture.rebuild(CLAIM, [body(50), body(40, name="gone-since")], "60")

    assert (version(picture), vanished, picture.newest(CLAIM)) == ("50", 1, 60)
    assert picture.find(CLAIM, ("default", "made-since")) is None
    assert picture.find(CLAIM, ("default", "gone-since")) is not None
    assert len(heard) == 3
    assert picture.see(CLAIM, body(61))


def test_the_same_version_with_other_contents_is_another_object(picture: Picture) -> None:
    """After a restore a version is given out once more."""
    picture.see(CLAIM, body(50, spec="before"))

    picture.rebuild(CLAIM, [body(50, spec="after")], "50")

    found = picture.find(CLAIM, KEY)
    assert found is not None
    assert found["spec"] == "after"


def test_kinds_are_told_apart(picture: Picture) -> None:
    """Versions of different kinds may come from different servers (KEP-5504)."""
    picture.see(CLAIM, body(90))

    assert picture.newest(SLICE) is None


@pytest.mark.parametrize("versions", [("a9", "a10"), ("a10", "a9"), ("9", "x"), ("x", "9")])
def test_versions_that_are_no_numbers_are_news_when_they_differ(
    picture: Picture, versions: tuple[str, str]
) -> None:
    """They cannot be compared, so that the last word counts, and a list is complete."""
    for each in versions:
        seen: dict[str, Any] = body(1)
        seen["metadata"]["resourceVersion"] = each
        picture.see(CLAIM, seen)

    assert version(picture) == versions[1]
    assert picture.heal(CLAIM, [], "list") == 1


async def test_a_lease_that_went_back_is_not_taken_at_once(bare: EmbeddedCluster) -> None:
    """It names a replica that has been followed by another since, which may still write: both wait."""
    clock = Clock()
    async with connected() as wire:
        first, second = replica(wire, "a", clock), replica(wire, "b", clock)
        await first.strive()
        before = bare.snapshot()
        await second.strive()
        clock.now += 9.1
        await second.strive()
        assert second.is_leading
        await first.strive()

        bare.restore(before)
        await first.strive()
        early = first.is_leading
        clock.now += 9.1
        await first.strive()

    assert (early, first.is_leading, second.is_leading) == (False, True, False)


async def test_a_leader_goes_on_with_a_lease_that_went_back(bare: EmbeddedCluster) -> None:
    """It is its own, and its deadline is not over."""
    clock = Clock()
    async with connected() as wire:
        leader = Leadership(
            reader=Reader(wire),
            pen=Pen(wire, permit=lambda: None),
            namespace="kube-system",
            name="dovetail",
            identity="a",
            seconds=9,
            clock=clock,
        )
        await leader.strive()
        before = bare.snapshot()
        clock.now += 3
        await leader.strive()

        bare.restore(before)
        clock.now += 3
        await leader.strive()

    assert leader.is_leading
