"""The allocator's answers are those of a slow judge that tries everything, on small worlds by chance."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from dovetail.core.allocator import allocate, place
from dovetail.core.budget import Budget
from dovetail.core.outcome import Cut, DoesNotFit, Fits, RequestInvalid
from tests.support.cases import AllocationCase
from tests.support.enumerator import Judge, Seat, TooLarge, Wish, wishes_of
from tests.support.worlds import make_world

WORLDS = 3_000

SETTINGS = settings(
    max_examples=WORLDS,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.timeout(1800)
@SETTINGS
@given(st.integers(0, 2**48))
def test_the_first_solution_is_found_on_each_node_and_the_best_over_all(seed: int) -> None:
    """Each node's answer is the first of all solutions, or no; over nodes score decides, then the order."""
    world = make_world(Random(seed))
    case = AllocationCase(f"seed {seed}", {**world, "node": world["nodes"][0]})
    inventory, claims = case.inventory(world["nodes"]), case.claims()
    answers: dict[str, int | None] = {}
    wrong = False

    for node in world["nodes"]:
        name, judge = node["metadata"]["name"], Judge(world, node)
        try:
            outcome = allocate(inventory, claims, name, budget=Budget.unlimited())
        except RequestInvalid:
            assert may_be_wrong(judge)
            wrong = True
            continue
        answers[name] = compare(judge, outcome)

    nodes = tuple(node["metadata"]["name"] for node in world["nodes"])
    if not wrong:
        chosen = place(inventory, claims, nodes, budget=Budget.unlimited())
        scores = {name: score for name, score in answers.items() if score is not None}
        best = max(scores, key=lambda name: (scores[name], -nodes.index(name)), default=None)
        assert (chosen.node if isinstance(chosen, Fits) else None) == best


def compare(judge: Judge, outcome: Fits | DoesNotFit | Cut) -> int | None:
    """Hold an answer against the judge's; the score, or None where nothing fits."""
    assert not isinstance(outcome, Cut)
    if isinstance(outcome, DoesNotFit) and outcome.is_error:
        assert may_be_wrong(judge)
        return None
    try:
        first = next(judge.solutions(), None)
    except TooLarge:
        reject()
    if isinstance(outcome, DoesNotFit):
        assert first is None
        return None
    assert first is not None
    seats = seats_of(outcome)
    assert judge.violations(seats, wishes_by_name(judge)) == []
    assert seats == first[0]
    return outcome.score


def seats_of(outcome: Fits) -> list[Seat]:
    """The devices of an answer in the judge's form."""
    return [
        Seat(index, result["request"], (result["driver"], result["pool"], result["device"]))
        for index, allocation in enumerate(outcome.allocations)
        for result in allocation.body["devices"].get("results", ())
    ]


def wishes_by_name(judge: Judge) -> Mapping[tuple[int, str], Wish]:
    """Every request and alternative of the world."""
    return {(wish.claim, wish.name): wish for wish in wishes(judge)}


def wishes(judge: Judge) -> Sequence[Wish]:
    """Every request and alternative of the world, in order."""
    return [
        wish
        for index, claim in enumerate(judge.claims)
        for request in claim["spec"]["devices"]["requests"]
        for wish in wishes_of(index, request)
    ]


def may_be_wrong(judge: Judge) -> bool:
    """Whether the rules call something about these claims an error (allocation-rules 2.2, 2.3)."""
    return any(_needs_gate(judge, wish) or _all_may_fail(judge, wish) for wish in wishes(judge))


def _needs_gate(judge: Judge, wish: Wish) -> bool:
    needed: dict[str, Any] = {
        "DRAPrioritizedList": "/" in wish.name,
        "DRAConsumableCapacity": wish.body.get("capacity"),
        "DRADerivedAttributes": wish.body.get("derivedAttributes"),
        "DRAAdminAccess": "adminAccess" in wish.body,
    }
    return any(used and gate not in judge.gates for gate, used in needed.items())


def _all_may_fail(judge: Judge, wish: Wish) -> bool:
    constraints = judge.claims[wish.claim]["spec"]["devices"]["constraints"]
    return judge.wanted(wish) is None and (judge.unusable or bool(constraints))
