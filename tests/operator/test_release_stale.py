"""Freeing a claim on a picture that is not up to date: whoever may still use it loses nothing."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dovetail.api.kinds import CLAIM, POD
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.embedded import EmbeddedCluster
from dovetail.services.consumers import Consumers
from dovetail.services.picture import Picture
from dovetail.services.release import Release
from tests.operator.test_two_steps import allocate, entry
from tests.operator.worlds import Body, aligned, claim, pod, times_taken
from tests.support.servers import connected

KEY = ("default", "a")
FINALIZER = "resource.kubernetes.io/delete-protection"


class Scene:
    """What is known, and what frees claims on it, at once."""

    def __init__(self, cluster: EmbeddedCluster, picture: Picture, release: Release) -> None:
        self.cluster = cluster
        self.picture = picture
        self._release = release

    def pod(self, name: str, *, phase: str = "Running") -> Body:
        """A pod that the picture knows."""
        self.cluster.create(pod(name, claim="a"))
        body = self.cluster.patch("Pod", name, {"status": {"phase": phase}}, status=True)
        self.picture.see(POD, body)
        return body

    def protected(self, name: str = "a", **metadata: Any) -> None:
        """A claim with the finalizer of allocated claims."""
        made = claim(name, aligned("gpu"))
        self.cluster.create(made | {"metadata": made["metadata"] | {"finalizers": [FINALIZER], **metadata}})

    async def tend(self) -> list[str]:
        """Free the claim as it is in the picture; the methods of all that was written."""
        await self._release.tend(KEY)
        return [request.method for request in self.cluster.writes()]


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """An API server on which nobody else frees or collects anything."""
    async with EmbeddedCluster(garbage_collector=False) as server:
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "kubeconfig")))
        async with connected() as wire:
            picture, pen = Picture(), Pen(wire, permit=lambda: None)
            consumers = Consumers()
            picture.follow(consumers.follow)
            release = Release(
                pen=pen,
                reader=Reader(wire),
                picture=picture,
                users=lambda key: consumers.of(CLAIM, key),
                mode="always",
                grace_seconds=0.0,
                clock=lambda: 0.0,
            )
            yield Scene(server, picture, release)


def owned_by(of: Body) -> Body:
    """The reference to the pod that a claim was made for."""
    metadata = of["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


async def test_a_claim_that_is_being_deleted_stays_whole_while_somebody_uses_it(scene: Scene) -> None:
    """Of two consumers one is done: its entry goes, devices and finalizer stay (L14)."""
    scene.protected()
    allocate(scene.cluster, "a", scene.pod("done", phase="Succeeded"), user := scene.pod("user"))
    scene.cluster.delete("ResourceClaim", "a")
    scene.picture.see(CLAIM, scene.cluster.get("ResourceClaim", "a"))

    written = await scene.tend()

    assert written == ["PUT"]
    assert times_taken(scene.cluster, "a") == 0
    assert scene.cluster.get("ResourceClaim", "a")["status"]["reservedFor"] == [entry(user)]


async def test_a_claim_whose_pod_nobody_knows_is_left_alone(scene: Scene) -> None:
    """The picture may lack the pod; that it is gone is for the garbage collector to find."""
    unknown = scene.cluster.create(pod("unknown", claim="a"))
    scene.protected(ownerReferences=[owned_by(unknown)])
    scene.picture.see(CLAIM, allocate(scene.cluster, "a"))

    assert await scene.tend() == []


async def test_a_namesake_of_a_claim_is_not_deleted(scene: Scene) -> None:
    """Claim and pod are done, and another claim has the name by now: it has another UID."""
    finished = scene.pod("done", phase="Succeeded")
    made = claim("a", aligned("gpu"))
    made["metadata"]["ownerReferences"] = [owned_by(finished)]
    scene.picture.see(CLAIM, scene.cluster.create(made))
    scene.cluster.delete("ResourceClaim", "a")
    namesake = scene.cluster.create(claim("a", aligned("gpu")))

    assert await scene.tend() == ["DELETE"]
    assert scene.cluster.get("ResourceClaim", "a")["metadata"]["uid"] == namesake["metadata"]["uid"]


async def test_a_consumer_that_the_picture_lacks_is_asked_for(scene: Scene) -> None:
    """The pod is there: nothing is written (L3)."""
    unknown = scene.cluster.create(pod("unknown", claim="a"))
    scene.protected()
    scene.picture.see(CLAIM, allocate(scene.cluster, "a", unknown))

    assert await scene.tend() == []


def _release_the_last(scene: Scene) -> None:
    """Its only consumer is done: devices and reservation go with one write."""
    scene.protected()
    allocate(scene.cluster, "a", scene.pod("done", phase="Succeeded"))


def _deallocate(scene: Scene) -> None:
    """It is being deleted, and nobody uses it."""
    scene.protected()
    allocate(scene.cluster, "a")
    scene.cluster.delete("ResourceClaim", "a")


def _unprotect(scene: Scene) -> None:
    """It is being deleted, and has no devices."""
    scene.protected()
    scene.cluster.delete("ResourceClaim", "a")


@pytest.mark.parametrize("due", [_release_the_last, _deallocate, _unprotect])
async def test_a_claim_that_changed_meanwhile_is_not_written(
    scene: Scene, due: Callable[[Scene], None]
) -> None:
    """Every write names the claim, and the version of it, that it was decided on."""
    due(scene)
    seen = scene.cluster.get("ResourceClaim", "a")
    scene.picture.see(CLAIM, seen)
    changed = scene.cluster.patch("ResourceClaim", "a", {"metadata": {"labels": {"somebody": "was-here"}}})

    assert await scene.tend() == ["PUT"]

    (sent,) = scene.cluster.writes("", "PUT")
    assert isinstance(sent.body, dict)
    metadata = sent.body["metadata"]
    assert (sent.status, metadata["uid"], metadata["resourceVersion"]) == (
        409,
        seen["metadata"]["uid"],
        seen["metadata"]["resourceVersion"],
    )
    assert scene.cluster.get("ResourceClaim", "a") == changed
