"""What the operator uses at rest, and what stays of pods that come and go."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from statistics import linear_regression

from bench.e2e_arms import DOVETAIL
from bench.e2e_run import measure
from e2e.harness import Cluster, Operator
from e2e.harness.usage import cpu_seconds, memory_mib

SETTLE_SECONDS = 5
WAVE = 500


@dataclass(frozen=True, slots=True)
class Idle:
    """CPU that the operator used while nothing happened, in percent of one core."""

    nodes: int
    seconds: float
    percent: float


@dataclass(frozen=True, slots=True)
class Soak:
    """The operator's memory and CPU after every wave of pods, all of which are gone by then."""

    pods: int
    wave: int
    mib: tuple[float, ...]
    cpu_ms_per_pod: tuple[float, ...]

    @property
    def bytes_per_pod(self) -> float:
        """What a pod leaves behind: the slope of memory over the second half of the waves."""
        half = self.mib[len(self.mib) // 2 :]
        if len(half) < 2:
            return 0.0
        seen = [self.wave * number for number in range(len(half))]
        return linear_regression(seen, half).slope * 2**20


async def idle(operator: Operator, nodes: int, seconds: float) -> Idle:
    """Let the operator rest, over at least one comparison with complete lists if `seconds` are enough."""
    await asyncio.sleep(SETTLE_SECONDS)
    began, before = time.monotonic(), cpu_seconds(operator.program.pid)
    await asyncio.sleep(seconds)
    passed, used = time.monotonic() - began, cpu_seconds(operator.program.pid) - before
    return Idle(nodes, passed, 100 * used / passed)


async def soak(cluster: Cluster, operator: Operator, nodes: int, pods: int) -> Soak:
    """Wave after wave of pods, each deleted before the next."""
    mib, cpu = [], []
    for _ in range(max(1, pods // WAVE)):
        run = await measure(DOVETAIL, cluster, nodes, min(WAVE, pods), operator)
        await asyncio.sleep(SETTLE_SECONDS)
        mib.append(memory_mib(operator.program.pid))
        cpu.append(run.cpu_ms_per_pod["operator"])
    return Soak(len(mib) * min(WAVE, pods), min(WAVE, pods), tuple(mib), tuple(cpu))
