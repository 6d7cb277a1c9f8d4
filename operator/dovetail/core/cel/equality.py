"""When values are equal, and which comes first, as cel-go has it."""

import math
from collections.abc import Callable
from typing import Any, Final

from dovetail.core.budget import BudgetSpent
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

MAX_STEPS: Final = 2_000_000
"""Pairs that one comparison may look at. Nested lists can hold more than any cost tells; then it is cut."""

_NUMBERS: Final = frozenset((int, Uint, float))
_PICKY: Final[set[type]] = {Semver, Quantity, Ip, Cidr}

Verdict = bool | EvalError
"""Whether two values are equal; or, as a value, the error that asking is in cel-go."""


def picky(kind: type) -> None:
    """Say that comparing a value of this type with one of another type is an error."""
    _PICKY.add(kind)


def equal(first: Any, second: Any) -> Verdict:
    """Whether two values are equal. Raises only BudgetSpent."""
    kind = type(first)
    if kind is type(second):
        if isinstance(first, (list, CelMap)):
            return _equal_deep(first, second, Steps())
        return _equal_alike(first, second)
    return _equal_mixed(first, second, Steps())


def is_equal(first: Any, second: Any) -> bool:
    """Whether two values are equal, an error counting as no."""
    return equal(first, second) is True


class Steps:
    """Counts the pairs that one comparison looks at."""

    __slots__ = ("left",)

    def __init__(self, left: int = MAX_STEPS) -> None:
        self.left = left

    def take(self, steps: int) -> None:
        """Spend some; raises BudgetSpent when none are left."""
        self.left -= steps
        if self.left < 0:
            raise BudgetSpent


def _equal_alike(first: Any, second: Any) -> Verdict:
    if type(first) is Optional:
        if not (first.has_value and second.has_value):
            return bool(first.has_value == second.has_value)
        return equal(first.value, second.value)
    return bool(first == second)


def _equal_mixed(first: Any, second: Any, steps: Steps) -> Verdict:
    if first is None or second is None:
        return False
    if isinstance(first, (list, CelMap)):
        return _equal_deep(first, second, steps)
    if type(first) in _NUMBERS and type(second) in _NUMBERS:
        return _equal_numbers(first, second)
    return NoSuchOverload("no such overload: _==_") if type(first) in _PICKY else False


def _equal_numbers(first: float, second: float) -> bool:
    if type(first) is float or type(second) is float:
        return float(first) == float(second)
    return first == second


def _equal_deep(first: Any, second: Any, steps: Steps) -> Verdict:
    if isinstance(first, CelMap):
        return isinstance(second, CelMap) and _equal_maps(first, second, steps)
    return isinstance(second, list) and _equal_lists(first, second, steps)


def _equal_parts(first: Any, second: Any, steps: Steps) -> Verdict:
    if isinstance(first, (list, CelMap)):
        return _equal_deep(first, second, steps)
    return _equal_alike(first, second) if type(first) is type(second) else _equal_mixed(first, second, steps)


def _equal_lists(first: list[Any], second: list[Any], steps: Steps) -> Verdict:
    """Elements that cannot be compared count as equal, unless the first list is the sum of two lists."""
    if len(first) != len(second):
        return False
    steps.take(len(first))
    problem: Verdict = True
    for mine, other in zip(first, second, strict=True):
        verdict = _equal_parts(mine, other, steps)
        if verdict is False:
            return False
        if verdict is not True and problem is True and type(first) is Joined:
            problem = verdict
    return problem


def _equal_maps(first: CelMap, second: CelMap, steps: Steps) -> Verdict:
    """Values that cannot be compared count as equal."""
    if len(first) != len(second):
        return False
    steps.take(len(first))
    for key, mine in first.items():
        other = second.find(key)
        if not second.has(key) or _equal_parts(mine, other, steps) is False:
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
