"""Regular expressions: RE2, whose running time is linear in the text whatever the pattern."""

import re
from typing import Any, Final

import re2

from dovetail.core.cel.kinds import BOOL, INT, STRING, list_of
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.shelf import Shelf
from dovetail.core.cel.signatures import Library
from dovetail.core.cel.values import CostExceeded, EvalError

LIBRARY: Final = Library("regular expressions")

_QUOTED: Final = re.compile(r"\\Q.*?(?:\\E|$)", re.DOTALL)
_ESCAPES: Final = re.compile(r"\\.", re.DOTALL)

PATTERN_ARGUMENT: Final = {"matches": 1, "find": 1, "findAll": 1}
"""Where a function takes its pattern; a constant one is compiled before the run."""


MAX_PATTERN: Final = 10_240
"""Characters of a pattern; a longer one can only be built by an expression."""

MAX_MEMORY: Final = 1 << 20
"""Bytes that a compiled pattern may take, with all that it remembers of texts."""

MAX_SCAN: Final = 20_000_000
"""Characters of a text times instructions of a pattern: at worst RE2 tries each with each, at one go."""

KEPT: Final = 64
"""Compiled patterns that are kept."""

_kept: Final[Shelf[str, Any]] = Shelf(KEPT)


def compile_pattern(pattern: str, meter: Meter) -> Any:
    """A compiled pattern; EvalError where RE2 refuses it, and what the meter raises."""
    known = _kept.get(pattern)
    if known is not None:
        return known
    if len(pattern) > MAX_PATTERN:
        raise CostExceeded(f"it costs too much: a pattern has more than {MAX_PATTERN} characters")
    meter.spend(10 + (len(pattern) >> 3))
    if _takes_bytes(pattern):
        raise EvalError("error parsing regexp: invalid escape sequence: `\\C`")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MAX_MEMORY
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise EvalError(f"error parsing regexp: {_words(error)}") from error
    re2.purge()  # it keeps patterns of its own, whatever they take
    _kept.put(pattern, compiled, 1)
    meter.spend(compiled.programsize >> 3)
    return compiled


def _takes_bytes(pattern: str) -> bool:
    r"""Whether the pattern matches single bytes by `\C`, which Go does not know."""
    return any(escape == r"\C" for escape in _ESCAPES.findall(_QUOTED.sub("", pattern)))


def _words(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _scanned(meter: Meter, text: str, pattern: str) -> tuple[Any, bytes, int]:
    """The compiled pattern, the text's bytes, and the instructions of the pattern; the scan is paid for."""
    compiled = compile_pattern(pattern, meter)
    octets = text.encode()
    size = compiled.programsize
    if len(octets) * size > MAX_SCAN:
        raise CostExceeded("it costs too much: a pattern is too large for such a long text")
    meter.spend(1 + (len(octets) * size >> 10))
    return compiled, octets, size


def _matches(meter: Meter, text: str, pattern: str) -> bool:
    compiled, octets, _ = _scanned(meter, text, pattern)
    return compiled.search(octets) is not None


def _find(meter: Meter, text: str, pattern: str) -> str:
    compiled, octets, _ = _scanned(meter, text, pattern)
    match = compiled.search(octets)
    return "" if match is None else match.group().decode()


def _find_all(meter: Meter, text: str, pattern: str, limit: int = -1) -> list[str]:
    """Matches from left to right; an empty one right behind another does not count, as in Go.

    A search may look far beyond what it finds, so each pays for the rest of the text.
    """
    compiled, octets, size = _scanned(meter, text, pattern)
    found: list[str] = []
    position, last_end = 0, -1
    while position <= len(octets) and (limit < 0 or len(found) < limit):
        meter.build(1, 80)
        meter.spend((len(octets) - position) * size >> 16)
        match = compiled.search(octets, position)
        if match is None:
            break
        start, end = match.span()
        if start != end or start != last_end:
            found.append(meter.holding(octets[start:end].decode()))
        last_end = end
        position = end if end > start else _next_character(octets, end)
    return found


def _next_character(octets: bytes, position: int) -> int:
    """Where the character after this one begins in UTF-8."""
    position += 1
    while position < len(octets) and octets[position] & 0xC0 == 0x80:
        position += 1
    return position


LIBRARY.add("matches", "matches", (STRING, STRING), BOOL, _matches, spends=True)
LIBRARY.method("matches", "matches_string", (STRING, STRING), BOOL, _matches, spends=True)
LIBRARY.method("find", "string_find_string", (STRING, STRING), STRING, _find, spends=True)
LIBRARY.method("findAll", "string_find_all_string", (STRING, STRING), list_of(STRING), _find_all, spends=True)
LIBRARY.method(
    "findAll", "string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all, spends=True
)
