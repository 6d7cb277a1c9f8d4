"""The picture of the cluster: never older than what was seen, and healed by complete lists."""

from typing import Any

import pytest

from dovetail.api.kinds import CLAIM, NODE, OPTIONAL, WATCHED
from dovetail.services.picture import Change, Picture

KEY = ("default", "c")


def body(version: int, *, name: str = "c", uid: str = "u", **more: Any) -> dict[str, Any]:
    """A claim in one version."""
    metadata = {"namespace": "default", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, **more}


@pytest.fixture
def picture() -> Picture:
    """A picture of nothing."""
    return Picture()


@pytest.fixture
def changes(picture: Picture) -> list[Change]:
    """What the picture tells its listeners."""
    heard: list[Change] = []
    picture.follow(heard.append)
    return heard


def version(picture: Picture) -> str | None:
    """The version of the claim in the picture."""
    found = picture.find(CLAIM, KEY)
    return found["metadata"]["resourceVersion"] if found else None


def test_an_older_version_never_replaces_a_newer_one(picture: Picture, changes: list[Change]) -> None:
    """Nine is older than ten, although it sorts behind it as text."""
    picture.see(CLAIM, body(10))

    assert not picture.see(CLAIM, body(9))
    assert version(picture) == "10"
    assert len(changes) == 1


def test_a_late_answer_does_not_bring_a_deleted_object_back(picture: Picture) -> None:
    """The deletion was newer than what the answer says."""
    picture.see(CLAIM, body(5))
    picture.forget(CLAIM, body(7))

    assert not picture.see(CLAIM, body(6))
    assert version(picture) is None


def test_a_namesake_that_is_made_after_a_deletion_is_seen(picture: Picture) -> None:
    """Its version is newer than the deletion's."""
    picture.see(CLAIM, body(5))
    picture.forget(CLAIM, body(7))

    assert picture.see(CLAIM, body(8, uid="v"))


def test_a_late_deletion_of_the_predecessor_leaves_the_namesake(picture: Picture) -> None:
    """The uid tells them apart."""
    picture.see(CLAIM, body(8, uid="v"))

    assert not picture.forget(CLAIM, body(7, uid="u"))
    assert version(picture) == "8"


def test_what_is_not_in_a_complete_list_is_gone(picture: Picture, changes: list[Change]) -> None:
    """It vanished while no watch was looking (R-B6)."""
    picture.see(CLAIM, body(5))

    vanished = picture.heal(CLAIM, [], "9")

    assert vanished == 1
    assert (changes[-1].before is not None, changes[-1].after) == (True, None)


def test_what_is_newer_than_the_list_stays(picture: Picture) -> None:
    """A watch was quicker than the list."""
    picture.see(CLAIM, body(10))

    assert picture.heal(CLAIM, [], "9") == 0
    assert version(picture) == "10"


def test_a_list_that_is_older_than_a_deletion_brings_nothing_back(picture: Picture) -> None:
    """The list was made before, and arrives after."""
    picture.see(CLAIM, body(5))
    picture.forget(CLAIM, body(7))

    picture.heal(CLAIM, [body(5)], "6")

    assert version(picture) is None


def test_the_picture_is_complete_when_every_kind_was_listed(picture: Picture) -> None:
    """Kinds that a cluster may lack do not count."""
    wanted = [kind for kind in WATCHED if kind not in OPTIONAL]
    for kind in wanted[:-1]:
        picture.heal(kind, [], "1")
    before = picture.is_complete

    picture.heal(wanted[-1], [], "1")

    assert (before, picture.is_complete) == (False, True)


def test_what_nobody_reads_is_not_kept(picture: Picture) -> None:
    """Managed fields, and the images of nodes, would be most of the memory."""
    node: dict[str, Any] = {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "1", "managedFields": [{}]},
        "status": {"images": [{}], "allocatable": {"cpu": "1"}},
    }

    picture.see(NODE, node)

    kept = picture.find(NODE, ("", "n"))
    assert kept is not None
    assert kept["status"] == {"allocatable": {"cpu": "1"}}
    assert "managedFields" not in kept["metadata"]
    assert "managedFields" in node["metadata"]
