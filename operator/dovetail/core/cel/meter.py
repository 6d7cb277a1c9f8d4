"""What one evaluation may cost: cel-go's units, steps of work that these units do not tell, and bytes.

All three are taken from the budget of the decision, too.
A step is some microseconds at most, so that whoever asks for the time every few hundred steps is answered.
"""

from collections.abc import Iterable, Iterator, Sequence
from sys import getsizeof
from typing import Final, TypeVar

from dovetail.core.budget import Budget
from dovetail.core.cel.values import CostExceeded

LIMIT: Final = 1_000_000
"""CELSelectorExpressionMaxCost: beyond it the evaluation is an error."""

MAX_WORK: Final = 300_000
"""Steps of work in one evaluation: values looked at, characters read, elements compared.

What cel-go's units allow stays below, but for values within values that grow with every level.
"""

MAX_BYTES: Final = 50_000_000
"""Bytes that one evaluation may build."""

MAX_SIZE: Final = 1_000_000
"""Characters or elements that one value may have."""

MAX_READ: Final = 10_000
"""Characters of a text that is read as something else: a version, a quantity, an address, a URL, a time."""

AT_ONCE: Final = 1024
"""So many elements are gone through without asking for the time: a millisecond at most."""

T = TypeVar("T")


class Meter:
    """Adds up what one evaluation costs, and lets the budget of the decision end it.

    Every method raises CostExceeded where the evaluation costs too much, and BudgetSpent.
    """

    __slots__ = ("budget", "built", "cost", "work")

    def __init__(self, budget: Budget | None = None) -> None:
        self.cost = 0
        self.work = 0
        self.built = 0
        self.budget = budget

    def charge(self, cost: int) -> None:
        """Add to the cost in cel-go's units."""
        self.cost += cost
        if self.cost > LIMIT:
            raise CostExceeded
        if self.budget is not None:
            self.budget.spend()

    def spend(self, steps: int = 1) -> None:
        """Add steps of work, before they are done."""
        self.work += steps
        if self.work > MAX_WORK:
            raise CostExceeded("it costs too much: it takes too many steps")
        if self.budget is not None:
            self.budget.spend(steps)

    def each(self, values: Sequence[T]) -> Iterable[T]:
        """The elements, one after another; the time is asked for on the way where they are many."""
        if len(values) > AT_ONCE:
            return self._in_parts(values)
        self.elements(len(values))
        return values

    def _in_parts(self, values: Sequence[T]) -> Iterator[T]:
        for start in range(0, len(values), AT_ONCE):
            part = values[start : start + AT_ONCE]
            self.elements(len(part))
            yield from part

    def elements(self, count: int) -> None:
        """So many elements are about to be looked at, each for a moment."""
        self.spend(1 + (count >> 3))

    def characters(self, count: int) -> None:
        """So many characters are about to be gone through at the speed of C."""
        self.spend(1 + (count >> 10))

    def read(self, text: str) -> None:
        """The text is about to be read character by character."""
        if len(text) > MAX_READ:
            raise CostExceeded(f"it costs too much: it reads a text of more than {MAX_READ} characters")
        self.spend(1 + (len(text) >> 3))

    def build(self, size: int, each: int = 8) -> None:
        """A value of so many elements, or characters, is about to be built."""
        if size > MAX_SIZE:
            raise CostExceeded(f"it costs too much: it builds a value of more than {MAX_SIZE} parts")
        self.built += size * each
        if self.built > MAX_BYTES:
            raise CostExceeded(f"it costs too much: it builds more than {MAX_BYTES} bytes")
        self.spend(1 + (size >> 8))

    def holding(self, value: T) -> T:
        """A text, bytes or list that was built, its memory counted."""
        self.built += getsizeof(value)
        if self.built > MAX_BYTES:
            raise CostExceeded(f"it costs too much: it builds more than {MAX_BYTES} bytes")
        return value
