"""What compiling one expression may cost."""

from typing import Final

from dovetail.core.budget import Budget

MAX_STEPS: Final = 400_000
"""Steps of compiling one expression: tokens, nodes, and types compared. The longest that makes sense
takes a tenth of this."""


class TooLarge(ValueError):
    """An expression, or a type in it, is larger or deeper than is worked on. The message says what."""


class Effort:
    """Counts the steps of compiling one expression, and takes them from the budget of the decision."""

    __slots__ = ("_left", "budget")

    def __init__(self, budget: Budget | None = None, steps: int = MAX_STEPS) -> None:
        self.budget = budget
        self._left = steps

    def spend(self, steps: int = 1) -> None:
        """Take steps; raises TooLarge when none are left, and BudgetSpent."""
        self._left -= steps
        if self._left < 0:
            raise TooLarge("it is too large: checking it takes too many steps")
        if self.budget is not None:
            self.budget.spend(steps)
