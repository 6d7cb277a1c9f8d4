"""Words from tenants made fit for logs, conditions and events."""

import unicodedata
from typing import Any

MESSAGE_LIMIT = 1024
"""The longest message of an event; conditions get no longer ones either."""


def harmless(text: str) -> str:
    """The text without control and format characters, which could forge log lines or drive terminals."""
    return "".join(
        character if unicodedata.category(character)[0] != "C" else "\N{REPLACEMENT CHARACTER}"
        for character in text.replace("\n", " ")
    )


def sentence(text: str) -> str:
    """A harmless text that fits into a condition or event."""
    clean = harmless(text)
    return clean if len(clean) <= MESSAGE_LIMIT else clean[: MESSAGE_LIMIT - 1] + "…"


def harmless_value(value: Any) -> Any:
    """The same for every string of a logged value."""
    match value:
        case str():
            return harmless(value)
        case dict():
            return {harmless_value(key): harmless_value(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [harmless_value(item) for item in value]
        case _:
            return value
