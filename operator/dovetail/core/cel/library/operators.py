"""The operators: arithmetic, order, membership, size."""

from collections.abc import Callable
from typing import Any, Final

from dovetail.core.cel.equality import compare, is_equal
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
    Type,
    list_of,
    map_of,
    optional_of,
    param,
)
from dovetail.core.cel.meter import MAX_SIZE, Meter
from dovetail.core.cel.signatures import Library
from dovetail.core.cel.times import SECOND, Duration, Timestamp
from dovetail.core.cel.values import (
    LARGEST_INT,
    LARGEST_UINT,
    SMALLEST_INT,
    CelMap,
    EvalError,
    Growing,
    Joined,
    Uint,
)

LIBRARY: Final = Library("operators")

SHORT: Final = 200
"""A text that is shorter is not worth counting."""

_A, _B = param("A"), param("B")
_LIST, _MAP = list_of(_A), map_of(_A, _B)


def _int(value: int) -> int:
    if not SMALLEST_INT <= value <= LARGEST_INT:
        raise EvalError("integer overflow")
    return value


def _uint(value: int) -> Uint:
    if not 0 <= value <= LARGEST_UINT:
        raise EvalError("unsigned integer overflow")
    return Uint(value)


def _quotient(first: int, second: int) -> int:
    """Divides toward zero."""
    if second == 0:
        raise EvalError("division by zero")
    whole = abs(first) // abs(second)
    return _int(whole if (first < 0) == (second < 0) else -whole)


def _remainder(first: int, second: int) -> int:
    """Has the sign of the dividend."""
    if second == 0:
        raise EvalError("modulus by zero")
    if first == SMALLEST_INT and second == -1:
        raise EvalError("integer overflow")
    rest = abs(first) % abs(second)
    return -rest if first < 0 else rest


def _double_quotient(first: float, second: float) -> float:
    if second != 0.0:
        return first / second
    if first == 0.0 or first != first:  # noqa: PLR0124 - the test for NaN
        return float("nan")
    negative = (first < 0) != str(second).startswith("-")
    return float("-inf") if negative else float("inf")


def _double(compute: Callable[[float, float], float]) -> Callable[[float, float], float]:
    def guarded(first: float, second: float) -> float:
        try:
            return compute(first, second)
        except OverflowError:
            return float("inf")

    return guarded


def _uint_quotient(first: int, second: int) -> Uint:
    if second == 0:
        raise EvalError("division by zero")
    return Uint(int(first) // int(second))


def _uint_remainder(first: int, second: int) -> Uint:
    if second == 0:
        raise EvalError("modulus by zero")
    return Uint(int(first) % int(second))


def add_lists(meter: Meter, first: list[Any], second: list[Any]) -> list[Any]:
    """Two lists in one; the list that a loop builds grows in place."""
    if type(first) is Growing:
        if len(first) + len(second) > MAX_SIZE:
            meter.build(len(first) + len(second))
        if len(second) > 1:
            meter.build(len(second))
        first.extend(second)
        return first
    if not first or not second:
        return first or second
    meter.build(len(first) + len(second))
    return Joined([*first, *second])


def _add_texts(meter: Meter, first: Any, second: Any) -> Any:
    size = len(first) + len(second)
    if size < SHORT:
        return first + second
    meter.build(size, 0)
    return meter.holding(first + second)


def _difference(first: Timestamp, second: Timestamp) -> Duration:
    seconds = (first.seconds - second.seconds) * SECOND
    return Duration(_int(_int(seconds) + first.nanos - second.nanos))


def _in_list(meter: Meter, value: Any, values: list[Any]) -> bool:
    return any(is_equal(value, element, meter) for element in meter.each(values))


def _in_map(value: Any, entries: CelMap) -> bool:
    return entries.has(value)


def _arithmetic() -> None:
    add = LIBRARY.add
    add("_+_", "add_bytes", (BYTES, BYTES), BYTES, _add_texts, spends=True)
    add("_+_", "add_double", (DOUBLE, DOUBLE), DOUBLE, lambda a, b: a + b)
    add(
        "_+_",
        "add_duration_duration",
        (DURATION, DURATION),
        DURATION,
        lambda a, b: Duration.checked(a.nanos + b.nanos),
    )
    add("_+_", "add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP, lambda a, b: b.shifted(a))
    add("_+_", "add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, lambda a, b: a.shifted(b))
    add("_+_", "add_int64", (INT, INT), INT, lambda a, b: _int(a + b))
    add("_+_", "add_list", (_LIST, _LIST), _LIST, add_lists, spends=True)
    add("_+_", "add_string", (STRING, STRING), STRING, _add_texts, spends=True)
    add("_+_", "add_uint64", (UINT, UINT), UINT, lambda a, b: _uint(int(a) + int(b)))
    add("_-_", "subtract_double", (DOUBLE, DOUBLE), DOUBLE, lambda a, b: a - b)
    add(
        "_-_",
        "subtract_duration_duration",
        (DURATION, DURATION),
        DURATION,
        lambda a, b: Duration.checked(a.nanos - b.nanos),
    )
    add("_-_", "subtract_int64", (INT, INT), INT, lambda a, b: _int(a - b))
    add(
        "_-_",
        "subtract_timestamp_duration",
        (TIMESTAMP, DURATION),
        TIMESTAMP,
        lambda a, b: a.shifted(Duration.checked(-b.nanos)),
    )
    add("_-_", "subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION, _difference)
    add("_-_", "subtract_uint64", (UINT, UINT), UINT, lambda a, b: _uint(int(a) - int(b)))
    add("_*_", "multiply_double", (DOUBLE, DOUBLE), DOUBLE, _double(lambda a, b: a * b))
    add("_*_", "multiply_int64", (INT, INT), INT, lambda a, b: _int(a * b))
    add("_*_", "multiply_uint64", (UINT, UINT), UINT, lambda a, b: _uint(int(a) * int(b)))
    add("_/_", "divide_double", (DOUBLE, DOUBLE), DOUBLE, _double(_double_quotient))
    add("_/_", "divide_int64", (INT, INT), INT, _quotient)
    add("_/_", "divide_uint64", (UINT, UINT), UINT, _uint_quotient)
    add("_%_", "modulo_int64", (INT, INT), INT, _remainder)
    add("_%_", "modulo_uint64", (UINT, UINT), UINT, _uint_remainder)
    add("-_", "negate_double", (DOUBLE,), DOUBLE, lambda a: -a)
    add("-_", "negate_int64", (INT,), INT, lambda a: _int(-a))
    add("-_", "negate_duration", (DURATION,), DURATION, lambda a: Duration.checked(-a.nanos), checked=False)
    add("!_", "logical_not", (BOOL,), BOOL, lambda a: not a)


_ORDERED: Final[tuple[tuple[str, Type, Type], ...]] = (
    ("bool", BOOL, BOOL),
    ("int64", INT, INT),
    ("int64_double", INT, DOUBLE),
    ("int64_uint64", INT, UINT),
    ("uint64", UINT, UINT),
    ("uint64_double", UINT, DOUBLE),
    ("uint64_int64", UINT, INT),
    ("double", DOUBLE, DOUBLE),
    ("double_int64", DOUBLE, INT),
    ("double_uint64", DOUBLE, UINT),
    ("string", STRING, STRING),
    ("bytes", BYTES, BYTES),
    ("timestamp", TIMESTAMP, TIMESTAMP),
    ("duration", DURATION, DURATION),
)


def _order() -> None:
    relations: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
        "_<_": ("less", lambda a, b: compare(a, b) < 0),
        "_<=_": ("less_equals", lambda a, b: compare(a, b) <= 0),
        "_>_": ("greater", lambda a, b: compare(a, b) > 0),
        "_>=_": ("greater_equals", lambda a, b: compare(a, b) >= 0),
    }
    for operator, (name, run) in relations.items():
        for suffix, first, second in _ORDERED:
            LIBRARY.add(operator, f"{name}_{suffix}", (first, second), BOOL, run)


def _structure() -> None:
    add = LIBRARY.add
    add("@in", "in_list", (_A, _LIST), BOOL, _in_list, spends=True)
    add("@in", "in_map", (_A, _MAP), BOOL, _in_map)
    for name, kind in (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING)):
        add("size", f"size_{name}", (kind,), INT, len)
        LIBRARY.method("size", f"{name}_size", (kind,), INT, len)


def _forms() -> None:
    """What the planner builds by itself: only the types count here."""
    add = LIBRARY.add
    add("_==_", "equals", (_A, _A), BOOL, is_equal)
    add("_!=_", "not_equals", (_A, _A), BOOL, is_equal)
    add("_&&_", "logical_and", (BOOL, BOOL), BOOL, is_equal)
    add("_||_", "logical_or", (BOOL, BOOL), BOOL, is_equal)
    add("_?_:_", "conditional", (BOOL, _A, _A), _A, is_equal)
    add("@not_strictly_false", "not_strictly_false", (BOOL,), BOOL, is_equal)
    add("_[_]", "index_list", (_LIST, INT), _A, is_equal)
    add("_[_]", "index_map", (_MAP, _A), _B, is_equal)
    add("_[_]", "optional_list_index_int", (optional_of(_LIST), INT), optional_of(_A), is_equal)
    add("_[_]", "optional_map_index_value", (optional_of(_MAP), _A), optional_of(_B), is_equal)
    add("_[?_]", "list_optindex_optional_int", (_LIST, INT), optional_of(_A), is_equal)
    add("_[?_]", "optional_list_optindex_optional_int", (optional_of(_LIST), INT), optional_of(_A), is_equal)
    add("_[?_]", "map_optindex_optional_value", (_MAP, _A), optional_of(_B), is_equal)
    add("_[?_]", "optional_map_optindex_optional_value", (optional_of(_MAP), _A), optional_of(_B), is_equal)
    add("_?._", "select_optional_field", (DYN, STRING), optional_of(_B), is_equal)


_arithmetic()
_order()
_structure()
_forms()
