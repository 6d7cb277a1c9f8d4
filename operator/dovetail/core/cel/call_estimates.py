"""What a call may cost at most, and how large its result may be, as Kubernetes and cel-go estimate it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from dovetail.core.cel.cost import LIST
from dovetail.core.cel.estimates import LARGEST, NOTHING, ONE, UNKNOWN, Range, exactly, wrapped
from dovetail.core.cel.kinds import CIDR, FORMAT, IP, QUANTITY, SEMVER, URL, Type
from dovetail.core.cel.syntax import Literal, Node

TRAVERSAL: Final = 0.1
REGEX: Final = 0.25
NAMED_FORMAT: Final = 128
LONGEST_FORMAT: Final = 64
AUTHORIZATION: Final = 350_000

Estimate = tuple[Range, Range | None]
"""The cost of a call without its arguments, and the size of the result where that can be told."""


class Sizes(Protocol):
    """Tells how large the parts of a device may be."""

    def known(self, path: tuple[str, ...]) -> Range | None:
        """The size of a part of the device."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument: its type, what it reads of the device, its size and its entries' where they are known."""

    node: Node | None
    kind: Type
    path: tuple[str, ...]
    computed: Range | None
    entries: Range | None = None

    def size(self, sizes: Sizes) -> Range:
        """How large it may be."""
        return self.computed or sizes.known(self.path) or UNKNOWN

    @property
    def own_size(self) -> Range:
        """The same by the expression alone."""
        return self.computed or UNKNOWN


@dataclass(frozen=True, slots=True)
class CallForm:
    """One form of a function, applied."""

    function: str
    overload: str
    target: Operand | None
    args: list[Operand]
    sizes: Sizes

    def size(self, operand: Operand) -> Range:
        """How large an operand may be."""
        return operand.size(self.sizes)


Estimator = Callable[[CallForm], Estimate | None]


def estimate_call(call: CallForm) -> Estimate:
    """The estimate by the form, by the function, or for what every function costs."""
    for table, name in ((_FORMS, call.overload), (_FUNCTIONS, call.function), (_CORE, call.overload)):
        estimator = table.get(name)
        found = estimator(call) if estimator is not None else None
        if found is not None:
            return found
    return ONE, None


def _element(operand: Operand) -> Operand | None:
    if not operand.kind.params:
        return None
    return Operand(
        None, operand.kind.params[0], (*operand.path, "@items") if operand.path else (), operand.entries
    )


def _constant(operand: Operand, otherwise: int) -> int:
    node = operand.node
    if not isinstance(node, Literal) or type(node.value) is not int:
        return otherwise
    return max(0, node.value)


# -- cel-go's lists and sets ----------------------------------------------------------------------


def _list_call(factor: float, size: Range) -> Estimate:
    return size.scaled(factor) + ONE + exactly(LIST), size


def _slice(call: CallForm) -> Estimate | None:
    if call.target is None or len(call.args) != 2:
        return None
    start = _constant(call.args[0], 0)
    end = _constant(call.args[1], call.size(call.target).most)
    return _list_call(1, exactly(wrapped(end - start)))


def _flatten(call: CallForm) -> Estimate | None:
    if call.target is None:
        return None
    depth = _constant(call.args[0], LARGEST) if call.args else 1
    return _list_call(float(depth), call.size(call.target))


def _pairwise(factor: float, *, by_keys: bool = False) -> Estimator:
    def estimate(call: CallForm) -> Estimate | None:
        if call.target is None or len(call.args) != int(by_keys):
            return None
        size = call.size(call.args[0] if by_keys else call.target)
        return _list_call(factor, size * size)

    return estimate


def _sets(factor: float) -> Estimator:
    return lambda call: (
        (call.size(call.args[0]) * call.size(call.args[1])).scaled(factor) + ONE,
        None,
    )


_ORDERED: Final = ("int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp")
_FORMS: Final[dict[str, Estimator]] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": lambda call: _list_call(1, exactly(_constant(call.args[0], LARGEST))),
    "list_reverse": lambda call: _list_call(1, call.size(call.target)) if call.target is not None else None,
    "list_distinct": _pairwise(2.0),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    **{f"list_{kind}_sort": _pairwise(2.0) for kind in _ORDERED},
    **{f"list_{kind}_sort": _pairwise(2.1) for kind in ("string", "bytes")},
    **{f"list_{kind}_sortByAssociatedKeys": _pairwise(2.0, by_keys=True) for kind in _ORDERED},
    **{f"list_{kind}_sortByAssociatedKeys": _pairwise(2.1, by_keys=True) for kind in ("string", "bytes")},
}


# -- Kubernetes' functions ------------------------------------------------------------------------


def _fixed(cost: int) -> Estimator:
    return lambda call: (exactly(cost), None)


def _each_element(call: CallForm) -> Estimate | None:
    if call.target is None:
        return None
    element, size = _element(call.target), call.size(call.target)
    if element is not None:
        cost = ONE
        if element.kind.kind in ("string", "bytes"):
            cost += call.size(element).scaled(TRAVERSAL)
        return size * cost, None
    return (size if call.function == "includes" else size.scaled(TRAVERSAL)), None


def _scan_argument(factor: float, *, keeps_size: bool = False) -> Estimator:
    def estimate(call: CallForm) -> Estimate | None:
        if not call.args:
            return None
        size = call.size(call.args[0])
        return size.scaled(factor), size if keeps_size else None

    return estimate


def _scan_target(call: CallForm) -> Estimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    return size.scaled(TRAVERSAL), size


def _replace(call: CallForm) -> Estimate | None:
    if call.target is None or len(call.args) < 2:
        return None
    size, old, new = call.size(call.target), call.size(call.args[0]), call.size(call.args[1])
    times_most = kept_most = times_least = kept_least = 0
    if old.least == 0:
        times_most, kept_most = min(size.most + 1, LARGEST), size.most
    elif new.most <= old.least:
        kept_most = size.most
    else:
        times_most = min(math.ceil(float(size.most) / float(old.least)), LARGEST)
    if old.most == 0:
        times_least, kept_least = min(size.least + 1, LARGEST), size.least
    elif old.most <= new.least:
        kept_least = size.least
    else:
        times_least = math.ceil(float(size.least) / float(old.most))
    result = Range(times_least, times_most) * new + Range(kept_least, kept_most)
    return size.scaled(2 * TRAVERSAL), result


def _split(call: CallForm) -> Estimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    most = size.most
    if len(call.args) > 1:
        node = call.args[1].node
        if isinstance(node, Literal) and type(node.value) is int:
            most = wrapped(node.value)
    return size.scaled(2 * TRAVERSAL), Range(0, most)


def _join(call: CallForm) -> Estimate | None:
    if call.target is None:
        return None
    count, size = call.size(call.target), NOTHING
    element = _element(call.target)
    if element is not None:
        size = count * call.size(element)
    if call.args:
        size += call.size(call.args[0]) * Range(max(0, count.least - 1), max(0, count.most - 1))
    return size.scaled(TRAVERSAL), size


def _search(call: CallForm) -> Estimate | None:
    if call.target is None or not call.args:
        return None
    size = call.size(call.target)
    cost = (size + ONE).scaled(TRAVERSAL) * call.size(call.args[0]).scaled(REGEX)
    return cost, Range(0, size.most)


_ADDRESS: Final = Range(4, 16)


def _ip(call: CallForm) -> Estimate | None:
    return (ONE, None) if call.overload == "cidr_ip" else _scan_argument(TRAVERSAL)(call)


def _contains_address(call: CallForm) -> Estimate | None:
    if not call.args:
        return None
    cost = (_ADDRESS + _ADDRESS).scaled(TRAVERSAL)
    if call.function == "containsCIDR":
        cost += _ADDRESS.scaled(TRAVERSAL) + ONE
    if call.overload in ("cidr_contains_ip_string", "cidr_contains_cidr_string"):
        cost += call.size(call.args[0]).scaled(TRAVERSAL)
    return cost, None


def _validate(call: CallForm) -> Estimate | None:
    if not call.args:
        return None
    return call.size(call.args[0]).scaled(TRAVERSAL).scaled(NAMED_FORMAT * REGEX), None


def _equal(call: CallForm) -> Estimate | None:
    first, second = call.args
    if first.kind != second.kind:
        return None
    if first.kind in (IP, CIDR, QUANTITY, SEMVER):
        return ONE, None
    if first.kind == FORMAT:
        return Range(1, LONGEST_FORMAT).scaled(TRAVERSAL), None
    if first.kind == URL:
        size = second.computed or ONE
        return Range(1, size.most).scaled(TRAVERSAL), None
    return None


_FUNCTIONS: Final[dict[str, Estimator]] = {
    "check": _fixed(AUTHORIZATION),
    **dict.fromkeys(
        (
            *("serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed"),
            *(
                "reason",
                "error",
                "errored",
                "masked",
                "prefixLength",
                "family",
                "isUnspecified",
                "isLoopback",
            ),
            *("isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign"),
            *("asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo"),
            *("add", "sub", "major", "minor", "patch", "getScheme", "getHostname", "getHost", "getPort"),
            *("getEscapedPath", "getQuery"),
        ),
        _fixed(1),
    ),
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"),
        _each_element,
    ),
    "url": _scan_argument(TRAVERSAL, keeps_size=True),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _scan_target),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _search),
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _scan_argument(TRAVERSAL)
    ),
    "ip": _ip,
    "ip.isCanonical": _scan_argument(2 * TRAVERSAL),
    **dict.fromkeys(("containsIP", "containsCIDR"), _contains_address),
    "validate": _validate,
    "_==_": _equal,
}


# -- cel-go's own functions, but for those that look at more than their operands ----------------------


def _format(call: CallForm) -> Estimate | None:
    return None if call.target is None else (call.target.own_size.scaled(TRAVERSAL), None)


def _to_bytes(call: CallForm) -> Estimate:
    size = call.args[0].own_size
    return size.scaled(TRAVERSAL), Range(size.least, wrapped(size.most * 4))


def _to_text(call: CallForm) -> Estimate:
    size = call.args[0].own_size
    return size.scaled(TRAVERSAL), Range(size.least // 4, size.most)


def _quote(call: CallForm) -> Estimate:
    size = call.args[0].own_size
    return size.scaled(TRAVERSAL), Range(wrapped(size.least + 2), wrapped(size.most * 2 + 2))


def _affix(call: CallForm) -> Estimate:
    return call.args[0].own_size.scaled(TRAVERSAL), None


def _matches(call: CallForm) -> Estimate:
    text, pattern = (call.target, call.args[0]) if call.target is not None else call.args
    return (text.own_size + ONE).scaled(TRAVERSAL) * pattern.own_size.scaled(REGEX), None


def _contains(call: CallForm) -> Estimate | None:
    if call.target is None:
        return None
    return call.target.own_size.scaled(TRAVERSAL) * call.args[0].own_size.scaled(TRAVERSAL), None


def _compare(call: CallForm) -> Estimate:
    most = min(call.args[0].own_size.most, call.args[1].own_size.most)
    return Range(1 if most else 0, most).scaled(TRAVERSAL), None


def _add_texts(call: CallForm) -> Estimate:
    size = call.args[0].own_size + call.args[1].own_size
    return size.scaled(TRAVERSAL), size


_CORE: Final[dict[str, Estimator]] = {
    "string_format": _format,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_text,
    "strings_quote": _quote,
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _affix),
    "in_list": lambda call: (call.args[1].own_size, None),
    **dict.fromkeys(("matches", "matches_string"), _matches),
    "contains_string": _contains,
    **dict.fromkeys(("add_string", "add_bytes"), _add_texts),
    "add_list": lambda call: (ONE, call.args[0].own_size + call.args[1].own_size),
    "conditional": lambda call: (NOTHING, call.args[1].own_size | call.args[2].own_size),
    **dict.fromkeys(
        [
            f"{name}_{kind}"
            for name in ("less", "greater", "less_equals", "greater_equals")
            for kind in ("string", "bytes")
        ]
        + ["equals", "not_equals"],
        _compare,
    ),
}
