"""One control plane that stays, for a person: `make cluster` and `make cluster-down`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from e2e.harness import objects
from e2e.harness.cluster import OPERATOR_ACCOUNT, OPERATOR_NAMESPACE, Cluster
from e2e.harness.controlplane import ControlPlane
from e2e.harness.objects import ROOT

HOME = ROOT / "build" / "cluster"
_PIDS = "pids.json"
NODES = {
    "gb300-1": objects.AZURE_GB300,
    "gb300-2": objects.AZURE_GB300,
    "h100-1": objects.DGX_H100_TOMORROW,
    "h100-2": objects.DGX_H100_TOMORROW,
}


def up(home: Path = HOME) -> str:
    """Start a control plane with example nodes unless one runs; return what a shell should evaluate."""
    environment = home / "environment"
    if not _alive(home):
        down(home)
        home.mkdir(parents=True)
        environment.write_text(asyncio.run(_start(home)))
    return environment.read_text()


async def _start(home: Path) -> str:
    plane = ControlPlane(home=home, linger=True)
    try:
        await plane.start()
        pids = {component.program.name: component.program.pid for component in plane.components}
        (home / _PIDS).write_text(json.dumps(pids))
        cluster = Cluster(plane)
        await cluster.install()
        for name, files in NODES.items():
            await cluster.add_world(files, name)
        operator = await plane.account_kubeconfig(OPERATOR_NAMESPACE, OPERATOR_ACCOUNT)
    except BaseException:
        await plane.stop(keep=True)
        raise
    await plane.kube.close()
    return (
        f"# nodes: {', '.join(NODES)}\n"
        f"# with the operator's own rights: export KUBECONFIG={operator}\n"
        f"export KUBECONFIG={plane.kubeconfig}\n"
    )


def down(home: Path = HOME) -> int:
    """End the programs that were recorded; return how many ran."""
    alive = _alive(home)
    for pid in alive:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    shutil.rmtree(home, ignore_errors=True)
    return len(alive)


def _alive(home: Path) -> list[int]:
    """The recorded processes that still are what they were."""
    record = home / _PIDS
    if not record.exists():
        return []
    pids: dict[str, int] = json.loads(record.read_text())
    return [pid for name, pid in pids.items() if _runs(pid, name)]


def _runs(pid: int, name: str) -> bool:
    """Whether a process of that number exists and is that program: numbers are used again."""
    command = Path(f"/proc/{pid}/cmdline")
    if command.exists():
        return command.read_bytes().split(b"\0")[0].endswith(name.encode())
    if Path("/proc/self").exists():
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """`up` prints what a shell should evaluate; `down` says what it ended."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["up", "down"])
    parser.add_argument("--home", type=Path, default=HOME, help="where its files are kept")
    wish = parser.parse_args(arguments)
    if wish.what == "up":
        print(up(wish.home), end="")
    else:
        print(f"{down(wish.home)} programs ended", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
