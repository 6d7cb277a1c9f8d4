"""Conversions between types, and the type of a value."""

from collections.abc import Callable
from typing import Any, Final

from dovetail.core.cel.kinds import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    param,
    type_of,
)
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.numerals import (
    double_to_int,
    double_to_uint,
    format_double,
    parse_bool,
    parse_double,
    parse_int,
    parse_uint,
)
from dovetail.core.cel.signatures import Library, type_name
from dovetail.core.cel.times import (
    checked_timestamp,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_timestamp,
)
from dovetail.core.cel.values import LARGEST_INT, EvalError, TypeValue, Uint

LIBRARY: Final = Library("conversions")

FOLDED: Final = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)
"""Functions that are applied before the run where their only argument is constant."""

_A = param("A")


def _same(value: Any) -> Any:
    return value


def decode(octets: bytes) -> str:
    """Bytes as text; EvalError where they are no UTF-8."""
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise EvalError("invalid UTF-8 in bytes, cannot convert to string") from error


def _decoded(meter: Meter, octets: bytes) -> str:
    meter.build(len(octets), 1)
    return decode(octets)


def _encoded(meter: Meter, text: str) -> bytes:
    meter.build(len(text), 1)
    return meter.holding(text.encode())


def _reading(parse: Callable[[str], Any]) -> Callable[[Meter, str], Any]:
    """The same for texts that anybody may have written, however long."""

    def read(meter: Meter, text: str) -> Any:
        meter.read(text)
        return parse(text)

    return read


def _to_uint(value: int) -> Uint:
    if value < 0:
        raise EvalError("unsigned integer overflow")
    return Uint(value)


def _to_int(value: int) -> int:
    if value > LARGEST_INT:
        raise EvalError("integer overflow")
    return int(value)


def _numbers() -> None:
    add = LIBRARY.add
    add("int", "int64_to_int64", (INT,), INT, _same)
    add("int", "double_to_int64", (DOUBLE,), INT, double_to_int)
    add("int", "duration_to_int64", (DURATION,), INT, lambda span: span.nanos)
    add("int", "string_to_int64", (STRING,), INT, parse_int)
    add("int", "timestamp_to_int64", (TIMESTAMP,), INT, lambda moment: moment.seconds)
    add("int", "uint64_to_int64", (UINT,), INT, _to_int)
    add("uint", "uint64_to_uint64", (UINT,), UINT, _same)
    add("uint", "double_to_uint64", (DOUBLE,), UINT, double_to_uint)
    add("uint", "int64_to_uint64", (INT,), UINT, _to_uint)
    add("uint", "string_to_uint64", (STRING,), UINT, parse_uint)
    add("double", "double_to_double", (DOUBLE,), DOUBLE, _same)
    add("double", "int64_to_double", (INT,), DOUBLE, float)
    add("double", "string_to_double", (STRING,), DOUBLE, _reading(parse_double), spends=True)
    add("double", "uint64_to_double", (UINT,), DOUBLE, float)


def _texts() -> None:
    add = LIBRARY.add
    add("string", "string_to_string", (STRING,), STRING, _same)
    add("string", "bool_to_string", (BOOL,), STRING, lambda truth: "true" if truth else "false")
    add("string", "bytes_to_string", (BYTES,), STRING, _decoded, spends=True)
    add("string", "double_to_string", (DOUBLE,), STRING, format_double)
    add("string", "duration_to_string", (DURATION,), STRING, format_duration)
    add("string", "int64_to_string", (INT,), STRING, str)
    add("string", "timestamp_to_string", (TIMESTAMP,), STRING, format_timestamp)
    add("string", "uint64_to_string", (UINT,), STRING, str)
    add("bytes", "bytes_to_bytes", (BYTES,), BYTES, _same)
    add("bytes", "string_to_bytes", (STRING,), BYTES, _encoded, spends=True)
    add("bool", "bool_to_bool", (BOOL,), BOOL, _same)
    add("bool", "string_to_bool", (STRING,), BOOL, parse_bool)


def _others() -> None:
    add = LIBRARY.add
    add("duration", "duration_to_duration", (DURATION,), DURATION, _same)
    add("duration", "string_to_duration", (STRING,), DURATION, _reading(parse_duration), spends=True)
    add("timestamp", "timestamp_to_timestamp", (TIMESTAMP,), TIMESTAMP, _same)
    add("timestamp", "int64_to_timestamp", (INT,), TIMESTAMP, checked_timestamp)
    add("timestamp", "string_to_timestamp", (STRING,), TIMESTAMP, _reading(parse_timestamp), spends=True)
    add("dyn", "to_dyn", (_A,), DYN, _same)
    add("type", "type", (_A,), type_of(_A), lambda value: TypeValue(type_name(value)))


_numbers()
_texts()
_others()
