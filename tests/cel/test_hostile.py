"""Nobody's expression costs anybody else more than its budget, whoever wrote it."""

import time
from random import Random

import pytest

from tests.cel.devices import device
from tests.cel.hostile import MOST_SECONDS, Worst, outcome, run
from tests.cel.hostile_grammar import GROWTH, LINKS, USES, Hostile

EXPRESSIONS = 600


@pytest.mark.timeout(900)
def test_no_hostile_expression_takes_more_than_its_budget() -> None:
    """Of the generated ones none takes half a second or 200 MB under a budget of 0.2 s, and each ends."""
    worst = Worst()
    run(4711, EXPRESSIONS, worst)
    assert worst.broken == []
    assert worst.outcomes.total() == EXPRESSIONS
    ended = worst.outcomes
    assert min(ended["value"], ended["refused"], ended["error"]) > 20
    assert ended["cut"] + ended["costs too much"] > 20


def test_a_run_finds_what_takes_too_long() -> None:
    """What breaks a limit is named with its figures."""
    worst = Worst()
    worst.add("slow", "cut", MOST_SECONDS + 0.1, 1)
    worst.add("large", "value", 0.1, 300)
    worst.add("wrong", "unforeseen", 0.1, 1)
    worst.add("good", "value", 0.1, 1)
    assert [broken.rpartition(": ")[2] for broken in worst.broken] == ["slow", "large", "wrong"]


def test_the_budget_of_a_run_ends_an_evaluation() -> None:
    """Seconds of CPU time are asked for."""
    expression = "lists.range(900).all(x, lists.range(900).exists(y, x == y + 1000) || true)"
    assert min(seconds_of(expression) for _ in range(5)) < 0.2


def seconds_of(expression: str) -> float:
    """The CPU time that the expression takes under a budget of 0.05 s, which it does not keep by itself."""
    started = time.process_time()
    assert outcome(expression, [device()], 0.05) == "cut"
    return time.process_time() - started


def test_the_same_seed_writes_the_same_expressions() -> None:
    """A finding can be had again."""
    first, second = Hostile(Random(5)), Hostile(Random(5))
    assert [first.expression() for _ in range(20)] == [second.expression() for _ in range(20)]
    assert set(GROWTH) == set(USES)
    assert LINKS
