"""Claims and slices that are made to take for ever cost no more than a decision may."""

import pytest

from dovetail.core.explain import explain
from dovetail.core.outcome import DoesNotFit
from dovetail.core.refusals import NodeStory
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


def test_a_node_without_time_for_its_story_is_told_of_all_the_same() -> None:
    """Nothing is known of its requests, so nothing is blamed: the sentence says that they do not fit."""
    story = NodeStory(("n",))

    assert not story.needs_blame
    assert "cannot all be satisfied together" in explain(DoesNotFit((story,), ()))
