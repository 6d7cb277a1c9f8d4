"""A restarted process takes the Lease of its dead predecessor at once, and of nobody else."""

import signal
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.cluster.wire import Wire
from dovetail.embedded import EmbeddedCluster
from dovetail.services.leadership import Leadership
from dovetail.services.seat import Seat
from tests.operator.test_leadership import Clock
from tests.operator.test_process import KOPF_RUN, QUICK, RUN, started
from tests.support.servers import connected

UID = "0a1b2c3d-0000-4000-8000-000000000001"
OTHER_UID = "0a1b2c3d-0000-4000-8000-000000000002"


@pytest.fixture
def of_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a container of the chart's pod; the directory that its containers share."""
    state = tmp_path / "state"
    state.mkdir()
    for name, value in {
        "POD_NAME": "dovetail-x",
        "POD_UID": UID,
        "DOVETAIL_STATE_DIRECTORY": str(state),
    }.items():
        monkeypatch.setenv(name, value)
    return state


def seat(directory: Path | None, *, pod: str = "dovetail-x", uid: str = UID) -> Seat:
    """A process of a pod."""
    return Seat(pod=pod, pod_uid=uid, directory=str(directory or ""))


def replica(wire: Wire, at: Seat, clock: Clock) -> Leadership:
    """A replica with a Lease of nine seconds, which strives for it when the test tells it to."""
    return Leadership(
        reader=Reader(wire),
        pen=Pen(wire, permit=lambda: None),
        namespace="kube-system",
        name="dovetail",
        identity=at.identity,
        seconds=9,
        succeeds=at.succeeds,
        clock=clock,
    )


def test_the_identity_names_pod_and_process(of_a_pod: Path) -> None:
    """Two processes of one pod are told apart, and both name the pod by its UID."""
    first = seat(of_a_pod)
    first.leave()
    second = seat(of_a_pod)

    assert first.identity != second.identity
    assert all(one.identity.startswith(f"dovetail-x_{UID}_") for one in (first, second))


def test_a_dead_predecessor_is_succeeded(of_a_pod: Path) -> None:
    """Its lock is free, and its identity says that it held it."""
    first = seat(of_a_pod)
    first.leave()

    assert seat(of_a_pod).succeeds(first.identity)


def test_a_predecessor_that_is_alive_is_not(of_a_pod: Path) -> None:
    """It holds the lock until it ends; then it is."""
    first, second = seat(of_a_pod), seat(of_a_pod)
    before = second.succeeds(first.identity)

    first.leave()

    assert (before, second.succeeds(first.identity)) == (False, True)


def test_whoever_never_held_the_lock_is_never_succeeded(of_a_pod: Path) -> None:
    """A process that came while the lock was held leads by the Lease alone: nobody knows when it dies."""
    first, without = seat(of_a_pod), seat(of_a_pod)
    first.leave()

    assert not seat(of_a_pod).succeeds(without.identity)


def _elsewhere(directory: Path) -> Seat:
    """Another directory of the same pod."""
    other = directory / "other"
    other.mkdir(exist_ok=True)
    return seat(other)


@pytest.mark.parametrize(
    "stranger",
    [
        lambda directory: seat(directory, uid=OTHER_UID),
        lambda directory: seat(directory, pod="dovetail-y"),
        _elsewhere,
        lambda _: seat(None),
        lambda directory: seat(directory / "missing"),
        lambda directory: seat(directory, uid=""),
    ],
    ids=["namesake", "other pod", "other directory", "no directory", "missing directory", "no UID"],
)
def test_a_stranger_is_not_succeeded(of_a_pod: Path, stranger: Callable[[Path], Seat]) -> None:
    """Neither by us nor we by it, although its lock is free."""
    gone = stranger(of_a_pod)
    gone.leave()
    ours = seat(of_a_pod)
    assert not ours.succeeds(gone.identity)
    ours.leave()

    assert not stranger(of_a_pod).succeeds(ours.identity)


def test_a_directory_that_was_made_anew_is_another(of_a_pod: Path) -> None:
    """What is written in the Lease is of a lock that nobody has any more."""
    first = seat(of_a_pod)
    (of_a_pod / "process.lock").unlink()

    assert not seat(of_a_pod).succeeds(first.identity)


async def test_the_lease_passes_from_process_to_process(bare: EmbeddedCluster, of_a_pod: Path) -> None:
    """Of three processes one after another each leads at once, and a namesake's waits for the Lease."""
    clock, seats = Clock(), []
    async with connected() as wire:
        for _ in range(3):
            seats.append(seat(of_a_pod))
            successor = replica(wire, seats[-1], clock)
            await successor.strive()
            assert successor.is_leading
            seats[-1].leave()
        namesake = replica(wire, seat(of_a_pod, uid=OTHER_UID), clock)
        await namesake.strive()
        at_once = namesake.is_leading
        clock.now += 9.1
        await namesake.strive()
    assert (at_once, namesake.is_leading) == (False, True)
    assert all(a.identity != b.identity for a, b in combinations(seats, 2))


@pytest.mark.usefixtures("of_a_pod")
@pytest.mark.parametrize("command", [RUN, KOPF_RUN], ids=["dovetail", "kopf"])
async def test_a_killed_process_is_followed_at_once(
    bare: EmbeddedCluster, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL gives nothing back: the next process leads all the same, long before the Lease has run out."""
    monkeypatch.setitem(QUICK, "DOVETAIL_LEASE_SECONDS", "60")
    async with started(*command) as first:
        first.process.send_signal(signal.SIGKILL)
        await first.process.wait()
        left = bare.get("Lease", "dovetail", "kube-system")["spec"]["holderIdentity"]

        async with started(*command) as second:
            assert [line["predecessor"] for line in second.lines if line["event"] == "lease_inherited"] == [
                left
            ]
            assert bare.get("Lease", "dovetail", "kube-system")["spec"]["holderIdentity"] != left


@pytest.mark.usefixtures("of_a_pod")
async def test_a_frozen_predecessor_is_not_doubled(
    bare: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither dead nor at work: the Lease stays its own until it is killed, and then passes at once."""
    monkeypatch.setitem(QUICK, "DOVETAIL_LEASE_SECONDS", "60")
    async with started(*RUN) as first:
        held = bare.get("Lease", "dovetail", "kube-system")
        first.freeze()
        async with started(*RUN) as second:
            assert "lease_inherited" not in [line["event"] for line in second.lines]
            assert bare.get("Lease", "dovetail", "kube-system") == held

            first.process.send_signal(signal.SIGKILL)

            await second.event("lease_inherited")
