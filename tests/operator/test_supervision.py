"""The operator as a process that goes wrong: ended from outside, started again, and gone when told to."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dovetail.embedded import EmbeddedCluster
from tests.operator.test_process import Process
from tests.operator.worlds import Body, aligned, pairs, pod, running_pod, template, waits_for

SETTINGS = {
    "DOVETAIL_LISTEN": "",
    "DOVETAIL_CLAIM_GENERATION": "always",
    "DOVETAIL_LEASE_SECONDS": "2",
    "DOVETAIL_DECISION_SECONDS": "0.5",
    "DOVETAIL_DECISION_MEBIBYTES": "128",
    "PYTHONPATH": "operator",
}
WITHIN = 40
"""Seconds for what takes two, on a machine that does other things."""


def bomb(kind: str, name: str = "hostile") -> Body:
    """A pod that a decision goes wrong for."""
    body = pod(name, template="bad")
    body["metadata"]["labels"] = {"bomb": kind}
    return body


@asynccontextmanager
async def hostile(**settings: str) -> AsyncIterator[Process]:
    """An operator whose decisions go wrong for pods with a bomb; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.operator.hostile",
        env=os.environ | SETTINGS | settings,
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        limit=2**24,
    )
    try:
        yield Process(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


@pytest.fixture
def world(cluster: EmbeddedCluster) -> EmbeddedCluster:
    """A node with two pairs, a template for pairs, and one that asks for something else."""
    cluster.load(*pairs(2), template("bad", aligned("gpu")))
    return cluster


def is_about(cluster: EmbeddedCluster, name: str) -> bool:
    """A decision about the pod begins: its claim is there, and named."""
    return bool(cluster.get("Pod", name).get("status", {}).get("resourceClaimStatuses"))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("block", "a decision could not be stopped"), ("swell", "a decision took too much memory")],
)
async def test_what_no_exception_reaches_is_ended_from_outside(
    world: EmbeddedCluster, kind: str, reason: str
) -> None:
    """A decision blocks in C: the process is ended and started again, and does not walk into it once more."""
    async with hostile() as operator:
        await operator.event("operator_ready")
        world.create(bomb(kind))
        ended = await operator.event("operator_ended")
        world.create(pod("honest"))
        await world.wait_for("Pod", running_pod("honest"), timeout_seconds=WITHIN)
        await world.wait_for("Pod", waits_for("CostsTooMuch"), timeout_seconds=WITHIN)

        assert ended["reason"] == reason
        assert [line["event"] for line in operator.lines].count("operator_ended") == 1
        code, _ = await operator.stop()
    assert code == 0


@pytest.mark.parametrize("kind", ["loop", "block"])
async def test_sigterm_is_answered_while_a_decision_is_stuck(world: EmbeddedCluster, kind: str) -> None:
    """Within five seconds the process is gone, whatever its thread does; Python gives the Lease back."""
    async with hostile(DOVETAIL_DECISION_SECONDS="4") as operator:
        await operator.event("operator_ready")
        world.create(bomb(kind))
        await world.wait_for(
            "Pod", lambda body: is_about(world, body["metadata"]["name"]), timeout_seconds=WITHIN
        )
        await asyncio.sleep(0.3)

        code, seconds = await operator.stop()

    assert seconds < 5
    if kind == "loop":
        assert code == 0
        assert not world.get("Lease", "dovetail", "kube-system")["spec"]["holderIdentity"]


@pytest.mark.parametrize("held", ["selfsubjectaccessreviews", "resourceslices"])
async def test_sigterm_is_answered_before_the_start_is_over(world: EmbeddedCluster, held: str) -> None:
    """The API server does not answer the check of rights, or the first lists: it is gone all the same."""
    waiting = world.faults.hold("", held)
    async with hostile() as operator:
        await waiting.arrived.wait()

        _, seconds = await operator.stop()
        waiting.release()

    assert seconds < 5


async def test_what_killed_a_container_is_left_alone_by_the_next(
    world: EmbeddedCluster, tmp_path: Path
) -> None:
    """All processes are killed amid a decision that blocks: what is in the directory tells the next ones."""
    settings = {"DOVETAIL_STATE_DIRECTORY": str(tmp_path), "DOVETAIL_DECISION_SECONDS": "4"}
    async with hostile(**settings) as operator:
        await operator.event("operator_ready")
        world.create(bomb("block"))
        await world.wait_for(
            "Pod", lambda body: is_about(world, body["metadata"]["name"]), timeout_seconds=WITHIN
        )
        await asyncio.sleep(1.5)
        operator.process.kill()
        await operator.process.wait()
    async with hostile(**settings) as operator:
        await operator.event("operator_ready")
        world.create(pod("honest"))
        await world.wait_for("Pod", running_pod("honest"), timeout_seconds=WITHIN)
        await world.wait_for("Pod", waits_for("CostsTooMuch"), timeout_seconds=WITHIN)


async def test_who_watches_does_not_leave_the_worker_behind(world: EmbeddedCluster) -> None:
    """The process that watches is killed: the one that works ends with it."""
    async with hostile() as operator:
        await operator.event("operator_ready")
        (worker,) = _children(operator.process.pid)
        operator.process.kill()
        # Its output has an end: nobody holds it open any more.
        await asyncio.wait_for(operator.process.communicate(), 10)
    assert not _size(worker)


async def test_a_process_that_was_frozen_is_given_its_time(world: EmbeddedCluster) -> None:
    """Stopped amid a decision for longer than that may take, it has used no time: it goes on."""
    async with hostile(DOVETAIL_DECISION_SECONDS="2") as operator:
        await operator.event("operator_ready")
        (worker,) = _children(operator.process.pid)
        world.create(bomb("loop"))
        await world.wait_for(
            "Pod", lambda body: is_about(world, body["metadata"]["name"]), timeout_seconds=WITHIN
        )
        os.kill(worker, signal.SIGSTOP)
        await asyncio.sleep(4)
        os.kill(worker, signal.SIGCONT)
        await world.wait_for("Pod", waits_for("CostsTooMuch"), timeout_seconds=WITHIN)

        assert _children(operator.process.pid) == [worker]


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _size(pid: int) -> int:
    """In pages; a process that is gone has none."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    except OSError:
        return 0
