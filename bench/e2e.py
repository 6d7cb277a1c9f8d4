"""From create to bound: Dovetail beside kube-scheduler alone, on the real control plane (`make bench-e2e`).

Every pod wants one GPU and one NIC on one NUMA node, by a claim generated from a template.
All pods are created at once; one watch tells when each is bound.
Every run has a control plane of its own, since what an earlier run leaves behind slows the next one down;
in each repetition the arms take turns, beginning with another one.
With `--native` kube-scheduler runs with native derived attributes too, on a plane whose feature gates are on.
The exit status is 0 where every bar that concerns the sizes holds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.e2e_arms import DOVETAIL, NATIVELY, SCHEDULER, Arm, build_world
from bench.e2e_bars import Bar, Figures, judge, summarize
from bench.e2e_run import Run, measure, operator_for
from bench.e2e_soak import Idle, Soak, idle, soak
from e2e.harness import Cluster, ControlPlane, HarnessError, Options
from e2e.harness.objects import ROOT

REPORT = ROOT / "build" / "bench" / "e2e.json"
SOAK_NODES = 100

REST_SECONDS = 8.0
"""Before the pods come everything has started: five seconds after its first lists Dovetail compares again."""

WIDE = 160
"""In a log the table keeps its rows whole."""

show = Console(width=None if sys.stdout.isatty() else WIDE)


@dataclass(frozen=True, slots=True)
class Size:
    """So many pods on so many nodes."""

    nodes: int
    pods: int

    @classmethod
    def parse(cls, text: str) -> Size:
        """Read `100/400`."""
        nodes, _, pods = text.partition("/")
        return cls(int(nodes), int(pods))


@dataclass(slots=True)
class Results:
    """All that was measured so far."""

    runs: list[Run] = field(default_factory=list)
    idle: list[Idle] = field(default_factory=list)
    soak: Soak | None = None


@dataclass(frozen=True, slots=True)
class Wishes:
    """What to measure."""

    sizes: tuple[Size, ...]
    repeat: int
    native: bool
    idle_seconds: float
    soak_pods: int
    output: Path


async def bench(wishes: Wishes) -> Results:
    """Measure everything, one run after another."""
    results = Results()
    arms = [SCHEDULER, DOVETAIL, *([NATIVELY] if wishes.native else [])]
    for size in wishes.sizes:
        for repetition in range(wishes.repeat):
            first = repetition % len(arms)
            is_last = repetition == wishes.repeat - 1
            for arm in (*arms[first:], *arms[:first]):
                await _run(arm, size, results, wishes.idle_seconds if is_last else 0)
    if wishes.soak_pods:
        await _soak(wishes.soak_pods, results)
    return results


async def _run(arm: Arm, size: Size, results: Results, idle_seconds: float) -> None:
    async with ControlPlane(Options(gates=arm.gates, audit=False)) as plane:
        cluster = Cluster(plane)
        await cluster.install()
        await build_world(cluster, size.nodes)
        async with operator_for(arm, cluster) as operator:
            await asyncio.sleep(REST_SECONDS)
            run = await measure(arm, cluster, size.nodes, size.pods, operator)
            show.print(
                f"{arm.title}: {run.pods_per_second:.1f} pods/s, p99 {run.p99_seconds:.1f} s", style="dim"
            )
            results.runs.append(run)
            if operator is not None and idle_seconds:
                results.idle.append(await idle(operator, size.nodes, idle_seconds))


async def _soak(pods: int, results: Results) -> None:
    async with ControlPlane(Options(audit=False)) as plane:
        cluster = Cluster(plane)
        await cluster.install()
        await build_world(cluster, SOAK_NODES)
        async with operator_for(DOVETAIL, cluster) as operator:
            if operator is not None:
                results.soak = await soak(cluster, operator, SOAK_NODES, pods)


def table_of(figures: Sequence[Figures]) -> Table:
    """The figures as a person reads them."""
    table = Table()
    for heading in ("nodes/pods", "who", "pods/s", "ratio", "p50 s", "p99 s", "ratio", "CPU ms/pod", "MiB"):
        table.add_column(heading, justify="left" if heading in {"who", "CPU ms/pod"} else "right")
    titles = {arm.name: arm.title for arm in (SCHEDULER, NATIVELY, DOVETAIL)}
    for each in figures:
        cpu = ", ".join(f"{name.removeprefix('kube-')} {ms:.0f}" for name, ms in each.cpu_ms_per_pod.items())
        table.add_row(
            f"{each.nodes}/{each.pods}",
            titles[each.arm],
            f"{each.pods_per_second:.1f}",
            f"{each.speed:.2f}" if each.speed is not None else "",
            f"{each.p50_seconds:.1f}",
            f"{each.p99_seconds:.1f}",
            f"{each.tail:.2f}" if each.tail is not None else "",
            cpu,
            f"{each.operator_mib:.0f}" if each.operator_mib is not None else "",
        )
    return table


def report(results: Results, wishes: Wishes) -> list[Bar]:
    """Print the table and the bars, and keep everything as JSON."""
    figures = summarize(results.runs)
    bars = judge(figures, results.idle, results.soak)
    show.print(table_of(figures))
    for bar in bars:
        show.print(str(bar), style="" if bar.holds else "bold red", highlight=False)
    wishes.output.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "figures": [asdict(each) for each in figures],
        "bars": [asdict(bar) | {"holds": bar.holds} for bar in bars],
        "runs": [asdict(run) for run in results.runs],
        "idle": [asdict(each) for each in results.idle],
        "soak": asdict(results.soak) | {"bytes_per_pod": results.soak.bytes_per_pod}
        if results.soak
        else None,
    }
    wishes.output.write_text(json.dumps(document, indent=2) + "\n")
    return bars


def completed(measuring: Coroutine[Any, Any, Results]) -> Results | None:
    """Run it to its end; where the control plane fails, say how, and give nothing."""
    results = None
    try:
        results = asyncio.run(measuring)
    except* HarnessError as errors:
        # What fails within a task group arrives as a group, in as many layers as there are groups.
        for error in _single(errors):
            show.print(str(error), style="bold red", markup=False)
    return results


def _single(error: BaseException) -> Iterator[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for inner in error.exceptions:
        yield from _single(inner)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, report, and judge."""
    parser = argparse.ArgumentParser(prog="bench.e2e", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=Size.parse, nargs="*", default=[Size(100, 400)], help="NODES/PODS …")
    parser.add_argument("--repeat", type=int, default=1, help="runs per size and arm; medians are judged")
    parser.add_argument(
        "--native", action="store_true", help="kube-scheduler with its own derived attributes"
    )
    parser.add_argument(
        "--idle", type=float, default=0, metavar="SECONDS", help="measure rest, once per size"
    )
    parser.add_argument("--soak", type=int, default=0, metavar="PODS", help="pods that come and go, in waves")
    parser.add_argument("--output", type=Path, default=REPORT, help="where the JSON goes")
    wish = parser.parse_args(arguments)
    wishes = Wishes(tuple(wish.sizes), wish.repeat, wish.native, wish.idle, wish.soak, wish.output)
    results = completed(bench(wishes))
    if results is None:
        return 2
    return 0 if all(bar.holds for bar in report(results, wishes)) else 1


if __name__ == "__main__":
    sys.exit(main())
