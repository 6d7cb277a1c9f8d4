"""How much time all first searches that are cut may take together, and how long a first search may be.

One pod cannot be told from another before its search; so what is limited is what they lose together,
however many pods and namespaces there are.
"""

BRIEF_SECONDS = 0.1
"""So much CPU time a first search may take: of usual ones few take a hundredth."""

SHORTEST_SECONDS = 0.008
"""So much it may take while the allowance is spent: usual ones take less than half."""

RATE = 0.1
"""The part of the time that first searches that are cut may take."""

MOST_SECONDS = 0.5
"""What may be lost at once, after a time without any."""

DEBT_SECONDS = 1.0
"""More than so much is never held against those who come later."""


class Allowance:
    """Seconds that are filled up by the clock and spent by what is cut; `now` never goes back."""

    def __init__(self) -> None:
        self._left = MOST_SECONDS
        self._at = 0.0

    def spend(self, seconds: float, now: float) -> None:
        """A first search was cut after so long."""
        self._left = max(self._left_at(now) - seconds, -DEBT_SECONDS)
        self._at = now

    def is_spent(self, now: float) -> bool:
        """Whether there is not enough for another search of `BRIEF_SECONDS`."""
        return self._left_at(now) < BRIEF_SECONDS

    def seconds(self, now: float) -> float:
        """How much CPU time a first search may take now."""
        return SHORTEST_SECONDS if self.is_spent(now) else BRIEF_SECONDS

    def _left_at(self, now: float) -> float:
        return min(self._left + max(now - self._at, 0.0) * RATE, MOST_SECONDS)
