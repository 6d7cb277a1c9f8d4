"""Lists and sets: Kubernetes' list functions, and cel-go's extensions for lists (version 3) and sets."""

from collections.abc import Callable
from itertools import pairwise
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
    param,
)
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.signatures import Library, type_name
from dovetail.core.cel.times import Duration
from dovetail.core.cel.values import (
    LARGEST_INT,
    LARGEST_UINT,
    SMALLEST_INT,
    CelMap,
    CostExceeded,
    EvalError,
    NoSuchOverload,
    Uint,
)

LISTS: Final = Library("Kubernetes lists")
EXTENDED: Final = Library("lists")
SETS: Final = Library("sets")
LOOPS: Final = Library("comprehensions")
INCLUDES: Final = Library("includes")

MAX_RANGE: Final = 1_000_000
"""A longer `lists.range` costs more than the limit by itself."""

_A, _K, _V, _T = param("A"), param("K"), param("V"), param("T")
_LIST, _MAP = list_of(_T), map_of(_K, _V)

_COMPARABLE: Final[tuple[tuple[str, Type], ...]] = (
    ("int", INT),
    ("uint", UINT),
    ("double", DOUBLE),
    ("bool", BOOL),
    ("duration", DURATION),
    ("timestamp", TIMESTAMP),
    ("string", STRING),
    ("bytes", BYTES),
)


def _is_sorted(meter: Meter, values: list[Any]) -> bool:
    """Neighbours without an order do not count as out of order."""
    for value in values[:1]:
        _orderable(value)
    for first, second in pairwise(meter.each(values)):
        _orderable(second)
        if _follows(first, second):
            return False
    return True


def _follows(first: Any, second: Any) -> bool:
    try:
        return compare(first, second) > 0
    except EvalError:
        return False


def _orderable(value: Any) -> None:
    if type_name(value) not in _ORDERABLE:
        raise NoSuchOverload("no such overload: values without an order")


_ORDERABLE: Final = frozenset(kind.name for _, kind in _COMPARABLE)


def _extreme(name: str, wanted: int) -> Callable[[Meter, list[Any]], Any]:
    def extreme(meter: Meter, values: list[Any]) -> Any:
        if not values:
            raise EvalError(f"{name} called on empty list")
        best = values[0]
        for value in meter.each(values):
            _orderable(value)
            if _differs(best, value, wanted):
                best = value
        return best

    return extreme


def _differs(best: Any, value: Any, wanted: int) -> bool:
    try:
        return compare(best, value) == wanted
    except EvalError:
        return False


def _sum(zero: Any, add: Callable[[Any, Any], Any]) -> Callable[[Meter, list[Any]], Any]:
    def total(meter: Meter, values: list[Any]) -> Any:
        result = zero
        for value in meter.each(values):
            if type(value) is not type(zero):
                raise NoSuchOverload("no such overload: sum of different types")
            result = add(result, value)
        return result

    return total


def _add_int(first: int, second: int) -> int:
    if not SMALLEST_INT <= first + second <= LARGEST_INT:
        raise EvalError("integer overflow")
    return first + second


def _add_uint(first: int, second: int) -> Uint:
    if int(first) + int(second) > LARGEST_UINT:
        raise EvalError("unsigned integer overflow")
    return Uint(int(first) + int(second))


def _index_of(meter: Meter, values: list[Any], wanted: Any) -> int:
    return next((i for i, value in enumerate(meter.each(values)) if is_equal(value, wanted, meter)), -1)


def _last_index_of(meter: Meter, values: list[Any], wanted: Any) -> int:
    positions = meter.each(range(len(values) - 1, -1, -1))
    return next((i for i in positions if is_equal(values[i], wanted, meter)), -1)


def _includes(meter: Meter, target: Any, wanted: Any) -> bool:
    if isinstance(target, list):
        return any(is_equal(value, wanted, meter) for value in meter.each(target))
    return is_equal(target, wanted, meter)


def _slice(meter: Meter, values: list[Any], start: int, end: int) -> list[Any]:
    meter.build(max(0, end - start) if end <= len(values) else 0)
    if not 0 <= start <= end <= len(values):
        raise EvalError(f"cannot slice({start}, {end}), list has length {len(values)}")
    return values[start:end]


def _flatten(meter: Meter, values: Any, depth: int = 1) -> list[Any]:
    if not isinstance(values, list):
        raise NoSuchOverload("no such overload: flatten")
    if type(depth) is not int:
        raise NoSuchOverload("no such overload: flatten")
    if depth < 0:
        raise EvalError("level must be non-negative")
    flat: list[Any] = []
    _flatten_into(flat, meter, values, depth)
    return flat


def _flatten_into(flat: list[Any], meter: Meter, values: list[Any], depth: int) -> None:
    """Every list that is gone into is a step: those within each other may be more than their elements."""
    meter.build(len(values))
    for value in meter.each(values):
        if depth > 0 and isinstance(value, list):
            _flatten_into(flat, meter, value, depth - 1)
        else:
            flat.append(value)


def _sort_by(meter: Meter, values: list[Any], keys: list[Any]) -> list[Any]:
    meter.build(len(values))
    meter.spend(len(values) >> 1)
    if len(values) != len(keys):
        raise EvalError("sort keys and list differ in length")
    if not values:
        return values
    _orderable(keys[0])
    if any(type(key) is not type(keys[0]) for key in keys) and len(keys) > 1:
        raise EvalError("list elements must have the same type")
    if any(key != key for key in keys):  # noqa: PLR0124 - NaN is in no order
        return values
    order = sorted(range(len(values)), key=lambda i: _sort_key(keys[i]))
    return [values[i] for i in order]


def _sort_key(key: Any) -> Any:
    return key.instant if type_name(key) == TIMESTAMP.name else key


def _distinct(meter: Meter, values: list[Any]) -> list[Any]:
    unique: list[Any] = []
    for value in values:
        if not any(is_equal(value, other, meter) for other in meter.each(unique)):
            unique.append(value)
    return unique


def _range(meter: Meter, size: int) -> list[int]:
    if size < 0:
        raise EvalError(f"lists.range: size must be non-negative, got {size}")
    if size > MAX_RANGE:
        raise CostExceeded
    meter.build(size, 40)
    return list(range(size))


def _has(meter: Meter, values: list[Any], wanted: Any) -> bool:
    return any(is_equal(wanted, value, meter) for value in meter.each(values))


def _contains(meter: Meter, values: list[Any], others: list[Any]) -> bool:
    return all(_has(meter, values, other) for other in others)


def _intersects(meter: Meter, values: list[Any], others: list[Any]) -> bool:
    return any(_has(meter, others, value) for value in values)


def _equivalent(meter: Meter, values: list[Any], others: list[Any]) -> bool:
    return _contains(meter, values, others) and _contains(meter, others, values)


def _reversed(meter: Meter, values: list[Any]) -> list[Any]:
    meter.build(len(values))
    return values[::-1]


def _insert(meter: Meter, target: CelMap, key: Any, value: Any) -> CelMap:
    meter.build(1, 150)
    target.insert(key, value)
    return target


def _insert_all(meter: Meter, target: CelMap, more: CelMap) -> CelMap:
    meter.build(len(more), 150)
    for key, value in meter.each(list(more.items())):
        target.insert(key, value)
    return target


def _kubernetes() -> None:
    sums: tuple[tuple[str, Type, Any, Callable[[Any, Any], Any]], ...] = (
        ("int", INT, 0, _add_int),
        ("uint", UINT, Uint(0), _add_uint),
        ("double", DOUBLE, 0.0, lambda a, b: a + b),
        ("duration", DURATION, Duration(0), lambda a, b: Duration.checked(a.nanos + b.nanos)),
    )
    method = LISTS.method
    for name, kind in _COMPARABLE:
        method("isSorted", f"list_{name}_is_sorted_bool", (list_of(kind),), BOOL, _is_sorted, spends=True)
    for name, kind, zero, add in sums:
        method("sum", f"list_{name}_sum_{name}", (list_of(kind),), kind, _sum(zero, add), spends=True)
    for name, kind in _COMPARABLE:
        method("max", f"list_{name}_max_{name}", (list_of(kind),), kind, _extreme("max", -1), spends=True)
        method("min", f"list_{name}_min_{name}", (list_of(kind),), kind, _extreme("min", 1), spends=True)
    method("indexOf", "list_a_index_of_int", (list_of(_A), _A), INT, _index_of, spends=True)
    method("lastIndexOf", "list_a_last_index_of_int", (list_of(_A), _A), INT, _last_index_of, spends=True)
    INCLUDES.method("includes", "list_includes_dyn_dyn", (DYN, DYN), BOOL, _includes, spends=True)


def _extended() -> None:
    method = EXTENDED.method
    method("slice", "list_slice", (_LIST, INT, INT), _LIST, _slice, spends=True)
    method("flatten", "list_flatten", (list_of(_LIST),), _LIST, _flatten, guarded=False, spends=True)
    method(
        "flatten", "list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten, guarded=False, spends=True
    )
    for _, kind in _COMPARABLE:
        overload = f"list_{kind.name}_sort"
        method(
            "sort",
            overload,
            (list_of(kind),),
            list_of(kind),
            lambda meter, values: _sort_by(meter, values, values),
            spends=True,
        )
    for _, kind in _COMPARABLE:
        overload = f"list_{kind.name}_sortByAssociatedKeys"
        method("@sortByAssociatedKeys", overload, (_LIST, list_of(kind)), _LIST, _sort_by, spends=True)
    EXTENDED.add("lists.range", "lists_range", (INT,), list_of(INT), _range, spends=True)
    method("reverse", "list_reverse", (_LIST,), _LIST, _reversed, spends=True)
    method("distinct", "list_distinct", (_LIST,), _LIST, _distinct, spends=True)


def _sets() -> None:
    pair = (_LIST, _LIST)
    SETS.add("sets.contains", "list_sets_contains_list", pair, BOOL, _contains, spends=True)
    SETS.add("sets.equivalent", "list_sets_equivalent_list", pair, BOOL, _equivalent, spends=True)
    SETS.add("sets.intersects", "list_sets_intersects_list", pair, BOOL, _intersects, spends=True)


def _loops() -> None:
    LOOPS.add("cel.@mapInsert", "@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, _insert, spends=True)
    LOOPS.add("cel.@mapInsert", "@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all, spends=True)


_kubernetes()
_extended()
_sets()
_loops()
