"""Words from tenants made fit for terminals, logs, conditions and Events: what cannot be seen is shown."""

import json
import re
import unicodedata
from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Letters, marks and symbols that leave no trace, which Unicode does not count among control characters."""


def is_seen(character: str) -> bool:
    """Whether a character shows itself where it stands.

    Controls, directions, zero widths, line separators, halves of surrogate pairs and what Unicode has not
    assigned do not: they could forge a line, drive a terminal, or make two names look the same.
    """
    if _UNSEEN.match(character):
        return False
    return character.isprintable() or unicodedata.category(character) == "Zs"


def harmless(text: str) -> str:
    """The text on one line, with a mark in place of every character that cannot be seen."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(each if is_seen(each) else REPLACEMENT for each in text.replace("\n", " "))


def harmless_lines(text: str) -> str:
    """The same for each line of a text."""
    return "\n".join(map(harmless, text.split("\n")))


def harmless_value(value: Any) -> Any:
    """The same for every string of a value."""
    match value:
        case str():
            return harmless(value)
        case dict():
            return {harmless_value(key): harmless_value(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [harmless_value(item) for item in value]
        case _:
            return value


def readable_json(value: Any) -> str:
    """JSON for people and programs: nothing is lost, and what cannot be seen is written as an escape."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(each if each == "\n" or is_seen(each) else _escape(each) for each in text)


def _escape(character: str) -> str:
    pair = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pair[at : at + 2].hex()}" for at in range(0, len(pair), 2))
