"""Claims and slices that are made to take for ever cost no more than a decision may."""

import pytest

from tests.support.hostile_worlds import SHAPES, measure


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_a_hostile_world_costs_no_more_than_its_budget(shape: str) -> None:
    """With 0.2 seconds for a decision, neither it nor taking in an object takes half a second or 200 MB."""
    assert (measured := measure(1, shape)).holds, measured


@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("seed", [2, 3])
def test_a_hostile_decision_ends_by_itself(shape: str, seed: int) -> None:
    """It looks at the clock often enough that nobody has to end it from outside."""
    assert (measured := measure(seed, shape)).decision != "CostsTooMuch", measured
