"""How much work a decision may cost: steps, and a way to ask whether time is up."""

from collections.abc import Callable
from dataclasses import dataclass, field


class BudgetSpent(Exception):
    """The work was stopped, so nothing is known about the answer. Deliberately no DovetailError."""


def _never() -> bool:
    return False


@dataclass(slots=True)
class Budget:
    """Counts steps down and asks a clock that the caller brings, since the mind has none.

    `is_over` is asked every `CLOCK_EVERY` steps.
    One budget serves one decision; `spend` raises `BudgetSpent`.
    """

    CLOCK_EVERY = 256

    steps: int
    is_over: Callable[[], bool] = _never
    spent: int = field(default=0, init=False)
    _work: int = field(default=0, init=False)

    def spend(self, steps: int = 1) -> None:
        """Take steps from the budget."""
        before = self.spent
        self.spent = before + steps
        if self.spent > self.steps:
            raise BudgetSpent
        if before // self.CLOCK_EVERY != self.spent // self.CLOCK_EVERY and self.is_over():
            raise BudgetSpent

    def look(self, work: int = 1) -> None:
        """Time passes with work that is no step of a search: only the clock is asked now and then."""
        self._work += work
        if self._work >= self.CLOCK_EVERY:
            self._work = 0
            if self.is_over():
                raise BudgetSpent

    @classmethod
    def unlimited(cls) -> "Budget":
        """A budget that never runs out, for tests and small worlds."""
        return cls(steps=1 << 62)
