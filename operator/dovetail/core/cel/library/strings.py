"""Strings: searching, cutting, joining (cel-go's strings extension, version 2)."""

from collections.abc import Callable
from typing import Any, Final

from dovetail.core.cel.kinds import BOOL, DYN, INT, STRING, list_of
from dovetail.core.cel.library.formatting import format_text
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.signatures import Library
from dovetail.core.cel.values import EvalError

LIBRARY: Final = Library("strings")

_STRINGS = list_of(STRING)

QUADRATIC: Final = 1_000_000
"""Comparisons of characters that one search may take at worst."""

_BLANKS: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
BLANKS: Final = _BLANKS + "\u2028\u2029\u202f\u205f\u3000"
"""What Go takes for white space."""

_QUOTED: Final = str.maketrans(
    {
        "\a": r"\a",
        "\b": r"\b",
        "\f": r"\f",
        "\n": r"\n",
        "\r": r"\r",
        "\t": r"\t",
        "\v": r"\v",
        "\\": r"\\",
        '"': r"\"",
    }
)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code + 32: code for code in range(ord("A"), ord("Z") + 1)}


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvalError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise EvalError(f"index out of range: {offset}")
    if part == "":
        return min(offset, len(text))
    return text.find(part, offset) if offset < len(text) else -1


def _last_index_of(text: str, part: str) -> int:
    return _found_last(text, part, len(text))


def _found_last(text: str, part: str, end: int) -> int:
    """Searching backwards, Python may compare every character with every other; forwards it does not."""
    if len(part) * end < QUADRATIC:
        return text.rfind(part, 0, end)
    place = text[:end][::-1].find(part[::-1])
    return place if place < 0 else min(end, len(text)) - place - len(part)


def _last_index_before(text: str, part: str, offset: int) -> int:
    if offset < 0:
        raise EvalError(f"index out of range: {offset}")
    if part == "":
        return min(offset, len(text))
    return _found_last(text, part, min(len(text), offset + len(part))) if offset < len(text) else -1


def _replace(meter: Meter, text: str, old: str, new: str, limit: int = -1) -> str:
    meter.characters(len(text))
    times = text.count(old) if limit < 0 else min(limit, text.count(old))
    meter.build(len(text) + times * (len(new) - len(old)), 0)
    meter.spend(times >> 4)
    return meter.holding(text.replace(old, new, times))


def _split(meter: Meter, text: str, separator: str, limit: int = -1) -> list[str]:
    """Parts of the text; an empty separator splits into characters; a limit of 0 gives none."""
    meter.characters(len(text))
    if limit == 0:
        return []
    parts = text.count(separator) + 1
    meter.build(parts if limit < 0 else min(parts, limit), 80)
    meter.holding(text)
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit > len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= len(text) or not 0 <= last <= len(text) or start > last:
        raise EvalError(f"invalid substring range: {start} to {last}")
    return text[start:last]


def _join(meter: Meter, texts: list[Any], separator: str = "") -> str:
    if any(type(text) is not str for text in meter.each(texts)):
        raise EvalError("join: invalid input: not a string")
    meter.build(sum(map(len, texts)) + len(separator) * len(texts), 0)
    return meter.holding(separator.join(texts))


def _quote(meter: Meter, text: str) -> str:
    meter.build(len(text), 2)
    return f'"{text.translate(_QUOTED)}"'


def _method(
    name: str,
    overload: str,
    args: str,
    run: Callable[..., Any],
    result: Any = STRING,
    *,
    spends: bool = False,
) -> None:
    kinds = {"s": STRING, "i": INT}
    LIBRARY.method(name, overload, (STRING, *(kinds[arg] for arg in args)), result, run, spends=spends)


_method("charAt", "string_char_at_int", "i", _char_at)
_method("contains", "contains_string", "s", lambda text, part: part in text, BOOL)
_method("endsWith", "ends_with_string", "s", str.endswith, BOOL)
_method("startsWith", "starts_with_string", "s", str.startswith, BOOL)
_method("indexOf", "string_index_of_string", "s", _index_of, INT)
_method("indexOf", "string_index_of_string_int", "si", _index_of, INT)
_method("lastIndexOf", "string_last_index_of_string", "s", _last_index_of, INT)
_method("lastIndexOf", "string_last_index_of_string_int", "si", _last_index_before, INT)
_method("lowerAscii", "string_lower_ascii", "", lambda text: text.translate(_LOWER))
_method("upperAscii", "string_upper_ascii", "", lambda text: text.translate(_UPPER))
_method("replace", "string_replace_string_string", "ss", _replace, spends=True)
_method("replace", "string_replace_string_string_int", "ssi", _replace, spends=True)
_method("split", "string_split_string", "s", _split, _STRINGS, spends=True)
_method("split", "string_split_string_int", "si", _split, _STRINGS, spends=True)
_method("substring", "string_substring_int", "i", _substring)
_method("substring", "string_substring_int_int", "ii", _substring)
_method("trim", "string_trim", "", lambda text: text.strip(BLANKS))
LIBRARY.method("format", "string_format", (STRING, list_of(DYN)), STRING, format_text, spends=True)
LIBRARY.method("join", "list_join", (_STRINGS,), STRING, _join, spends=True)
LIBRARY.method("join", "list_join_string", (_STRINGS, STRING), STRING, _join, spends=True)
LIBRARY.add("strings.quote", "strings_quote", (STRING,), STRING, _quote, spends=True)
