"""`make chaos DURATION=… SEED=…`: run for so many seconds; the exit status is 0 where all held."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from datetime import datetime
from random import SystemRandom

from e2e.chaos.run import Run, Verdict
from e2e.harness import Cluster, ControlPlane, Options
from e2e.harness.objects import ROOT
from e2e.harness.processes import end_all

KEPT_LOGS = ROOT / "build" / "chaos-logs"


def main() -> int:
    """Read the arguments, run, print the verdict."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", type=float, default=120.0, help="seconds of disturbance")
    parser.add_argument("--seed", type=int, help="the same seed and duration give the same script")
    wishes = parser.parse_args()
    seed = SystemRandom().randrange(10**6) if wishes.seed is None else wishes.seed
    print(f"DURATION={wishes.duration:g} SEED={seed}", flush=True)
    try:
        verdict = asyncio.run(chaos(seed, wishes.duration))
    finally:
        end_all()
    print(verdict)
    return 0 if verdict.holds else 1


async def chaos(seed: int, duration: float) -> Verdict:
    """One run on a control plane of its own; where something was wrong its logs are kept."""
    plane = ControlPlane(Options())
    await plane.start()
    cluster = Cluster(plane)
    try:
        await cluster.install()
        verdict = await Run(cluster, seed=seed, duration=duration, say=_say)()
        if not verdict.holds:
            shutil.copytree(plane.home / "logs", KEPT_LOGS, dirs_exist_ok=True)
            shutil.copy(plane.home / "audit.log", KEPT_LOGS)
            print(f"the logs are in {KEPT_LOGS.relative_to(ROOT)}")
        await cluster.clean()
        return verdict
    finally:
        await plane.stop()


def _say(line: str) -> None:
    print(f"{datetime.now().astimezone():%H:%M:%S}  {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
