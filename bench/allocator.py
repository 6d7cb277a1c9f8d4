"""The allocator beside kube-scheduler's: `make bench-allocator`.

Both sides take the same steps in the same worlds, one thread each, in one run.
The oracle does for each pod what kube-scheduler does: a new allocator, then node after node
until 500 nodes fit or were tried.
Ours reads the claim, chooses among all nodes, and takes the result back in from JSON.
Figures go to `build/bench/allocator.json`; the exit status says whether the bars hold.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from bench.allocator_worlds import (
    GPU,
    NIC,
    World,
    churn_world,
    classes_of_run,
    list_world,
    matched_world,
    node_name,
    partition_world,
    preference_world,
    refusals,
    selected_world,
    single_world,
    slice_of,
    unique,
)
from dovetail.api.claims import DeviceClass, ResourceClaim
from dovetail.api.nodes import Node
from dovetail.api.slices import ResourceSlice
from dovetail.core.allocator import place
from dovetail.core.budget import Budget
from dovetail.core.cel import Environment, compile_selector
from dovetail.core.explain import explain
from dovetail.core.features import Features
from dovetail.core.inventory import Inventory
from dovetail.core.outcome import DoesNotFit, Fits
from e2e.harness.oracle import Oracle

ROOT: Final = Path(__file__).parent.parent
REPORT: Final = ROOT / "build" / "bench" / "allocator.json"

NODES: Final = 5_000
CLAIMS: Final = 1_000
CANDIDATES: Final = 500
"""kube-scheduler looks at 10 % of 5,000 nodes, and ends where so many fit."""

ORACLE_SECONDS: Final = 10.0
"""So long the oracle works on a world; what it did by then counts."""

TIMES_ORACLE: Final = 10.0
TIMES_TIMEOUT: Final = 1_000.0
ONE_NODE_MS: Final = 5.0
MANY_NODES_MS: Final = 50.0
MEMORY_MB: Final = 400.0
TIMES_OTHERS: Final = 1.5
"""How much more processor time a refusal may take than the others of the run do, by their median."""

REPEATS: Final = 8
"""So often a refusal is measured; other work on the machine disturbs single runs."""

GROWTH: Final = 3.0
"""How much slower a claim may be at 20,000 equal nodes than at 500."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per claim of one side; `first` is the first claim, for which everything is new."""

    claims: int
    fits: int
    mean: float
    p50: float
    p99: float
    first: float

    @classmethod
    def of(cls, seconds: Sequence[float], fits: int) -> Timing:
        """The figures of a run."""
        ranked = sorted(seconds)
        return cls(
            len(ranked),
            fits,
            sum(ranked) / len(ranked),
            ranked[len(ranked) // 2],
            ranked[int(len(ranked) * 0.99)],
            seconds[0],
        )


@dataclass(slots=True)
class Report:
    """All figures, and the bars that do not hold."""

    figures: Json = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)

    def note(self, name: str, figure: Json, line: str, *, holds: bool) -> None:
        """Take in one figure and print it."""
        self.figures[name] = figure
        print(f"{'ok  ' if holds else 'MISS'}  {name}: {line}", flush=True)
        if not holds:
            self.missed.append(name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything, or what begins with one of the arguments; 0 where all bars hold."""
    parser = argparse.ArgumentParser(prog="bench.allocator", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wanted", nargs="*", help="how the names of what to measure begin: '(a)', 'nodes'")
    wanted = tuple(parser.parse_args(arguments).wanted) or ("",)
    report = Report()
    # The grammar of CEL is read once in the life of a process, not per claim.
    compile_selector('device.driver == "a" && 1 >= 0', Environment())
    with Oracle(threads=1) as oracle:
        for name, make in _throughput().items():
            if name.startswith(wanted):
                _race(report, oracle, name, make())
        for amount, most_ms in ((1, ONE_NODE_MS), (NODES, MANY_NODES_MS)):
            if "(g)".startswith(wanted):
                spent = {
                    name: _refuse(report, oracle, f"(g) {name}, {amount} nodes", world, most_ms)
                    for name, world in refusals(amount).items()
                }
                _compare(report, f"(g) the dearest refusal, {amount} nodes", spent)
    if "nodes".startswith(wanted):
        _scale(report)
    if "memory".startswith(wanted):
        _memory(report)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps({"figures": report.figures, "missed": report.missed}, indent=1))
    return 1 if report.missed else 0


def _throughput() -> dict[str, Callable[[], World]]:
    return {
        "(a) 1 + 1 on one NUMA node": lambda: matched_world(NODES, CLAIMS, 1),
        "(b) 4 + 4 on one NUMA node": lambda: matched_world(NODES, CLAIMS, 4),
        "(c) 1 + 1 at 90 % with churn": lambda: churn_world(NODES, CLAIMS),
        "(d) NPS4 lists": lambda: list_world(NODES, CLAIMS),
        "(e) partitions by counters": lambda: partition_world(NODES, CLAIMS),
        "(f) prioritized list": lambda: preference_world(NODES, CLAIMS),
        "one GPU, no selector": lambda: single_world(NODES, CLAIMS),
        "one GPU, a selector": lambda: selected_world(NODES, CLAIMS),
    }


# -- one world, both sides -----------------------------------------------------------------------------


def _race(report: Report, oracle: Oracle, name: str, world: World) -> None:
    ours = _ours(world)
    theirs, _ = _theirs(oracle, world, feasible=CANDIDATES)
    first_fit, _ = _theirs(oracle, world, feasible=1)
    ratio, ratio_first_fit = theirs.mean / ours.mean, first_fit.mean / ours.mean
    figure = {
        "ours": asdict(ours),
        "oracle": asdict(theirs),
        "oracleFirstFit": asdict(first_fit),
        "timesOracle": ratio,
        "timesOracleFirstFit": ratio_first_fit,
    }
    line = (
        f"{_ms(ours.mean)} a claim (p50 {_ms(ours.p50)}, p99 {_ms(ours.p99)}, first {_ms(ours.first)}), "
        f"oracle {_ms(theirs.mean)}: {ratio:.0f} times its speed"
        f" ({ratio_first_fit:.0f} times where it stops at the first node that fits)"
    )
    report.note(
        name,
        figure,
        line,
        holds=ratio >= TIMES_ORACLE and ours.fits == ours.claims,
    )


def _ours(world: World) -> Timing:
    inventory, nodes = _load(world)
    gc.collect()
    seconds: list[float] = []
    held: dict[str, str] = {}
    fits = 0
    for step in world.steps:
        start = time.perf_counter()
        if "release" in step:
            inventory.drop_claim("bench", held.pop(step["release"]))
            seconds[-1] += time.perf_counter() - start
            continue
        (body,) = step["allocate"]
        outcome = place(inventory, [ResourceClaim.parse(body)], nodes, budget=Budget.unlimited())
        if isinstance(outcome, Fits):
            fits += 1
            allocated = {**body, "status": {"allocation": outcome.allocations[0].body}}
            inventory.put_claim(ResourceClaim.parse(allocated))
            held[step["name"]] = body["metadata"]["name"]
        seconds.append(time.perf_counter() - start)
    return Timing.of(seconds, fits)


def _theirs(oracle: Oracle, world: World, *, feasible: int) -> tuple[Timing, list[str]]:
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(world.as_json(), file)
        file.flush()
        answer = oracle.ask(
            "bench-allocation",
            features=list(world.features),
            file=file.name,
            candidates=CANDIDATES,
            feasible=feasible,
            budgetSeconds=ORACLE_SECONDS,
        )
    steps = answer["steps"]
    return Timing.of([s["seconds"] for s in steps], answer["fits"]), [s["outcome"] for s in steps]


def _load(world: World) -> tuple[Inventory, tuple[str, ...]]:
    gates = {gate: True for name in world.features for gate in name.split("+")}
    inventory = Inventory(Features.none().with_gates(gates))
    for node in world.nodes:
        inventory.put_node(Node.parse(node))
    for published in world.slices:
        inventory.put_slice(ResourceSlice.parse(published))
    for device_class in world.classes:
        inventory.put_class(DeviceClass.parse(device_class))
    for claim in world.allocated_claims:
        inventory.put_claim(ResourceClaim.parse(claim))
    names = tuple(node["metadata"]["name"] for node in world.nodes)
    for name in names:
        inventory.offers.state(name)
    return inventory, names


# -- refusals ------------------------------------------------------------------------------------------


def _compare(report: Report, name: str, spent: Mapping[str, float]) -> None:
    """The dearest refusal beside the others, by seconds of the processor."""
    dearest = max(spent, key=lambda each: spent[each])
    others = statistics.median(seconds for each, seconds in spent.items() if each != dearest)
    times = spent[dearest] / others
    line = f"{dearest}: {_ms(spent[dearest])} of the processor, the others {_ms(others)}: {times:.2f} times"
    figure = {"dearest": dearest, "seconds": spent[dearest], "othersSeconds": others, "timesOthers": times}
    report.note(name, figure, line, holds=times <= TIMES_OTHERS)


def _refuse(report: Report, oracle: Oracle, name: str, world: World, most_ms: float) -> float:
    """Note what a refusal costs; returns its seconds of the processor."""
    theirs, outcomes = _theirs(oracle, world, feasible=CANDIDATES)
    # Each run knows neither the claim nor its expressions; the quickest is the least disturbed.
    runs = [_refuse_ours(world, run) for run in range(REPEATS)]
    first = min(run.first for run in runs)
    again = min(run.again for run in runs)
    processor = min(run.processor for run in runs)
    timed_out = outcomes[0] == "timeout"
    ratio = theirs.mean / first
    # On a busy machine only the processor's time says what a refusal costs; the ratio is by the clock.
    holds = processor * 1000 < most_ms and (not timed_out or ratio >= TIMES_TIMEOUT)
    figure = {
        "firstSeconds": first,
        "firstProcessorSeconds": processor,
        "againSeconds": again,
        "oracleSeconds": theirs.mean,
        "oracle": outcomes[0],
        "timesOracle": ratio,
        "sentence": runs[0].sentence,
    }
    line = (
        f"{_ms(first)} ({_ms(processor)} of the processor), again {_ms(again)}; "
        f"oracle {outcomes[0]} after {_ms(theirs.mean)}: {ratio:.0f} times"
    )
    report.note(name, figure, line, holds=holds)
    return processor


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Seconds for the first refusal and for another one, and its sentence."""

    first: float
    processor: float
    again: float
    sentence: str


def _refuse_ours(world: World, run: int) -> _Refusal:
    (body,) = world.steps[0]["allocate"]
    inventory, nodes = _load(replace(world, classes=classes_of_run(run)))
    sentences = []

    def refuse() -> None:
        outcome = place(inventory, [ResourceClaim.parse(body)], nodes, budget=Budget.unlimited())
        assert isinstance(outcome, DoesNotFit)
        sentences.append(explain(outcome))

    gc.collect()
    first, processor = _seconds(refuse)
    again, _ = _seconds(refuse)
    return _Refusal(first, processor, again, sentences[0])


def _seconds(work: Callable[[], None]) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    start, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - used


# -- size ----------------------------------------------------------------------------------------------


def _scale(report: Report) -> None:
    """Time per claim over equal nodes: it must not grow with their number."""
    figures = {}
    for amount in (500, 1_000, 5_000, 20_000):
        figures[str(amount)] = asdict(_ours(matched_world(amount, CLAIMS, 1)))
    growth = figures["20000"]["p50"] / figures["500"]["p50"]
    each = ", ".join(f"{amount}: {_ms(figure['p50'])}" for amount, figure in figures.items())
    report.note("nodes", figures, f"p50 {each}; {growth:.1f} times", holds=growth <= GROWTH)


def _memory(report: Report) -> None:
    """What 80,000 devices take, each with an identity of its own, in a process that only holds them."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        empty, total = pool.map(_memory_of, (0, NODES))
    own = total - empty
    line = f"{total:.0f} MB for the process, {own:.0f} MB of it for 80,000 devices"
    report.note("memory", {"totalMB": total, "devicesMB": own}, line, holds=total < MEMORY_MB)


def _memory_of(amount: int) -> float:
    inventory = Inventory(Features())
    for node in range(amount):
        for driver in (GPU, NIC):
            published = slice_of(node, driver, 8, _unique(node))
            inventory.put_slice(ResourceSlice.parse(published))
    for index in range(amount):
        inventory.offers.state(node_name(index))
    return _peak_mb()


def _peak_mb() -> float:
    """The most memory that this process had; `getrusage` would count that of its parent as well."""
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return float(line.split()[1]) / 1024


def _unique(node: int) -> Callable[[int], Json]:
    return lambda number: unique(node, number, {"resource.kubernetes.io/numaNode": {"int": number // 4}})


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms"


if __name__ == "__main__":
    sys.exit(main())
