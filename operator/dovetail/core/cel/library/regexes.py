"""Regular expressions: RE2, whose running time is linear in the text whatever the pattern."""

import re
from functools import lru_cache
from typing import Any, Final

import re2

from dovetail.core.cel.kinds import BOOL, INT, STRING, list_of
from dovetail.core.cel.signatures import Library
from dovetail.core.cel.values import EvalError

LIBRARY: Final = Library("regular expressions")

_QUOTED: Final = re.compile(r"\\Q.*?(?:\\E|$)", re.DOTALL)
_ESCAPES: Final = re.compile(r"\\.", re.DOTALL)

PATTERN_ARGUMENT: Final = {"matches": 1, "find": 1, "findAll": 1}
"""Where a function takes its pattern; a constant one is compiled before the run."""


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """A compiled pattern; EvalError where RE2 refuses it."""
    if _takes_bytes(pattern):
        raise EvalError("error parsing regexp: invalid escape sequence: `\\C`")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise EvalError(f"error parsing regexp: {_words(error)}") from error


def _takes_bytes(pattern: str) -> bool:
    r"""Whether the pattern matches single bytes by `\C`, which Go does not know."""
    return any(escape == r"\C" for escape in _ESCAPES.findall(_QUOTED.sub("", pattern)))


def _words(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _matches(text: str, pattern: str) -> bool:
    return compile_pattern(pattern).search(text) is not None


def _find(text: str, pattern: str) -> str:
    match = compile_pattern(pattern).search(text)
    return "" if match is None else str(match.group())


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Matches from left to right; an empty one right behind another does not count, as in Go."""
    compiled = compile_pattern(pattern)
    found: list[str] = []
    position, last_end = 0, -1
    while position <= len(text) and (limit < 0 or len(found) < limit):
        match = compiled.search(text, position)
        if match is None:
            break
        start, end = match.span()
        if start != end or start != last_end:
            found.append(text[start:end])
        last_end = end
        position = end if end > start else end + 1
    return found


LIBRARY.add("matches", "matches", (STRING, STRING), BOOL, _matches)
LIBRARY.method("matches", "matches_string", (STRING, STRING), BOOL, _matches)
LIBRARY.method("find", "string_find_string", (STRING, STRING), STRING, _find)
LIBRARY.method("findAll", "string_find_all_string", (STRING, STRING), list_of(STRING), _find_all)
LIBRARY.method("findAll", "string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all)
