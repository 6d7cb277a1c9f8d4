"""Checks beyond types: mixed literals, patterns and format strings that are known before the run."""

from collections.abc import Iterator
from typing import Final

from dovetail.core.cel.effort import Effort
from dovetail.core.cel.faults import fault
from dovetail.core.cel.kinds import STRING, Type, is_equivalent, unwrap_optional
from dovetail.core.cel.library.formatting import Clause, clauses
from dovetail.core.cel.library.regexes import compile_pattern
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.syntax import Call, ListExpr, Literal, MapExpr, Node, children
from dovetail.core.cel.values import EvalError

_TEXT_KINDS: Final = frozenset(
    (
        "list",
        "map",
        "int",
        "uint",
        "double",
        "bool",
        "string",
        "timestamp",
        "bytes",
        "duration",
        "type",
        "null",
    )
)
_CLAUSE_KINDS: Final = {
    "s": _TEXT_KINDS,
    "d": frozenset(("int", "uint")),
    "f": frozenset(("double", "string")),
    "e": frozenset(("double", "string")),
    "b": frozenset(("int", "uint", "bool")),
    "x": frozenset(("int", "uint", "string", "bytes")),
    "X": frozenset(("int", "uint", "string", "bytes")),
    "o": frozenset(("int", "uint")),
}


def validate(expression: str, root: Node, effort: Effort | None = None) -> None:
    """Raise ExpressionInvalid at the first part that cannot be right whatever the device.

    Raises what `effort` raises.
    """
    effort = effort or Effort()
    for node, in_format in _walk(root):
        effort.spend()
        problem = None
        match node:
            case Call(function="matches"):
                problem = _pattern(node, effort)
            case Call(function="format"):
                problem = _format(node)
            case ListExpr() if not in_format:
                problem = _mixed_list(node)
            case MapExpr() if not in_format:
                problem = _mixed_map(node)
            case _:
                continue
        if problem is not None:
            raise fault(expression, problem[1], problem[0].at)


Problem = tuple[Node, str] | None


def _walk(root: Node) -> Iterator[tuple[Node, bool]]:
    """Every node, and whether it is part of a call of `format`, where literals may be mixed."""
    waiting = [(root, False)]
    while waiting:
        node, in_format = waiting.pop()
        yield node, in_format
        inside = in_format or (isinstance(node, Call) and node.function == "format")
        waiting.extend((child, inside) for child in children(node))


def _pattern(node: Call, effort: Effort) -> Problem:
    """cel-go looks at the first argument, even where that is the text and not the pattern."""
    argument = node.args[0]
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        return None
    try:
        compile_pattern(argument.value, Meter(effort.budget))
    except EvalError as error:
        return argument, f"invalid matches argument: {error}"
    return None


def _mixed_list(node: ListExpr) -> Problem:
    first: Type | None = None
    for index, element in enumerate(node.elements):
        kind = element.kind
        if index in node.optional:
            kind, is_optional = unwrap_optional(kind)
            if not is_optional:
                return element, "an optional element must have a known type"
        if first is not None and not is_equivalent(first, kind):
            return element, f"expected type '{first}' but found '{kind}'"
        first = first or kind
    return None


def _mixed_map(node: MapExpr) -> Problem:
    key: Type | None = None
    value: Type | None = None
    for entry in node.entries:
        kind = entry.value.kind
        if entry.optional:
            kind, is_optional = unwrap_optional(kind)
            if not is_optional:
                return entry.value, "an optional entry must have a known type"
        if key is not None and not is_equivalent(key, entry.key.kind):
            return entry.key, f"expected type '{key}' but found '{entry.key.kind}'"
        if value is not None and not is_equivalent(value, kind):
            return entry.value, f"expected type '{value}' but found '{kind}'"
        key, value = key or entry.key.kind, value or kind
    return None


def _format(node: Call) -> Problem:
    """A constant format string with a literal list of arguments: clauses and arguments must agree."""
    template = node.target
    if not isinstance(template, Literal) or template.kind != STRING or len(node.args) != 1:
        return None
    if not isinstance(node.args[0], ListExpr) or "string_format" not in node.overloads:
        return None
    args = node.args[0].elements
    try:
        wanted = [piece for piece in clauses(template.value) if isinstance(piece, Clause)]
    except EvalError as error:
        return node, str(error)
    if len(wanted) != len(args):
        return node, f"format has places for {len(wanted)} arguments, and is given {len(args)}"
    return next(
        (problem for part, clause in zip(args, wanted, strict=True) if (problem := _argument(part, clause))),
        None,
    )


def _argument(node: Node, clause: Clause) -> Problem:
    if node.kind.kind != "dyn" and node.kind.kind not in _CLAUSE_KINDS[clause.verb]:
        return node, f"%{clause.verb} does not take {node.kind}"
    if clause.verb != "s":
        return None
    match node:
        case ListExpr():
            parts = node.elements
        case MapExpr():
            parts = [part for entry in node.entries for part in (entry.key, entry.value)]
        case _:
            return None
    return next((problem for part in parts if (problem := _argument(part, clause))), None)
