"""When values are equal, and which comes first, as cel-go has it."""

import math
from collections.abc import Callable
from typing import Any, Final

from dovetail.core.cel.meter import Meter
from dovetail.core.cel.times import Duration, Timestamp
from dovetail.core.cel.values import (
    CelMap,
    Cidr,
    EvalError,
    Ip,
    Joined,
    NoSuchOverload,
    Optional,
    Uint,
)
from dovetail.core.quantity import Quantity
from dovetail.core.semver import Semver

_NUMBERS: Final = frozenset((int, Uint, float))
_PICKY: Final[set[type]] = {Semver, Quantity, Ip, Cidr}
_WEIGHTS: Final[dict[type, Callable[[Any], int]]] = {
    str: lambda text: len(text) >> 12,
    bytes: lambda octets: len(octets) >> 12,
    Semver: lambda version: len(version.prerelease) >> 3,
}

Verdict = bool | EvalError
"""Whether two values are equal; or, as a value, the error that asking is in cel-go."""


def picky(kind: type) -> None:
    """Say that comparing a value of this type with one of another type is an error."""
    _PICKY.add(kind)


def weighty(kind: type, weight: Callable[[Any], int]) -> None:
    """Say how many steps comparing a value of this type takes."""
    _WEIGHTS[kind] = weight


def equal(first: Any, second: Any, meter: Meter) -> Verdict:
    """Whether two values are equal. Raises only what the meter raises, which is told of every pair."""
    kind = type(first)
    if kind is type(second):
        if isinstance(first, (list, CelMap)):
            return _equal_deep(first, second, meter)
        return _equal_alike(first, second, meter)
    return _equal_mixed(first, second, meter)


def is_equal(first: Any, second: Any, meter: Meter) -> bool:
    """Whether two values are equal, an error counting as no."""
    return equal(first, second, meter) is True


def _equal_alike(first: Any, second: Any, meter: Meter) -> Verdict:
    kind = type(first)
    if kind is Optional:
        meter.spend()
        if not (first.has_value and second.has_value):
            return bool(first.has_value == second.has_value)
        return equal(first.value, second.value, meter)
    weight = _WEIGHTS.get(kind)
    if weight is not None and (steps := weight(first)):
        meter.spend(steps)
    return bool(first == second)


def _equal_mixed(first: Any, second: Any, meter: Meter) -> Verdict:
    if first is None or second is None:
        return False
    if isinstance(first, (list, CelMap)):
        return _equal_deep(first, second, meter)
    if type(first) in _NUMBERS and type(second) in _NUMBERS:
        return _equal_numbers(first, second)
    return NoSuchOverload("no such overload: _==_") if type(first) in _PICKY else False


def _equal_numbers(first: float, second: float) -> bool:
    if type(first) is float or type(second) is float:
        return float(first) == float(second)
    return first == second


def _equal_deep(first: Any, second: Any, meter: Meter) -> Verdict:
    if isinstance(first, CelMap):
        return isinstance(second, CelMap) and _equal_maps(first, second, meter)
    return isinstance(second, list) and _equal_lists(first, second, meter)


def _equal_parts(first: Any, second: Any, meter: Meter) -> Verdict:
    if isinstance(first, (list, CelMap)):
        return _equal_deep(first, second, meter)
    return (
        _equal_alike(first, second, meter)
        if type(first) is type(second)
        else _equal_mixed(first, second, meter)
    )


def _equal_lists(first: list[Any], second: list[Any], meter: Meter) -> Verdict:
    """Elements that cannot be compared count as equal, unless the first list is the sum of two lists."""
    if len(first) != len(second):
        return False
    problem: Verdict = True
    for mine, other in zip(meter.each(first), second, strict=True):
        verdict = _equal_parts(mine, other, meter)
        if verdict is False:
            return False
        if verdict is not True and problem is True and type(first) is Joined:
            problem = verdict
    return problem


def _equal_maps(first: CelMap, second: CelMap, meter: Meter) -> Verdict:
    """Values that cannot be compared count as equal."""
    if len(first) != len(second):
        return False
    for key, mine in meter.each(list(first.items())):
        other = second.find(key)
        if not second.has(key) or _equal_parts(mine, other, meter) is False:
            return False
    return True


def compare(first: Any, second: Any) -> int:
    """-1, 0 or 1; EvalError where there is no order."""
    kind = type(first)
    if kind in _NUMBERS and type(second) in _NUMBERS:
        return _compare_numbers(first, second)
    key = _ORDER.get(kind)
    if key is None or kind is not type(second):
        raise NoSuchOverload("no such overload: values of these types have no order")
    mine, other = key(first), key(second)
    return int(mine > other) - int(mine < other)


def _compare_numbers(first: float, second: float) -> int:
    if type(first) is float or type(second) is float:
        if math.isnan(first) or math.isnan(second):
            raise EvalError("NaN values cannot be ordered")
        first, second = float(first), float(second)
    return (first > second) - (first < second)


_ORDER: Final[dict[type, Callable[[Any], Any]]] = {
    str: lambda text: text,
    bytes: lambda octets: octets,
    bool: lambda truth: truth,
    Timestamp: lambda moment: moment.instant,
    Duration: lambda span: span.nanos,
}
