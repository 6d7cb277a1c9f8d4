"""The allocator answers as kube-scheduler 1.37.2 does, exact devices included."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from dovetail.core.allocator import allocate
from dovetail.core.budget import Budget
from dovetail.core.outcome import DoesNotFit, Fits, RequestInvalid
from tests.support.cases import AllocationCase, read_allocation_cases

BETTER = json.loads((Path(__file__).parent / "better_than_upstream.json").read_text())
"""Cases in which our meaning is deliberately another, each with the reason."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per case of the folder."""
    cases = list(read_allocation_cases(metafunc.config.getoption("--cases")))
    metafunc.parametrize("case", cases, ids=[case.name for case in cases])


def test_the_answer_is_that_of_kube_scheduler(case: AllocationCase) -> None:
    """Outcome, devices and everything else of the result agree, and the inputs stay as they were."""
    if case.name in BETTER:
        pytest.skip(f"deliberately different: {BETTER[case.name]}")
    before = copy.deepcopy(case.body)

    outcome = answer(case)

    assert outcome == normal(case.body["expect"])
    assert case.body == before


def answer(case: AllocationCase) -> Any:
    """Our answer in the form of the file."""
    claims = case.claims()
    before = [claim.model_copy(deep=True) for claim in claims]
    try:
        found = allocate(case.inventory(), claims, case.node, budget=Budget.unlimited())
    except RequestInvalid:
        return {"outcome": "error"}
    assert claims == before
    if isinstance(found, DoesNotFit):
        return {"outcome": "error" if found.is_error else "doesNotFit"}
    assert isinstance(found, Fits)
    return normal({"outcome": "fits", "results": [dict(one.body) for one in found.allocations]})


def normal(expected: Any) -> Any:
    """The part of an answer that counts: share identities and the order of selector terms do not."""
    if expected["outcome"] != "fits":
        return {"outcome": expected["outcome"]}
    return {"outcome": "fits", "results": [_normal(result) for result in expected["results"]]}


def _normal(result: Any) -> Any:
    result = copy.deepcopy(result)
    result.pop("allocationTimestamp", None)
    devices = result.setdefault("devices", {}) or {}
    for device in devices.get("results") or ():
        if "shareID" in device:
            device["shareID"] = "any"
    for term in (result.get("nodeSelector") or {}).get("nodeSelectorTerms", ()):
        for requirements in term.values():
            requirements.sort(key=lambda requirement: json.dumps(requirement, sort_keys=True))
    return result
