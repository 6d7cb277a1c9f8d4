"""Sentences that fit into conditions and Events."""

from dovetail.api.text import harmless, harmless_value

__all__ = ["MESSAGE_LIMIT", "harmless", "harmless_value", "sentence"]

MESSAGE_LIMIT = 1024
"""The longest message of an event; conditions get no longer ones either."""


def sentence(text: str) -> str:
    """A harmless text that fits into a condition or event."""
    clean = harmless(text)
    return clean if len(clean) <= MESSAGE_LIMIT else clean[: MESSAGE_LIMIT - 1] + "…"
