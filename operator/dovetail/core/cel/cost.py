"""What an evaluation costs, in cel-go's units with Kubernetes' estimates: the same on every machine."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from dovetail.core.cel.library.formats import NamedFormat
from dovetail.core.cel.library.urls import Url
from dovetail.core.cel.meter import LIMIT, Meter
from dovetail.core.cel.values import Aborted, CelMap, Cidr, CostExceeded, Ip, Optional
from dovetail.core.quantity import Quantity
from dovetail.core.semver import Semver

LIST: Final = 10
"""Building a list."""

MAP: Final = 30
"""Building a map."""

STRUCT: Final = 40
"""Building a message."""

CallCost = Callable[[Meter, tuple[Any, ...], Any], int]
"""The cost of a call, from its arguments and its result; what it takes to tell is spent from the meter."""


def size(value: Any) -> int:
    """How large a value is to cel-go: characters, bytes, elements; 1 for everything else."""
    if isinstance(value, (str, bytes, list, CelMap)):
        return len(value)
    if type(value) is Ip:
        return value.address.max_prefixlen // 8
    if type(value) is Cidr:
        return math.ceil(value.bits / 8)
    return 1


def _size_inside(value: Any) -> int:
    """The size of a value, or of what an optional holds."""
    while type(value) is Optional and value.has_value:
        value = value.value
    return size(value)


class _Traversal:
    """Adds up the cost of looking at every part of a value."""

    def __init__(self, meter: Meter) -> None:
        self.cost = 0
        self._meter = meter

    def add(self, value: Any) -> None:
        """Raises CostExceeded as soon as the cost is beyond the limit, or where there are too many parts."""
        if isinstance(value, str):
            self.cost += int(len(value.encode()) * 0.1)
        elif isinstance(value, bytes):
            self.cost += int(len(value) * 0.1)
        elif isinstance(value, list):
            self._parts(value)
        elif isinstance(value, CelMap):
            self._parts(list(value.keys()))
            self._parts(list(value.entries.values()))
        else:
            self.cost += 1

    def _parts(self, values: Sequence[Any]) -> None:
        if self.cost > LIMIT:
            raise CostExceeded
        # Short texts cost nothing, and lists within each other can be more than any cost tells.
        for value in self._meter.each(values):
            self.add(value)


def _tenth(*numbers: int) -> int:
    return math.ceil(sum(numbers) * 0.1)


def _traverse(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    whole = _Traversal(meter)
    whole.add(args[0])
    return whole.cost


def _scan(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return _tenth(size(args[0]))


def _scan_twice(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return math.ceil(size(args[0]) * 2 * 0.1)


def _scan_result_twice(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return math.ceil(size(result) * 2 * 0.1)


def _scan_inside(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return _tenth(_size_inside(args[0]))


def _scan_second(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return _tenth(_size_inside(args[1]))


def _scan_shorter(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return _tenth(min(_size_inside(args[0]), _size_inside(args[1])))


def _scan_both(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return _tenth(_size_inside(args[0]), _size_inside(args[1]))


def _regex(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return math.ceil((1.0 + size(args[0])) * 0.1) * math.ceil(size(args[1]) * 0.25)


def _search(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return _tenth(size(args[0])) * _tenth(size(args[1]))


def _membership(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return size(args[1])


def _contains_ip(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return math.ceil(2 * size(args[0]) * 0.1)


def _contains_ip_text(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return _contains_ip(meter, args, result) + _tenth(size(args[1]))


def _contains_cidr(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return _contains_ip(meter, args, result) + _tenth(size(args[0])) + 1


def _contains_cidr_text(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return _contains_cidr(meter, args, result) + _tenth(size(args[1]))


def _validate(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    wanted = args[0]
    if not isinstance(wanted, NamedFormat):
        return 1
    return math.ceil((1.0 + size(args[1])) * 0.1) * math.ceil(wanted.pattern_size * 0.25)


def _allocating(factor: float, amount: int) -> int:
    return int(amount * (1.0 if factor < 0 else factor)) + 1 + LIST


def _output(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    return _allocating(1, size(result))


def _flatten(meter: Meter, args: tuple[Any, ...], result: Any) -> int:
    if len(args) == 2 and type(args[1]) is not int:
        raise Aborted("internal error: a depth is no int")
    return _allocating(float(args[1]) if len(args) == 2 else 1.0, size(args[0]))


def _pairwise(values: Any) -> int:
    """Charging for what is no list ends the evaluation, in cel-go too."""
    if not isinstance(values, list):
        raise Aborted("internal error: not a list")
    factor = 2.1 if values and isinstance(values[0], (str, bytes)) else 2.0
    return _allocating(factor, len(values) ** 2)


def _sets(factor: int) -> CallCost:
    return lambda meter, args, result: 1 + size(args[0]) * size(args[1]) * factor


_CONSTANT_TIME: Final = frozenset((Quantity, Ip, Cidr, NamedFormat, Url, Semver))


def equality_cost(first: Any, second: Any) -> int:
    """The cost of `first == second`."""
    if type(first) in _CONSTANT_TIME:
        return 1
    return _tenth(min(_size_inside(first), _size_inside(second)))


def inequality_cost(first: Any, second: Any) -> int:
    """The cost of `first != second`."""
    return _tenth(min(_size_inside(first), _size_inside(second)))


_BY_OVERLOAD: Final[dict[str, CallCost]] = {
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "list_slice": _output,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _output,
    "list_reverse": _output,
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_cidr_string": _contains_cidr_text,
    "list_distinct": lambda meter, args, result: _pairwise(args[0]),
}

_BY_FUNCTION: Final[dict[str, CallCost]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _traverse),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _scan),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _scan_twice),
    "join": _scan_result_twice,
    **dict.fromkeys(("find", "findAll"), _regex),
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _scan),
    "ip": lambda meter, args, result: 1 if type(args[0]) is Cidr else _scan(meter, args, result),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _scan),
    "validate": _validate,
}

_DEFAULTS: Final[dict[str, CallCost]] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _scan_second),
    **dict.fromkeys(("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"), _scan_inside),
    "in_list": _membership,
    **{f"{name}_{kind}": _scan_shorter for name in ("less", "less_equals") for kind in ("string", "bytes")},
    **{
        f"{name}_{kind}": _scan_shorter
        for name in ("greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    **dict.fromkeys(("add_string", "add_bytes"), _scan_both),
    **dict.fromkeys(("matches", "matches_string"), _regex),
    "contains_string": _search,
}


def call_cost(function: str, overloads: tuple[str, ...]) -> CallCost | int:
    """The cost of a call: a number, or a function where it depends on the values.

    Where the types leave several forms open, cel-go does not tell them apart.
    """
    overload = overloads[0] if len(overloads) == 1 else ""
    if overload.endswith("_sortByAssociatedKeys"):
        return lambda meter, args, result: _pairwise(args[1])
    if function == "sort" and overload:
        return lambda meter, args, result: _pairwise(args[0])
    return _BY_OVERLOAD.get(overload) or _BY_FUNCTION.get(function) or _DEFAULTS.get(overload) or 1
