"""The oracle gives the answers that were read off kube-scheduler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.harness.objects import ROOT
from e2e.harness.oracle import Answer, Oracle, OracleFault

CASES = ROOT / "tests" / "data" / "cases"

Case = dict[str, Any]


def given(case: Case) -> Case:
    """The input of a case."""
    return {key: value for key, value in case.items() if key != "expect"}


def without_share_ids(value: object) -> object:
    """The same answer with every shareID alike: they are made at random."""
    match value:
        case dict():
            return {
                key: "any" if key == "shareID" else without_share_ids(part) for key, part in value.items()
            }
        case list():
            return [without_share_ids(part) for part in value]
        case _:
            return value


def chosen(answer: Answer, expected: Case) -> object:
    """The fields of an answer that a case speaks of, its informative text aside."""
    return without_share_ids({key: answer.get(key) for key in expected if key != "error"})


def expectation(case: Case) -> object:
    """What a case says of the answer, its informative text aside."""
    return without_share_ids({key: value for key, value in case["expect"].items() if key != "error"})


def test_every_cel_case_gets_the_given_answer(oracle: Oracle) -> None:
    """The CEL half gives value, match, worst cost and kind of error of all given cases."""
    cases: list[Case] = json.loads((CASES / "cel" / "cases.json").read_text())
    requests = [given(case) | {"compileOnly": case["expect"]["outcome"] == "compiles"} for case in cases]

    answers = oracle.ask_all("cel", requests)

    wrong = [
        (case["name"], chosen(answer, case["expect"]), expectation(case))
        for case, answer in zip(cases, answers, strict=True)
        if chosen(answer, case["expect"]) != expectation(case)
    ]
    assert len(cases) >= 294
    assert wrong == []


def allocation_cases() -> list[Path]:
    """One file per case."""
    return sorted((CASES / "allocation").glob("*.json"))


def test_every_allocation_case_gets_the_given_answer(oracle: Oracle) -> None:
    """The allocation half gives outcome and devices of all given cases."""
    cases: list[Case] = [json.loads(path.read_text()) for path in allocation_cases()]

    answers = oracle.ask_all("allocation", [given(case) for case in cases])

    wrong = [
        (case["name"], chosen(answer, case["expect"]), expectation(case))
        for case, answer in zip(cases, answers, strict=True)
        if chosen(answer, case["expect"]) != expectation(case)
    ]
    assert len(cases) >= 182
    assert wrong == []


def test_a_search_that_takes_too_long_is_a_timeout(oracle: Oracle) -> None:
    """A claim that makes the search explode is answered within the time that was given."""
    devices = [{"name": f"d{number}"} for number in range(31)]
    request = claim_world(devices, {"count": 32})

    answer = oracle.ask("allocation", request, timeoutSeconds=0.2)

    assert answer["outcome"] == "timeout"
    assert answer["seconds"] < 5


def claim_world(devices: list[Case], wish: Case) -> Case:
    """One node, one pool, one claim."""
    node = {"metadata": {"name": "n"}}
    spec = {"driver": "d", "nodeName": "n", "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}}
    request = {"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount"} | wish}
    return {
        "node": node,
        "claims": [{"metadata": {"name": "claim"}, "spec": {"devices": {"requests": [request]}}}],
        "classes": [{"metadata": {"name": "c"}, "spec": {}}],
        "slices": [{"metadata": {"name": "s"}, "spec": spec | {"devices": devices}}],
        "features": [],
    }


def test_a_request_that_cannot_be_read_harms_no_other(oracle: Oracle) -> None:
    """A malformed request is answered as a fault, and the next one is served."""
    with pytest.raises(OracleFault, match="unknown features"):
        oracle.ask("allocation", claim_world([], {"count": 1}), features=["NoSuchGate"])

    assert oracle.ask("cel", expression="true", driver="d")["match"] is True


def test_a_bench_keeps_devices_in_use_until_they_are_released(oracle: Oracle, tmp_path: Path) -> None:
    """Two pods want the only device: the second gets it after the first gave it back."""
    world = claim_world([{"name": "only"}], {"count": 1})
    claims = world.pop("claims")
    steps = [
        {"name": "a", "allocate": claims},
        {"name": "b", "allocate": claims},
        {"release": "a"},
        {"name": "c", "allocate": claims},
    ]
    file = tmp_path / "world.json"
    file.write_text(json.dumps(world | {"nodes": [world["node"]], "steps": steps}))

    answer = oracle.ask("bench-allocation", file=str(file), placements=True)

    assert [step["outcome"] for step in answer["steps"]] == ["fits", "doesNotFit", "fits"]
    assert answer["steps"][2]["results"][0]["devices"]["results"][0]["device"] == "only"
    assert (answer["fits"], answer["doesNotFit"]) == (2, 1)


def test_a_cel_bench_evaluates_every_expression_on_every_device(oracle: Oracle, tmp_path: Path) -> None:
    """Each expression is compiled once and evaluated per device; failures are counted, not raised."""
    world = claim_world([{"name": "a", "attributes": {"x": {"int": 1}}}, {"name": "b"}], {"count": 1})
    expressions = ['device.driver == "d"', 'device.attributes["d"].x == 1']
    file = tmp_path / "world.json"
    file.write_text(json.dumps({"slices": world["slices"], "expressions": expressions}))

    answer = oracle.ask("bench-cel", file=str(file))

    assert (answer["devices"], answer["evaluations"], answer["values"], answer["errors"]) == (2, 4, 3, 1)
