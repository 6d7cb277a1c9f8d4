"""CEL beside cel-go: `make bench-cel`.

80,000 devices of 5,000 nodes, real shapes, under ten expressions that users and drivers write.
The oracle does the same work in the same run, on one processor, with what kube-scheduler uses.
Figures go to `build/bench/cel.json`; the exit status says whether the bars of `BARS` hold.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from dovetail.api.slices import ResourceSlice
from dovetail.cli.yaml_documents import read_documents
from dovetail.core.cel import Environment, Memory, compile_selector
from dovetail.core.cel.engine import forget_compiled
from dovetail.core.devices import DeviceView
from dovetail.core.published import Reader
from dovetail.core.values import AttributeValue, DeviceKey, Kind
from dovetail.errors import ExpressionInvalid
from e2e.harness.oracle import Oracle
from tests.support.cel_cases import read_cel_cases

ROOT: Final = Path(__file__).parent.parent
SLICES: Final = ROOT / "tests" / "data" / "slices"
REPORT: Final = ROOT / "build" / "bench" / "cel.json"

NODES: Final = 5_000
PER_SLICE: Final = 8
SHAPES: Final = (
    ("dgx-h100__gpu-nvidia__main.yaml", "dgx-h100__dranet__main.yaml"),
    ("amd-mi300x__gpu-amd__2026-04.yaml", "amd-mi300x__dranet__v1.4.yaml"),
)
UNIQUE: Final = frozenset(("uuid", "dra.net/mac", "dra.net/ipv4"))
"""Attributes that differ from node to node."""

FEATURES: Final = ("DRAConsumableCapacity", "DRAListTypeAttributes")
ENVIRONMENT: Final = Environment(consumable_capacity=True, list_type_attributes=True)

EXPRESSIONS: Final = (
    'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"',
    'device.driver == "gpu.amd.com" && device.attributes["gpu.amd.com"].type == "amdgpu"',
    'device.driver == "dra.net" && device.attributes["dra.net"].rdma',
    (
        'has(device.attributes["resource.kubernetes.io"].numaNode)'
        ' && device.attributes["resource.kubernetes.io"].numaNode == 0'
    ),
    'device.attributes["gpu.amd.com"].?numaNode.orValue(-1) == 1',
    (
        'device.driver == "gpu.nvidia.com"'
        ' && device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0'
    ),
    (
        'cel.bind(gpu, device.attributes["gpu.nvidia.com"],'
        ' has(gpu.productName) && gpu.productName.lowerAscii().matches("^.*h100.*$"))'
    ),
    'has(device.attributes["dra.net"].ifName) && device.attributes["dra.net"].ifName.startsWith("rail")',
    (
        'has(device.attributes["gpu.nvidia.com"].driverVersion)'
        ' && device.attributes["gpu.nvidia.com"].driverVersion.isGreaterThan(semver("570.0.0"))'
    ),
    'device.attributes["resource.kubernetes.io"].?pcieRoot.orValue("").startsWith("pci0000:")',
)

SINGLE: Final = (
    'device.attributes["gpu.example.com"].model == "H100" && device.attributes["gpu.example.com"].numa == 1'
)

DRIVERS: Final = ROOT / "tests" / "data" / "cel" / "drivers.json"
"""The expressions of real drivers, with a device each."""

BARS: Final = {
    "cold_times_oracle": 1.0,
    "warm_times_oracle": 50.0,
    "single_of_oracle": 3.0,
    "first_milliseconds": 20.0,
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure and its bar."""

    name: str
    value: float
    bar: float
    at_least: bool

    @property
    def holds(self) -> bool:
        """Whether the figure is on the good side of its bar."""
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def line(self) -> str:
        """The figure in words."""
        sign = "at least" if self.at_least else "at most"
        return f"{self.name}: {self.value:.2f} ({sign} {self.bar:g}) {'holds' if self.holds else 'FAILS'}"


def published() -> Iterator[dict[str, Any]]:
    """The slices of the cluster."""
    for node in range(NODES):
        for file in SHAPES[node % len(SHAPES)]:
            yield _on_node(_template(file), node)


_TEMPLATES: dict[str, dict[str, Any]] = {}


def _template(file: str) -> dict[str, Any]:
    if file not in _TEMPLATES:
        documents = (document.value for document in read_documents((SLICES / file).read_text()))
        found = next(document for document in documents if document["kind"] == "ResourceSlice")
        found["spec"]["devices"] = found["spec"]["devices"][:PER_SLICE]
        _TEMPLATES[file] = found
    return _TEMPLATES[file]


def _on_node(template: dict[str, Any], node: int) -> dict[str, Any]:
    made = copy.deepcopy(template)
    name = f"node-{node:05d}"
    made["metadata"] = {"name": f"{name}-{made['spec']['driver']}"}
    made["spec"] |= {"nodeName": name, "pool": made["spec"]["pool"] | {"name": name}}
    for device in made["spec"]["devices"]:
        for attribute, value in device["attributes"].items():
            if attribute in UNIQUE:
                value["string"] = f"{node:05d}-{value['string']}"[:64]
    return made


Groups = list[tuple[DeviceView, ...]]


def views(slices: Sequence[dict[str, Any]]) -> Groups:
    """The devices of each slice, as the operator reads them."""
    reader = Reader()
    contents = [reader.read(ResourceSlice.parse(body)).content for body in slices]
    return [tuple(device.view for device in content.devices) for content in contents]


def evaluate(groups: Groups, memory: Memory) -> int:
    """Every expression on every device; the number of matches."""
    found = 0
    for expression in EXPRESSIONS:
        program = compile_selector(expression, ENVIRONMENT)
        for group in groups:
            found += memory.matching(program, group).mask.bit_count()
    return found


def timed_evaluation(groups: Groups, memory: Memory) -> tuple[float, int]:
    """Seconds, and the number of matches."""
    gc.collect()
    start = time.perf_counter()
    found = evaluate(groups, memory)
    return time.perf_counter() - start, found


def oracle_world(oracle: Oracle, path: Path) -> float:
    """Seconds that the oracle takes for the same work."""
    answer = oracle.ask("bench-cel", {"features": FEATURES, "file": str(path)})
    return float(answer["compileSeconds"] + answer["evaluateSeconds"])


def single_seconds(rounds: int = 100_000) -> float:
    """Seconds of one evaluation without the memory of results."""
    program = compile_selector(SINGLE, ENVIRONMENT)
    attributes = {
        "gpu.example.com/model": AttributeValue(Kind.STRING, ("H100",)),
        "gpu.example.com/numa": AttributeValue(Kind.INT, (1,)),
    }
    device = DeviceView(DeviceKey("gpu.example.com", "pool", "gpu-0"), attributes)
    assert program.matches(device) is True
    start = time.perf_counter()
    for _ in range(rounds):
        program.matches(device)
    return (time.perf_counter() - start) / rounds


def oracle_single(oracle: Oracle) -> float:
    """Seconds of the same evaluation by cel-go."""
    request = {
        "features": FEATURES,
        "expression": SINGLE,
        "driver": "gpu.example.com",
        "attributes": {"model": {"string": "H100"}, "numa": {"int": 1}},
        "iterations": 100_000,
    }
    return float(oracle.ask("bench-cel", request)["nsPerEvaluation"]) / 1e9


def first_milliseconds() -> float:
    """The slowest first evaluation of an expression of a real driver, compilation included.

    In processor time: a single wall-clock sample mostly shows who else wanted the machine.
    """
    compile_selector("true", ENVIRONMENT)
    slowest = 0.0
    for case in read_cel_cases(DRIVERS.parent):
        device = case.device()
        forget_compiled()
        start = time.process_time()
        with suppress(ExpressionInvalid):
            program = case.compile()
            _ = program.derive(device) if case.body["derived"] else program.matches(device)
        slowest = max(slowest, (time.process_time() - start) * 1000)
    return slowest


def measure(oracle: Oracle, rounds: int = 3) -> dict[str, float]:
    """All figures, in seconds."""
    slices = list(published())
    groups = views(slices)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "world.json"
        path.write_text(json.dumps({"slices": slices, "expressions": EXPRESSIONS}))
        slow = [oracle_world(oracle, path) for _ in range(rounds)]
    memory = Memory()
    cold, found = timed_evaluation(groups, memory)
    warm = []
    for _ in range(rounds):
        groups[len(groups) // 2] = views([slices[len(slices) // 2]])[0]
        seconds, again = timed_evaluation(groups, memory)
        assert again == found
        warm.append(seconds)
    return {
        "devices": sum(map(len, groups)),
        "matches": found,
        "oracle": median(slow),
        "cold": cold,
        "warm": median(warm),
        "single": median(single_seconds() for _ in range(5)),
        "oracle_single": median(oracle_single(oracle) for _ in range(5)),
        "first_milliseconds": first_milliseconds(),
    }


def figures(measured: dict[str, float]) -> list[Figure]:
    """The figures with bars."""
    return [
        Figure("cold_times_oracle", measured["oracle"] / measured["cold"], BARS["cold_times_oracle"], True),
        Figure("warm_times_oracle", measured["oracle"] / measured["warm"], BARS["warm_times_oracle"], True),
        Figure(
            "single_of_oracle",
            measured["single"] / measured["oracle_single"],
            BARS["single_of_oracle"],
            False,
        ),
        Figure("first_milliseconds", measured["first_milliseconds"], BARS["first_milliseconds"], False),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, report, judge."""
    description = (__doc__ or "").partition("\n")[0]
    argparse.ArgumentParser(prog="bench.cel", description=description).parse_args(arguments)
    with Oracle(threads=1) as oracle:
        measured = measure(oracle)
    judged = figures(measured)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    report = measured | {figure.name: figure.value for figure in judged}
    REPORT.write_text(json.dumps(report | {"bars": BARS}, indent=2) + "\n")
    for name, value in measured.items():
        print(f"{name}: {value:.6g}")
    for figure in judged:
        print(figure.line())
    return 0 if all(figure.holds for figure in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
