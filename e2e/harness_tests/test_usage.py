"""Memory and CPU are those of all processes of a program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from e2e.harness.processes import Program
from e2e.harness.usage import cpu_seconds, memory_mib, processes_of

PAIR = """
import os, time
shared = bytearray(64 << 20)
if os.fork() == 0:
    own = bytearray(b"x") * (64 << 20)
    until = time.process_time() + 0.5
    while time.process_time() < until:
        pass
    print("worked", flush=True)
    time.sleep(60)
time.sleep(60)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counted as Linux counts it")


async def test_what_a_child_uses_counts_and_what_is_shared_counts_once(tmp_path: Path) -> None:
    """A parent that only waits: the memory of both, and the CPU time of the child."""
    pair = Program("pair", [sys.executable, "-u", "-c", PAIR], tmp_path / "pair.log")
    pair.start()
    await pair.ready(lambda: "worked" in pair.tail())

    assert len(processes_of(pair.pid)) == 2
    assert cpu_seconds(pair.pid) >= 0.5
    assert 128 < memory_mib(pair.pid) < 180
    await pair.kill()
    assert (processes_of(pair.pid), memory_mib(pair.pid)) == ((), 0)


async def test_a_frozen_program_is_frozen_with_its_children(tmp_path: Path) -> None:
    """Whoever works stands still, not only whoever was started."""
    pair = Program("pair", [sys.executable, "-u", "-c", PAIR], tmp_path / "pair.log")
    pair.start()
    await pair.ready(lambda: "worked" in pair.tail())

    pair.pause()

    await pair.ready(lambda: {_state(pid) for pid in processes_of(pair.pid)} == {"T"}, within=5)
    await pair.kill()


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
