"""CEL gives the answers of cel-go on expressions that nobody thought of."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from e2e.harness.oracle import Oracle
from e2e.tests.differential import DIFFERENCES, MAX_BYTES, compare, compare_estimates, random_case, shortest
from tests.cel.test_corners import cases as corners
from tests.cel.test_estimates import ESTIMATES
from tests.support.cel_cases import CelCase, normal

EXAMPLES = 210
BATCH = 100


@pytest.mark.timeout(600)
def test_20000_random_expressions_have_the_answers_of_cel_go(oracle: Oracle) -> None:
    """Verdict, value and cost agree, from a fixed seed, and all kinds of verdicts occur often."""
    verdicts: Counter[str] = Counter()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(seed=st.integers(0, (1 << 64) - 1))
    def agree(seed: int) -> None:
        findings, counted = compare(oracle, Random(seed), BATCH)
        verdicts.update(counted)
        assert not findings, "\n" + "\n".join(map(str, shortest(findings)))

    agree()
    assert verdicts.total() >= 20_000
    assert min(verdicts["value"], verdicts["runtimeError"], verdicts["compileError"]) >= 2_000


ESTIMATED = 6_000


@pytest.mark.timeout(600)
def test_estimates_of_the_cost_at_worst_are_those_of_cel_go(oracle: Oracle) -> None:
    """So what Kubernetes refuses as too complex is refused here, and nothing else; both occur often."""
    random = Random(20_261)
    cases = [random_case(random) for _ in range(ESTIMATED)]
    cases = [case for case in cases if len(case.body["expression"].encode()) <= MAX_BYTES]
    found, verdicts = compare_estimates(oracle, cases)
    assert not found, "\n" + "\n".join(sorted(found, key=len)[:10])
    assert verdicts["refused"] > 200
    assert verdicts["taken"] > 2_000


def test_the_estimates_of_the_unit_tests_are_those_of_this_cel_go(oracle: Oracle) -> None:
    """What the tests without a control plane expect is what cel-go says."""
    gates = ["DRAConsumableCapacity", "DRAListTypeAttributes"]
    bodies = [
        {"driver": "d", "features": gates, "stored": True, "derived": True, "expression": expression}
        for expression in ESTIMATES
    ]
    found, verdicts = compare_estimates(oracle, [CelCase("", body) for body in bodies])
    assert not found
    assert verdicts.total() == len(ESTIMATES)


def test_differences_are_few() -> None:
    """At most ten differences are listed, each with a reason."""
    assert len(DIFFERENCES) <= 10
    assert all(difference.reason for difference in DIFFERENCES)


def test_the_corner_cases_are_those_of_this_cel_go(oracle: Oracle) -> None:
    """What the tests without a control plane expect is what cel-go says."""
    known = corners()
    answers = oracle.ask_all("cel", [case.body for case in known])
    stale = [
        (case.body["expression"], answer)
        for case, answer in zip(known, answers, strict=True)
        if "fault" not in answer and normal(answer, derived=True) != case.expected
    ]
    assert not stale
