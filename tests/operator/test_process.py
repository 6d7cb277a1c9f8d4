"""The operator as a process: started in both ways, stopped by SIGTERM."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from dovetail.embedded import EmbeddedCluster
from tests.operator.worlds import claim, pairs, pod, running_pod

RUN = ("-m", "dovetail", "run")
KOPF_RUN = ("-m", "kopf", "run", "--standalone", "--all-namespaces", "-m", "dovetail.app")
QUICK = {"DOVETAIL_LISTEN": "", "DOVETAIL_CLAIM_GENERATION": "always", "DOVETAIL_LEASE_SECONDS": "6"}


class Process:
    """A running operator and its log."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []

    async def event(self, name: str) -> dict[str, Any]:
        """Read the log up to the first event of this name."""
        stream = self.process.stderr
        assert stream is not None
        async with asyncio.timeout(90):
            async for line in stream:
                entry = json.loads(line) if line.startswith(b"{") else {"event": line.decode()}
                self.lines.append(entry)
                if entry["event"] == name:
                    return entry
        raise AssertionError(f"{name} was not logged: {self.lines}")

    def freeze(self) -> None:
        """Stop all that it consists of (SIGSTOP): a process that works, and its parent, which watches."""
        parent = self.process.pid
        children = Path(f"/proc/{parent}/task/{parent}/children")
        for pid in (parent, *map(int, children.read_text().split() if children.exists() else ())):
            os.kill(pid, signal.SIGSTOP)

    async def stop(self) -> tuple[int, float]:
        """Ask it to end; the answer is the exit code and how many seconds that took."""
        before = monotonic()
        self.process.send_signal(signal.SIGTERM)
        await self.process.communicate()
        return self.process.returncode or 0, monotonic() - before


@asynccontextmanager
async def started(*command: str, extra: Sequence[str] = ()) -> AsyncIterator[Process]:
    """An operator process that is ready; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        *extra,
        env=os.environ | QUICK | {"PYTHONPATH": "operator"},
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        limit=2**24,
    )
    operator = Process(process)
    try:
        await operator.event("operator_ready")
        yield operator
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_kopf_runs_the_operator_as_well(cluster: EmbeddedCluster) -> None:
    """`kopf run -m dovetail.app` serves pods, with settings from the environment."""
    cluster.load(*pairs())
    async with started(*KOPF_RUN) as operator:
        cluster.create(pod())
        await cluster.wait_for("Pod", running_pod("p"))

        code, seconds = await operator.stop()

    assert code == 0
    assert seconds < 5


async def test_sigterm_finishes_the_write_under_way(cluster: EmbeddedCluster) -> None:
    """The status is on its way when SIGTERM comes: it arrives, and the process ends within five seconds."""
    cluster.load(*pairs())
    cluster.create(claim("mine"))
    async with started(*RUN) as operator:
        held = cluster.faults.hold("PUT", "resourceclaims/status")
        cluster.create(pod(claim="mine"))
        await held.arrived.wait()
        stopping = asyncio.create_task(operator.stop())
        await asyncio.sleep(0.3)
        held.release()
        code, seconds = await stopping

    assert code == 0
    assert seconds < 5
    assert cluster.get("ResourceClaim", "mine")["status"]["allocation"]
    assert not cluster.get("Lease", "dovetail", "kube-system")["spec"]["holderIdentity"]


async def test_a_write_without_an_end_does_not_keep_the_process(cluster: EmbeddedCluster) -> None:
    """The API server never answers: the process ends within five seconds all the same."""
    cluster.load(*pairs())
    cluster.create(claim("mine"))
    async with started(*RUN) as operator:
        held = cluster.faults.hold("PUT", "resourceclaims/status")
        cluster.create(pod(claim="mine"))
        await held.arrived.wait()

        _, seconds = await operator.stop()
        held.release()

    assert seconds < 5


async def failed_start(command: Sequence[str] = RUN, **variables: str) -> list[dict[str, Any]]:
    """The log of a process that ends with exit code 1."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        env=os.environ | QUICK | {"PYTHONPATH": "operator"} | variables,
        stderr=asyncio.subprocess.PIPE,
    )
    _, log = await asyncio.wait_for(process.communicate(), 45)
    assert process.returncode == 1
    return [json.loads(line) for line in log.splitlines()]


@pytest.mark.parametrize("command", [RUN, KOPF_RUN], ids=["dovetail", "kopf"])
async def test_a_process_that_cannot_start_ends_with_a_sentence(command: Sequence[str]) -> None:
    """There is no kubeconfig: the log names the file, and nothing else is said."""
    (only,) = await failed_start(command, KUBECONFIG="/nonexistent")

    assert only["event"] == "operator_cannot_start"
    assert "/nonexistent" in only["reason"]


async def test_a_wrong_setting_under_kopf_is_named_by_its_variable() -> None:
    """There are no flags: what is wrong is told of the environment variable."""
    (only,) = await failed_start(KOPF_RUN, DOVETAIL_LEASE_SECONDS="soon")

    assert only["event"] == "operator_cannot_start"
    assert only["reason"] == "DOVETAIL_LEASE_SECONDS: 'soon' has to be a number"


@pytest.mark.parametrize("command", [RUN, KOPF_RUN], ids=["dovetail", "kopf"])
async def test_an_address_in_use_ends_the_process_with_a_sentence(
    cluster: EmbeddedCluster, command: Sequence[str]
) -> None:
    """Somebody else serves there: address and setting are named, and nothing else is complained of."""
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as somebody:
        host, port = somebody.sockets[0].getsockname()

        log = await failed_start(command, DOVETAIL_LISTEN=f"{host}:{port}")

    (trouble,) = [entry for entry in log if entry["level"] in ("warning", "error")]
    assert trouble["event"] == "operator_cannot_start"
    assert trouble["reason"] == (f"cannot listen at {host}:{port} (setting listen): address already in use")
    assert not cluster.find("Lease", "dovetail", "kube-system")
