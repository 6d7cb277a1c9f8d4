"""The tree that an expression is parsed into, macros expanded."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from dovetail.core.cel.effort import TooLarge
from dovetail.core.cel.kinds import DYN, Type

MAX_DEPTH: Final = 250
"""Expressions within expressions, and operations within operations, each counted as cel-go does."""

MAX_NODES: Final = 20_000
"""Parts of an expression, its macros expanded. Without macros that repeat their target, as `optMap` does,
what the API server takes for one expression stays well below."""

Place = tuple[int, int]
"""Line and column, from 1; zeros where unknown."""


@dataclass(eq=False, slots=True, kw_only=True)
class Node:
    """A part of an expression: where it begins (from 1), and its type once the checker has seen it.

    A part may belong to several others, and is then the same object in all of them.
    `size` and `depth` count it as often as it is used; a part that would be too large or too deep is
    never made: `TooLarge` is raised instead.
    """

    at: Place = (0, 0)
    kind: Type = DYN
    size: int = field(default=1, init=False)
    depth: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        size, depth = 1, 0
        for child in children(self):
            size += child.size
            depth = max(depth, child.depth)
        self.size, self.depth = size, depth + 1
        if depth > MAX_DEPTH:
            raise TooLarge(f"it is nested more than {MAX_DEPTH} deep")
        if size > MAX_NODES:
            raise TooLarge(f"it is too large: with its macros expanded it has more than {MAX_NODES} parts")


@dataclass(eq=False, slots=True)
class Literal(Node):
    """A constant."""

    value: Any


@dataclass(eq=False, slots=True)
class Ident(Node):
    """A name; the checker says whether it is a variable or a type (`constant` is then the type's value)."""

    name: str
    constant: Any = None
    is_global: bool = False


@dataclass(eq=False, slots=True)
class Select(Node):
    """`operand.field`, or `has(operand.field)`; the checker may find that it is a qualified name."""

    operand: Node
    field: str
    is_test: bool = False
    constant: Any = None


@dataclass(eq=False, slots=True)
class Call(Node):
    """A function, operator or method applied; `overloads` are the ids that the types allow."""

    function: str
    target: Node | None
    args: list[Node]
    overloads: tuple[str, ...] = ()

    @property
    def operands(self) -> list[Node]:
        """Target and arguments."""
        return self.args if self.target is None else [self.target, *self.args]


@dataclass(eq=False, slots=True)
class ListExpr(Node):
    """`[a, ?b]`."""

    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(eq=False, slots=True)
class Entry:
    """One entry of a map or message."""

    key: Any
    value: Node
    optional: bool = False


@dataclass(eq=False, slots=True)
class MapExpr(Node):
    """`{a: b, ?c: d}`: the keys are nodes."""

    entries: list[Entry]


@dataclass(eq=False, slots=True)
class StructExpr(Node):
    """`pkg.Message{field: value}`: the keys are names."""

    name: str
    fields: list[Entry]


@dataclass(eq=False, slots=True)
class Fold(Node):
    """A loop: what every comprehension macro, and cel.bind, becomes."""

    range: Node
    variable: str
    variable2: str
    accumulator: str
    init: Node
    condition: Node
    step: Node
    result: Node


def children(node: Node) -> Iterator[Node]:
    """The direct parts of a node, in source order."""
    match node:
        case Select():
            yield node.operand
        case Call():
            yield from node.operands
        case ListExpr():
            yield from node.elements
        case MapExpr():
            for entry in node.entries:
                yield entry.key
                yield entry.value
        case StructExpr():
            for entry in node.fields:
                yield entry.value
        case Fold():
            yield from (node.range, node.init, node.condition, node.step, node.result)
        case _:
            return


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(children(current))
