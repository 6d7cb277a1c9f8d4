"""Chains of selections and indexes: `device.attributes["d"].id`, `a.?b[?c]`, `has(a.b)`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dovetail.core.cel.pieces import METER, VIEW, Frame, Piece, Run, charged
from dovetail.core.cel.syntax import Call, Ident, Literal, Node, Select
from dovetail.core.cel.values import (
    LARGEST_INT,
    MISSING,
    NONE,
    SMALLEST_INT,
    CelMap,
    EvalError,
    IdMap,
    NoSuchKey,
    Optional,
    Uint,
)

_KEYS: Final = frozenset((str, int, Uint, bool, float))
_OPTIONAL_LINKS: Final = frozenset(("_?._", "_[?_]"))

OWN: Final = {"driver", "name", "pool", "allowMultipleAllocations"}
"""Fields of the device that are no maps."""


def is_link(node: Node) -> bool:
    """Whether a node selects from, or indexes, another."""
    if isinstance(node, Select):
        return not node.is_test and node.constant is None
    return isinstance(node, Call) and node.function in ("_[_]", *_OPTIONAL_LINKS)


def unchained(node: Node) -> tuple[Node, list[Node]]:
    """The root of a chain, and its links from left to right."""
    links: list[Node] = []
    if isinstance(node, Select) and node.is_test:
        links.append(node)
        node = node.operand
    while is_link(node):
        links.append(node)
        node = node.operand if isinstance(node, Select) else _call(node).args[0]
    return node, links[::-1]


def _call(node: Node) -> Call:
    assert isinstance(node, Call)
    return node


def constant_path(node: Node) -> tuple[str, ...] | None:
    """What the links read of the device where that is known before the run: `("attributes", "d", "id")`."""
    root, links = unchained(node)
    if not isinstance(root, Ident) or not root.is_global or root.name != "device":
        return None
    keys = [link_key(link) for link in links]
    return (
        tuple(key for key in keys if isinstance(key, str)) if all(isinstance(k, str) for k in keys) else None
    )


def link_key(node: Node) -> Any:
    """The constant that a link selects by, or `MISSING`."""
    if isinstance(node, Select):
        return node.field
    argument = _call(node).args[1]
    return argument.value if isinstance(argument, Literal) else MISSING


def is_valid_key(key: Any) -> bool:
    """Whether cel-go can index by such a value at all."""
    return type(key) in _KEYS


@dataclass(frozen=True, slots=True)
class Link:
    """One link: its key, constant or computed, and whether absence is allowed."""

    key: Any
    compute: Run | None = None
    optional: bool = False

    def value(self, frame: Frame) -> Any:
        """The key in this evaluation."""
        if self.compute is None:
            return self.key
        key = self.compute(frame)
        if type(key) not in _KEYS:
            raise EvalError("invalid qualifier type")
        return key


def find(target: Any, key: Any) -> Any:
    """The part of a value, or `MISSING`; EvalError where a list is indexed by what is no number."""
    if isinstance(target, CelMap):
        return target.find(key)
    if not isinstance(target, list):
        return MISSING
    index = _index(key)
    return target[index] if 0 <= index < len(target) else MISSING


def get(target: Any, key: Any) -> Any:
    """The part of a value; NoSuchKey where there is none."""
    found = find(target, key)
    if found is MISSING:
        path = (target.of, target.domain, str(key)) if type(target) is IdMap else ()
        raise NoSuchKey(key, path)
    return found


def _index(key: Any) -> int:
    if type(key) is int:
        return key
    if type(key) is Uint and key <= LARGEST_INT:
        return int(key)
    if type(key) is float and math.isfinite(key) and key == int(key) and SMALLEST_INT < key < LARGEST_INT:
        return int(key)
    raise EvalError("unsupported index in list")


def plan_direct(path: tuple[str, ...], *, is_test: bool) -> Run | None:
    """A read of the device whose place is known before the run, straight from the view."""
    if len(path) == 1 and path[0] in OWN and not is_test:
        name = path[0]
        return lambda frame: getattr(frame[VIEW], name)
    if len(path) != 3 or path[0] not in ("attributes", "capacity"):
        return None
    of, domain, ident = path
    key = f"{domain}/{ident}"
    if is_test:
        return _test(of, key)
    return _read_attribute(key, path) if of == "attributes" else _read_capacity(key, path)


def _test(of: str, key: str) -> Run:
    if of == "attributes":
        return lambda frame: frame[VIEW].attributes[key] is not MISSING
    return lambda frame: key in frame[VIEW].capacity


def _read_attribute(key: str, path: tuple[str, ...]) -> Run:
    def read(frame: Frame) -> Any:
        value = frame[VIEW].attributes[key]
        if value is MISSING:
            raise NoSuchKey(path[2], path)
        return value

    return read


def _read_capacity(key: str, path: tuple[str, ...]) -> Run:
    def read(frame: Frame) -> Any:
        value = frame[VIEW].capacity.get(key, MISSING)
        if value is MISSING:
            raise NoSuchKey(path[2], path)
        return value

    return read


def plan_general(root: Piece, links: list[Link], *, is_test: bool, metered: bool) -> Piece:
    """A chain from any root; each link costs a unit once it is followed."""
    start = root.as_branch
    follow = _follow(links, is_test=is_test, charge=_charge if metered else _no_charge)

    def bare(frame: Frame) -> Any:
        return follow(start(frame), frame)

    extra = 0 if root.is_conditional or is_test or not metered else 1
    return Piece(charged(bare, extra), bare=bare)


def _charge(frame: Frame) -> None:
    frame[METER].cost += 1


def _no_charge(_: Frame) -> None:
    return


def _follow(
    links: list[Link], *, is_test: bool, charge: Callable[[Frame], None]
) -> Callable[[Any, Frame], Any]:
    last = len(links) - 1 if is_test else len(links)

    def follow(target: Any, frame: Frame) -> Any:
        is_optional = type(target) is Optional
        if is_optional:
            if not target.has_value:
                return False if is_test else target
            target = target.value
        for position, link in enumerate(links):
            key = link.value(frame)
            is_optional = is_optional or link.optional
            if not is_optional and position != last:
                charge(frame)
                target = get(target, key)
                continue
            found = find(target, key)
            if found is not MISSING or position == last:
                charge(frame)
            if position == last:
                return found is not MISSING
            if found is MISSING:
                return False if is_test else NONE
            target = found
        return Optional(target) if is_optional else target

    return follow
