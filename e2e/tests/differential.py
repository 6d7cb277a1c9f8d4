"""CEL beside cel-go on random expressions; `make fuzz-cel N=…` looks for differences.

Devices are those of `tests/data/slices`, and random ones.
Verdict, value and cost must agree.
"""

from __future__ import annotations

import argparse
import re
import secrets
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from typing_extensions import override

from dovetail.cli.yaml_documents import read_documents
from dovetail.core.cel import COST_LIMIT, prepared
from dovetail.core.cel.engine import compile_metered
from dovetail.errors import ExpressionInvalid
from e2e.harness.oracle import Oracle
from e2e.tests.expressions import Grammar
from e2e.tests.literals import TEXTS
from tests.support.cel_cases import CelCase, normal

SLICES: Final = Path(__file__).parents[2] / "tests" / "data" / "slices"
GATES: Final = ("DRAConsumableCapacity", "DRAListTypeAttributes")
MAX_BYTES: Final = 10_240

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where we deliberately, or for now, differ from cel-go: a pattern of the expression, and the reason."""

    expression: str
    reason: str


DIFFERENCES: Final = (
    Difference(
        r"quantity\(.*[eE][+-]?[0-9]{4,}",
        "a quantity with an exponent beyond 4,096 is refused: comparing it would take minutes",
    ),
    Difference(
        r"\.sort",
        "elements with equal sort keys keep their order; cel-go shuffles lists of more than 12 elements",
    ),
)
"""All of them, besides `device.name` and `device.pool`; none concerns an expression of a real driver.

Besides, an expression of more than 20,000 parts, a type of more than 1,000, a value of more than a million,
and a text of more than 10,000 characters that is read as a version or the like are refused here,
where cel-go takes as long, and as much memory, as it takes.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """An expression on which the two differ."""

    case: CelCase
    theirs: Json
    ours: Json

    @override
    def __str__(self) -> str:
        kind = "derived attribute" if self.case.body["derived"] else "selector"
        gates = "+".join(self.case.body["features"]) or "no gates"
        stored = ", stored" if self.case.body["stored"] else ""
        return (
            f"{kind} ({gates}{stored}): {self.case.body['expression']}\n"
            f"    cel-go: {self.theirs}\n    ours:   {self.ours}"
        )


@cache
def real_devices() -> tuple[Json, ...]:
    """The devices of all slices in `tests/data/slices`."""
    return tuple(_real_devices())


def _real_devices() -> Iterator[Json]:
    for path in sorted(SLICES.glob("*.yaml")):
        for document in read_documents(path.read_text()):
            body = document.value
            if isinstance(body, dict) and body.get("kind") == "ResourceSlice":
                for device in body["spec"].get("devices") or ():
                    yield _device(body["spec"]["driver"], device)


def _device(driver: str, device: Json) -> Json:
    return {
        "driver": driver,
        "attributes": device.get("attributes") or {},
        "capacity": {
            name: {"value": value["value"]} for name, value in (device.get("capacity") or {}).items()
        },
        "allowMultipleAllocations": device.get("allowMultipleAllocations"),
    }


def random_device(random: Random) -> Json:
    """A device with attributes of all types, some in a domain of another driver."""
    attributes: Json = {}
    for index in range(random.randrange(2, 9)):
        domain = random.choice(("", "", "other.example.com/", "resource.kubernetes.io/"))
        attributes[f"{domain}a{index}"] = _random_attribute(random)
    capacity = {
        f"c{index}": {"value": random.choice(("80Gi", "1500m", "0", "-1", "1e3", "2Ki"))}
        for index in range(random.randrange(3))
    }
    return {
        "driver": random.choice(("gpu.example.com", "dra.net", "d")),
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": random.choice((True, False, None)),
    }


def _random_attribute(random: Random) -> Json:
    kind = random.choice(("int", "bool", "string", "version"))
    if random.random() < 0.3:
        return {f"{kind}s": [_random_value(random, kind) for _ in range(random.randrange(1, 5))]}
    return {kind: _random_value(random, kind)}


def _random_value(random: Random, kind: str) -> Any:
    match kind:
        case "int":
            return random.choice((0, 1, 2, -1, 7, 64, 1 << 40))
        case "bool":
            return random.random() < 0.5
        case "version":
            return random.choice(("1.0.0", "0.1.2-rc.1", "580.126.20", "2.0.0+build.5"))
        case _:
            return random.choice([text for text in TEXTS if len(text.encode()) <= 64])


def random_case(random: Random) -> CelCase:
    """An expression with a device and gates."""
    device = random_device(random) if random.random() < 0.4 else random.choice(real_devices())
    features = [gate for gate in GATES if random.random() < 0.75]
    body: Json = {**device, "features": features, "stored": random.random() < 0.3, "derived": True}
    grammar = Grammar(random, CelCase("", body).environment, device)
    form = random.random()
    if form < 0.5:
        expression = grammar.about(random.choice(grammar.functions))
    elif form < 0.75:
        expression = grammar.attribute()
    else:
        expression, body["derived"] = grammar.selector(), False
    body["expression"] = expression
    return CelCase("random", body)


def compare(oracle: Oracle, random: Random, count: int) -> tuple[list[Finding], Counter[str]]:
    """Differences on so many random expressions, and how often cel-go gave which verdict."""
    cases = list(_short(random, count))
    answers = oracle.ask_all("cel", [case.body for case in cases])
    verdicts: Counter[str] = Counter()
    findings = []
    for case, answer in zip(cases, answers, strict=True):
        finding = judge(case, answer)
        verdicts[answer.get("outcome", "fault")] += 1
        if finding is not None:
            findings.append(finding)
    return findings, verdicts


def _short(random: Random, count: int) -> Iterator[CelCase]:
    while count:
        case = random_case(random)
        if len(case.body["expression"].encode()) <= MAX_BYTES:
            count -= 1
            yield case


def judge(case: CelCase, answer: Mapping[str, Any]) -> Finding | None:
    """The difference between an answer of cel-go and ours, if there is one.

    Where planning an expression makes cel-go panic, it has to be a compile error here.
    """
    theirs = (
        {"outcome": "compileError"}
        if "fault" in answer
        else normal(answer, derived=bool(case.body["derived"]))
    )
    ours = case.answer()
    if ours == theirs and theirs["outcome"] == "value":
        theirs, ours = {**theirs, "cost": answer["cost"]}, {**ours, "cost": cost(case)}
    return None if ours == theirs or is_known(case) else Finding(case, theirs, ours)


def compare_estimates(oracle: Oracle, cases: Sequence[CelCase]) -> tuple[list[str], Counter[str]]:
    """Where the cost at worst is estimated differently, and how many Kubernetes takes and refuses."""
    answers = oracle.ask_all("cel", [{**case.body, "compileOnly": True} for case in cases])
    found, verdicts = [], Counter[str]()
    for case, answer in zip(cases, answers, strict=True):
        if answer.get("outcome") != "compiles":
            continue
        try:
            theirs, ours = answer["maxCost"], case.compile().estimate
        except ExpressionInvalid:
            assert is_known(case), case.body["expression"]
            continue
        verdicts["refused" if theirs > COST_LIMIT else "taken"] += 1
        if ours != theirs:
            found.append(f"{case.body['expression']}\n    cel-go: {theirs}\n    ours:   {ours}")
    return found, verdicts


def cost(case: CelCase) -> int:
    """What the evaluation costs us."""
    program = compile_metered(case.body["expression"], case.environment, derived=bool(case.body["derived"]))
    return program.evaluate_with_cost(prepared(case.device()))[1]


def is_known(case: CelCase) -> bool:
    """Whether a listed difference explains this one."""
    return any(re.search(known.expression, case.body["expression"]) for known in DIFFERENCES)


def shortest(findings: Iterable[Finding], most: int = 10) -> Sequence[Finding]:
    """The findings with the shortest expressions: they are the easiest to understand."""
    return sorted(findings, key=lambda finding: len(finding.case.body["expression"]))[:most]


def main(argv: Sequence[str] | None = None) -> int:
    """Look for differences, from a seed that is told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(argv)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    random, findings, verdicts = Random(seed), [], Counter[str]()
    with Oracle() as oracle:
        for start in range(0, options.comparisons, 1000):
            more, counted = compare(oracle, random, min(1000, options.comparisons - start))
            findings += more
            verdicts += counted
    for finding in shortest(findings):
        print(finding)
    print(f"{len(findings)} differences in {verdicts.total()} comparisons: {dict(verdicts)}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
