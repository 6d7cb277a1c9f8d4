"""What the figures are judged by: ratios within one invocation, and what the operator may use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from typing_extensions import override

from bench.e2e_arms import DOVETAIL, SCHEDULER
from bench.e2e_run import Run
from bench.e2e_soak import Idle, Soak

MOST_MIB = 300.0
MOST_MIB_UP_TO_NODES = 500
MOST_IDLE_PERCENT = 1.0
MOST_GROWTH_BYTES_PER_POD = 2048.0
"""What a pod that came and went may leave behind: names of deleted objects are kept for a while."""

LONGEST_TAIL = 1.0


def least_speed(nodes: int) -> float:
    """How many pods a second Dovetail has to make, as a multiple of kube-scheduler alone."""
    if nodes >= 1000:
        return 2.0
    return 1.5 if nodes >= 500 else 1.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure, its limit, and which side of it is good."""

    name: str
    figure: float
    limit: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the figure is on the good side."""
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit

    @override
    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"{self.name}: {self.figure:.2f} {sign} {self.limit:g} {'holds' if self.holds else 'FAILS'}"


@dataclass(frozen=True, slots=True)
class Figures:
    """The medians of an arm's runs of one size; `speed` and `tail` are multiples of kube-scheduler alone."""

    arm: str
    nodes: int
    pods: int
    runs: int
    pods_per_second: float
    p50_seconds: float
    p99_seconds: float
    cpu_ms_per_pod: dict[str, float]
    operator_mib: float | None
    speed: float | None = None
    tail: float | None = None


def summarize(runs: Sequence[Run]) -> list[Figures]:
    """Medians by size and arm, compared with kube-scheduler alone where it ran."""
    keys = dict.fromkeys((run.nodes, run.pods, run.arm) for run in runs)
    groups = {key: [run for run in runs if (run.nodes, run.pods, run.arm) == key] for key in keys}
    return [_figures(group, groups.get((*key[:2], SCHEDULER.name))) for key, group in groups.items()]


def _figures(group: list[Run], base: list[Run] | None) -> Figures:
    first = group[0]
    memory = [run.operator_mib for run in group if run.operator_mib is not None]
    speed, tail = median(run.pods_per_second for run in group), median(run.p99_seconds for run in group)
    return Figures(
        arm=first.arm,
        nodes=first.nodes,
        pods=first.pods,
        runs=len(group),
        pods_per_second=speed,
        p50_seconds=median(run.p50_seconds for run in group),
        p99_seconds=tail,
        cpu_ms_per_pod={
            name: median(run.cpu_ms_per_pod[name] for run in group) for name in first.cpu_ms_per_pod
        },
        operator_mib=max(memory) if memory else None,
        speed=speed / median(run.pods_per_second for run in base) if base else None,
        tail=tail / median(run.p99_seconds for run in base) if base else None,
    )


def judge(figures: Iterable[Figures], idle: Iterable[Idle], soak: Soak | None) -> list[Bar]:
    """Every bar that concerns what was measured."""
    bars = [bar for each in figures if each.arm == DOVETAIL.name for bar in _judge_size(each)]
    bars += [Bar(f"idle CPU, {each.nodes} nodes, %", each.percent, MOST_IDLE_PERCENT) for each in idle]
    if soak is not None:
        bars.append(Bar("memory left per pod, bytes", soak.bytes_per_pod, MOST_GROWTH_BYTES_PER_POD))
        bars.append(Bar("soak: operator memory, MiB", max(soak.mib), MOST_MIB))
    return bars


def _judge_size(figures: Figures) -> list[Bar]:
    size = f"{figures.nodes} nodes, {figures.pods} pods"
    bars = []
    if figures.speed is not None and figures.tail is not None:
        least = least_speed(figures.nodes)
        bars.append(Bar(f"{size}: pods/s, ratio", figures.speed, least, at_least=True))
        bars.append(Bar(f"{size}: p99, ratio", figures.tail, LONGEST_TAIL))
    if figures.operator_mib is not None and figures.nodes <= MOST_MIB_UP_TO_NODES:
        bars.append(Bar(f"{size}: operator memory, MiB", figures.operator_mib, MOST_MIB))
    return bars
