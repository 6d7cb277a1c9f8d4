"""The allocator answers as kube-scheduler's does, in worlds by chance, save for its known defects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from e2e.harness.oracle import Oracle
from tests.conformance.test_allocation_cases import answer, normal
from tests.support.cases import AllocationCase
from tests.support.enumerator import Judge
from tests.support.meanings import amount
from tests.support.wild_worlds import make_wild_world
from tests.support.worlds import make_world

Json = dict[str, Any]


Make = Callable[..., Json]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("make", "size", "worlds"),
    [(make_world, 1, 1_000), (make_world, 2, 200), (make_world, 3, 80), (make_wild_world, 1, 800)],
    ids=["small", "larger", "large", "wild"],
)
def test_outcome_and_devices_are_those_of_kube_scheduler(
    oracle: Oracle, make: Make, size: int, worlds: int
) -> None:
    """On every node of every world the outcome agrees, and so does the whole allocation where it fits."""
    cases = [case for seed in range(worlds) for case in _cases(make, seed, size) if not _is_defective(case)]
    outcomes: Counter[str] = Counter()

    answers = oracle.ask_all("allocation", [{**case.body, "timeoutSeconds": 1} for case in cases])

    for case, theirs in zip(cases, answers, strict=True):
        assert "fault" not in theirs, case.name
        outcomes[theirs["outcome"]] += 1
        if theirs["outcome"] != "timeout":
            assert answer(case) == normal(theirs), case.name
    assert min(outcomes["fits"], outcomes["doesNotFit"], outcomes["error"]) > len(cases) / 20
    assert outcomes["timeout"] < len(cases) / 50


def _cases(make: Make, seed: int, size: int) -> Iterator[AllocationCase]:
    """The world of a seed, seen from each of its nodes."""
    world = make(Random(seed * 10 + size), size=size)
    for node in world["nodes"]:
        name = f"seed {seed}, size {size}, {node['metadata']['name']}"
        yield AllocationCase(name, {**{k: v for k, v in world.items() if k != "nodes"}, "node": node})


def _is_defective(case: AllocationCase) -> bool:
    """Whether what is in use overdraws a counter or contradicts its groups (allocation-rules 2.15)."""
    judge = Judge(case.body, case.body["node"])
    return any(_overdrawn(judge, pool) or _contradictory(judge, pool) for pool in judge.sets)


def _in_use(judge: Judge, pool: tuple[str, str]) -> list[Any]:
    bodies = [
        (key, judge.body_of(key)) for key in judge.all_devices(pool) if key in judge.held or judge.shared[key]
    ]
    return [part for _, body in bodies for part in body.get("consumesCounters", ())]


def _overdrawn(judge: Judge, pool: tuple[str, str]) -> bool:
    used: dict[tuple[str, str], Any] = {}
    for part in _in_use(judge, pool):
        for name, counter in part["counters"].items():
            key = (part["counterSet"], name)
            used[key] = used.get(key, 0) + amount(counter["value"])
    return any(value > judge.sets[pool].get(key[0], {}).get(key[1], 0) for key, value in used.items())


def _contradictory(judge: Judge, pool: tuple[str, str]) -> bool:
    groups: dict[str, list[frozenset[str]]] = {}
    for part in _in_use(judge, pool):
        groups.setdefault(part["counterSet"], []).append(frozenset(part.get("compatibilityGroups", ())))
    return any(any(each) and not (all(each) and frozenset.intersection(*each)) for each in groups.values())
