"""Programs end when they should, and start where they were."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from e2e import build
from e2e.harness.errors import NotSeen, ProgramEnded
from e2e.harness.objects import ROOT
from e2e.harness.processes import Program, free_port

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(60)
"""


def program(tmp_path: Path, script: str) -> Program:
    """A Python program."""
    return Program("sample", [sys.executable, "-u", "-c", script], tmp_path / "sample.log")


async def test_a_program_that_ignores_the_request_to_end_is_killed_and_told(tmp_path: Path) -> None:
    """SIGTERM without effect is an error, and nothing is left running."""
    stubborn = program(tmp_path, STUBBORN)
    stubborn.start()
    await stubborn.ready(lambda: "up" in stubborn.tail())

    with pytest.raises(NotSeen, match="end of sample"):
        await stubborn.stop(within=0.2)

    assert stubborn.exit_code == -signal.SIGKILL


async def test_a_program_that_dies_before_it_is_ready_is_told_with_its_log(tmp_path: Path) -> None:
    """Waiting for readiness ends with the program, not with the time."""
    broken = program(tmp_path, "raise SystemExit('no such flag')")
    broken.start()

    with pytest.raises(ProgramEnded, match="no such flag"):
        await broken.ready(lambda: False, within=30)


LEAVES_A_CHILD = """
import os, time
print("up", flush=True)
if os.fork():
    time.sleep(60)
time.sleep(0.5)
print("late", flush=True)
"""


async def test_the_end_of_the_output_is_told_before_the_end_of_the_program(tmp_path: Path) -> None:
    """Whoever starts it again hears of the new run alone, however slow the one who listens is."""
    heard: list[bytes | None] = []
    up = threading.Event()

    def listen(line: bytes | None) -> None:
        up.set()
        time.sleep(0.2)
        heard.append(line)

    writer = program(tmp_path, LEAVES_A_CHILD)
    writer.listener = listen
    writer.start()
    await asyncio.to_thread(up.wait, 10)

    await writer.kill()

    assert heard == [b"up\n", None]


async def test_a_child_that_lives_on_is_waited_for(tmp_path: Path) -> None:
    """It may still print, in the place of the next run."""
    heard: list[bytes | None] = []
    writer = program(tmp_path, LEAVES_A_CHILD.replace("time.sleep(60)", "raise SystemExit"))
    writer.listener = heard.append
    writer.start()

    assert await writer.ended(within=10) == 0

    assert heard == [b"up\n", b"late\n", None]


PARENT = """
import sys
from pathlib import Path
from e2e.harness.processes import Program
child = Program("child", [sys.executable, "-c", "import time; time.sleep(60)"], Path(sys.argv[1]))
child.start()
print(child.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children of a killed parent")
async def test_programs_end_even_when_their_parent_is_killed(tmp_path: Path) -> None:
    """A test run that gets SIGKILL leaves no program behind."""
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
    pipe = asyncio.subprocess.PIPE
    parent = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=pipe, stdout=pipe)
    assert parent.stdout
    child = os.pidfd_open(int(await parent.stdout.readline()))
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(child, ended.set)

    parent.kill()
    await parent.wait()

    try:
        async with asyncio.timeout(5):
            await ended.wait()
    finally:
        asyncio.get_running_loop().remove_reader(child)
        os.close(child)


def test_free_ports_are_outside_the_range_that_clients_get() -> None:
    """No connection of a client can take the port of a server that is being restarted."""
    lowest, _ = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = {free_port() for _ in range(20)}

    assert len(ports) == 20
    assert max(ports) < lowest
    with socket.socket() as server:
        server.bind(("127.0.0.1", ports.pop()))


def test_the_programs_are_named_by_what_they_are_made_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A changed input gives another name, so that an old program is never taken for a new one."""
    group = next(group for group in build.GROUPS if group.name == "kwok")
    (tmp_path / "kwok").mkdir()
    source = tmp_path / "kwok" / "go.mod"
    monkeypatch.setattr(build, "HERE", tmp_path)

    source.write_text("module a\n")
    first = build.digest_of(group)
    source.write_text("module b\n")

    assert build.digest_of(group) != first


def test_a_second_build_only_looks() -> None:
    """When everything is built, asking for it takes well under a second."""
    command = [sys.executable, "-S", "-I", str(ROOT / "e2e" / "build.py")]
    build.bin_directory()

    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=3)

    assert {path.name for path in Path(answer.stdout.strip()).iterdir()} >= {"etcd", "kwok", "helm", "oracle"}
    assert answer.stderr == ""
