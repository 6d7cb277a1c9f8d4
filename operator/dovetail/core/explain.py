"""Refusals in words: one sentence that names what stands in the way and what would help."""

from dovetail.core.outcome import DoesNotFit


def explain(refused: DoesNotFit) -> str:
    """One sentence, the same for the same causes: which attribute, driver, device or number, and what would help."""
    raise NotImplementedError
