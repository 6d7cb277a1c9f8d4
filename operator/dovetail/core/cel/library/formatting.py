"""`format`: values in text, as cel-go's strings extension prints them for the locale en_US."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dovetail.core.cel.library.conversions import decode
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.numerals import format_double
from dovetail.core.cel.signatures import type_name
from dovetail.core.cel.times import Duration, Timestamp, format_duration, format_timestamp
from dovetail.core.cel.values import CelMap, CostExceeded, EvalError, TypeValue, Uint

MAX_PRECISION: Final = 100_000
"""Decimals that one clause may ask for; cel-go in Kubernetes sets no bound, which asks for gigabytes."""

MAX_DIGITS: Final = 19
"""Digits that a precision may have."""

_CLAUSE: Final = re.compile(r"%(?:(%)|(\.([0-9]*))?(.)?)", re.DOTALL | re.ASCII)
_SPECIAL: Final = ("NaN", "Infinity", "-Infinity")
_SUPERSCRIPT: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_ESCAPES: Final = {
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


@dataclass(frozen=True, slots=True)
class Clause:
    """A place in a format string that takes the next argument."""

    verb: str
    precision: int


def clauses(template: str) -> Iterator[str | Clause]:
    """Literal text and clauses by turns; EvalError at a malformed clause."""
    position = 0
    while (start := template.find("%", position)) >= 0:
        yield template[position:start]
        match = _CLAUSE.match(template, start)
        assert match is not None
        position = match.end()
        if match[1]:
            yield "%"
            continue
        if match[2] is not None and not 0 < len(match[3]) < MAX_DIGITS:
            raise EvalError("could not parse formatting clause: a precision needs digits, but not so many")
        if not match[4] or match[4] not in "sdfebxXo":
            raise EvalError(f"unrecognized formatting clause {match[4]!r}")
        yield Clause(match[4], int(match[3]) if match[3] else 6)
    yield template[position:]


def format_text(meter: Meter, template: str, args: list[Any]) -> str:
    """The template with the arguments in place of its clauses; arguments left over are ignored."""
    parts: list[str] = []
    taken = 0
    meter.characters(len(template))
    size = 0
    for piece in clauses(template):
        if isinstance(piece, str):
            parts.append(piece)
            continue
        meter.spend()
        if taken >= len(args):
            raise EvalError(f"index {taken} out of range")
        parts.append(_VERBS[piece.verb](args[taken], piece.precision, meter))
        size += len(parts[-1])
        meter.build(size, 0)
        meter.holding(parts[-1])
        taken += 1
    meter.build(size + len(template), 1)
    return "".join(parts)


class _Writer:
    """Prints one value, and tells the meter of every part of it."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter

    def value(self, value: Any) -> str:
        """`%s` of a value."""
        self.meter.spend()
        if isinstance(value, list):
            return self.enclosed("[", [self.part(item) for item in self.meter.each(value)], "]")
        if isinstance(value, CelMap):
            pairs = sorted(
                (self.key(key), self.part(item)) for key, item in self.meter.each(list(value.items()))
            )
            return self.enclosed("{", [f"{key}:{item}" for key, item in pairs], "}")
        return _scalar(value)

    def enclosed(self, opening: str, parts: list[str], closing: str) -> str:
        """Parts between brackets."""
        self.meter.elements(len(parts))
        self.meter.build(sum(map(len, parts)) + 2 * len(parts), 1)
        return f"{opening}{', '.join(parts)}{closing}"

    def part(self, value: Any) -> str:
        """A value inside a list or a map."""
        kind = type(value)
        if kind in (bool, TypeValue, type(None)) or isinstance(value, (list, CelMap)):
            return self.value(value)
        write = _PARTS.get(kind)
        if write is None:
            raise EvalError(f"no formatting function for {type_name(value)}")
        if isinstance(value, (str, bytes)):
            self.meter.build(4 * len(value), 1)
            self.meter.spend(len(value) >> 4)
        return write(value)

    def key(self, key: Any) -> str:
        """A key of a map."""
        if type(key) is str:
            self.meter.spend(len(key) >> 4)
            return quote(key)
        if type(key) in (bool, int, Uint):
            return _scalar(key)
        raise EvalError(f"no formatting function for map key of type {type_name(key)}")


def _scalar(value: Any) -> str:
    write = _SCALARS.get(type(value))
    if write is None:
        raise EvalError(f"string clause can only be used on plain values, was given {type_name(value)}")
    return write(value)


def quote(text: str) -> str:
    """The text in double quotes, escaped as Go does."""
    return '"' + "".join(_ESCAPES.get(char) or _printable(char) for char in text) + '"'


def _printable(char: str) -> str:
    if char.isprintable() or char == "\ufffd":
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _go_special(value: float) -> str:
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _number(value: Any, clause: str) -> float:
    """The double that `%f` and `%e` print; three words stand for the values without digits."""
    if type(value) is float:
        return value
    if type(value) is str and value in _SPECIAL:
        return float(value)
    raise EvalError(f"{clause} clause can only be used on doubles, was given {type_name(value)}")


def _unusual(value: float) -> str | None:
    if math.isfinite(value):
        return None
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def _bounded(precision: int, meter: Meter) -> int:
    if precision > MAX_PRECISION:
        raise CostExceeded
    meter.spend(precision >> 4)
    return precision


def _string(value: Any, _: int, meter: Meter) -> str:
    return _Writer(meter).value(value)


def _decimal(value: Any, _: int, __: Meter) -> str:
    if type(value) in (int, Uint):
        return str(int(value))
    raise EvalError(f"decimal clause can only be used on integers, was given {type_name(value)}")


def _fixed(value: Any, precision: int, meter: Meter) -> str:
    number = _number(value, "fixed-point")
    text = _unusual(number) or f"{abs(number):,.{_bounded(precision, meter)}f}"
    return f"-{text}" if number < 0 and not text.startswith("-") else text


def _scientific(value: Any, precision: int, meter: Meter) -> str:
    """Six decimals always: what stands where the precision belongs is taken for the width."""
    number = _number(value, "scientific")
    text = _unusual(number)
    if text is None:
        mantissa, _, power = f"{abs(number):.6e}".partition("e")
        superscript = f"{int(power):03d}" if int(power) < 0 else f"{int(power):02d}"
        text = f"{mantissa}\u00d710{superscript.translate(_SUPERSCRIPT)}"
        text = f"-{text}" if number < 0 else text
    return text.rjust(_bounded(precision, meter))


def _binary(value: Any, _: int, __: Meter) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    if type(value) in (int, Uint):
        return format(int(value), "b")
    raise EvalError(f"only integers and bools can be formatted as binary, was given {type_name(value)}")


def _hex(value: Any, _: int, meter: Meter) -> str:
    if type(value) in (int, Uint):
        return format(int(value), "x")
    if type(value) in (str, bytes):
        meter.build(2 * len(value), 1)
        octets: bytes = value.encode() if type(value) is str else value
        return octets.hex()
    raise EvalError(f"only integers, bytes and strings can be formatted as hex, was given {type_name(value)}")


def _octal(value: Any, _: int, __: Meter) -> str:
    if type(value) in (int, Uint):
        return format(int(value), "o")
    raise EvalError(f"octal clause can only be used on integers, was given {type_name(value)}")


_SCALARS: Final[dict[type, Callable[[Any], str]]] = {
    str: lambda text: text,
    bool: lambda truth: "true" if truth else "false",
    int: str,
    Uint: lambda number: str(int(number)),
    float: format_double,
    type(None): lambda _: "null",
    bytes: decode,
    TypeValue: lambda kind: kind.name,
    Timestamp: format_timestamp,
    Duration: format_duration,
}
"""How `%s` prints plain values."""

_PARTS: Final[dict[type, Callable[[Any], str]]] = {
    str: quote,
    bytes: lambda octets: "b" + quote(decode(octets)),
    float: lambda number: f"{number:.6f}" if math.isfinite(number) else f'"{_go_special(number)}"',
    int: str,
    Uint: lambda number: str(int(number)),
    Timestamp: lambda moment: f"timestamp({quote(format_timestamp(moment))})",
    Duration: lambda span: f"duration({quote(format_duration(span))})",
}
"""How plain values look inside a list or a map."""

_VERBS: Final[dict[str, Callable[[Any, int, Meter], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "X": lambda value, precision, meter: _hex(value, precision, meter).upper(),
    "o": _octal,
}
