"""What all first searches that are cut may take together."""

import pytest

from dovetail.core.allowance import (
    BRIEF_SECONDS,
    DEBT_SECONDS,
    MOST_SECONDS,
    RATE,
    SHORTEST_SECONDS,
    Allowance,
)


@pytest.mark.parametrize("per_second", [1, 4, 12])
def test_first_searches_that_are_cut_take_a_tenth_of_the_time(per_second: int) -> None:
    """However many there are, none takes more than it may when its turn comes."""
    allowance, lost = Allowance(), 0.0
    for number in range(100 * per_second):
        now = 1000 + number / per_second
        seconds = allowance.seconds(now)
        allowance.spend(seconds, now)
        lost += seconds

    assert lost <= 100 * RATE + MOST_SECONDS + SHORTEST_SECONDS


def test_a_few_in_a_row_are_tried_as_long_as_ever() -> None:
    """A burst is no reason to try the next ones shorter, until it has used what there was."""
    allowance, tried = Allowance(), []
    for _ in range(7):
        tried.append(allowance.seconds(0.0))
        allowance.spend(BRIEF_SECONDS, 0.0)

    assert tried[:4] == [BRIEF_SECONDS] * 4
    assert tried[-1] == SHORTEST_SECONDS


def test_what_was_lost_is_held_against_nobody_for_long() -> None:
    """A flood of any size is over a few seconds after it has ended."""
    allowance = Allowance()
    for _ in range(1000):
        allowance.spend(1.0, 0.0)

    assert allowance.seconds(0.0) == SHORTEST_SECONDS
    assert allowance.seconds((DEBT_SECONDS + BRIEF_SECONDS) / RATE + 0.1) == BRIEF_SECONDS
