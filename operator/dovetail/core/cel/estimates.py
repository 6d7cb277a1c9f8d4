"""Ranges of sizes and costs, with the arithmetic of cel-go: 64 bits without a sign, and no overflow."""

import math
from dataclasses import dataclass
from typing import Final

LARGEST: Final = (1 << 64) - 1


def _bounded(number: int) -> int:
    return min(number, LARGEST)


def _scaled(number: int, factor: float) -> int:
    amount = float(number)
    if amount > 0 and factor > 0 and amount > LARGEST / factor:
        return LARGEST
    return _bounded(math.ceil(amount * factor))


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the most that a size or a cost can be."""

    least: int
    most: int

    def __add__(self, other: "Range") -> "Range":
        return Range(_bounded(self.least + other.least), _bounded(self.most + other.most))

    def __mul__(self, other: "Range") -> "Range":
        return Range(_bounded(self.least * other.least), _bounded(self.most * other.most))

    def scaled(self, factor: float) -> "Range":
        """So many times as much, rounded up."""
        return Range(_scaled(self.least, factor), _scaled(self.most, factor))

    def __or__(self, other: "Range") -> "Range":
        """The range that holds both."""
        return Range(min(self.least, other.least), max(self.most, other.most))


def exactly(number: int) -> Range:
    """A range of one number."""
    return Range(number, number)


def wrapped(number: int) -> int:
    """The lower 64 bits, where cel-go does not look for an overflow."""
    return number & LARGEST


UNKNOWN: Final = Range(0, LARGEST)
NOTHING: Final = exactly(0)
ONE: Final = exactly(1)
EMPTY: Final = Range(LARGEST, 0)
"""What `|` begins with."""


@dataclass(frozen=True, slots=True)
class Entries:
    """The sizes of what a list or map holds."""

    kind: str
    key: Range
    value: Range

    def joined(self, other: "Entries | None") -> "Entries | None":
        """Sizes for both; None where one is not known."""
        if other is None:
            return None
        return Entries(self.kind, self.key | other.key, self.value | other.value)
