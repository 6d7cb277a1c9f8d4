"""Errors of compilation: what is wrong, where, and the text that is there."""

from typing import Final

from dovetail.core.cel.syntax import Place
from dovetail.errors import ExpressionInvalid

MOST_SHOWN: Final = 40
"""Characters of the expression that an error repeats."""


MOST_SAID: Final = 300
"""Characters of a reason: types and names can be longer than anybody reads."""


def brief(text: str, most: int = MOST_SAID) -> str:
    """The text, its end cut off where it is long."""
    return text if len(text) <= most else f"{text[:most]}…"


def fault(expression: str, reason: str, at: Place) -> ExpressionInvalid:
    """An error at a place of the expression; the reason ends with the text from there on."""
    line, column = at
    reason = brief(reason)
    text = _text(expression, line, column)
    return ExpressionInvalid(expression, f"{reason}, at {text!r}" if text else reason, line, column)


def _text(expression: str, line: int, column: int) -> str:
    lines = expression.split("\n")
    if not 0 < line <= len(lines) or column < 1:
        return ""
    text = lines[line - 1][column - 1 :].strip()
    return brief(text, MOST_SHOWN)
