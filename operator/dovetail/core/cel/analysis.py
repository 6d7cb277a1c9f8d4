"""What is known of an expression before it runs: what it can read, and whether it could become expensive."""

import math
from collections.abc import Mapping
from typing import Final

from dovetail.core.cel import chains
from dovetail.core.cel.macros import UNUSED
from dovetail.core.cel.meter import LIMIT
from dovetail.core.cel.syntax import (
    Call,
    Fold,
    Ident,
    ListExpr,
    Literal,
    Node,
    Select,
    StructExpr,
    children,
    walk,
)
from dovetail.core.cel.values import MISSING

LONGEST_ATTRIBUTE: Final = 64
"""Characters of an attribute's value, and elements of its lists, that the API allows at most."""

_GROWING: Final = frozenset(
    (
        "_+_",
        "replace",
        "join",
        "format",
        "split",
        "findAll",
        "lists.range",
        "flatten",
        "distinct",
        "sort",
        "@sortByAssociatedKeys",
        "sets.contains",
        "sets.equivalent",
        "sets.intersects",
        "validate",
        "cel.@mapInsert",
        "strings.quote",
    )
)
"""Functions whose result, or whose cost, can outgrow what goes in."""

Paths = Mapping[str, tuple[str, ...]]
"""Variables of `cel.bind` that stand for a part of the device."""


def can_be_expensive(root: Node) -> bool:
    """Whether an evaluation could come near the limit of cost; if not, nothing needs to be counted."""
    longest, calls = LONGEST_ATTRIBUTE, 0
    for node in walk(root):
        match node:
            case Fold() if node.variable != UNUSED:
                return True
            case StructExpr():
                return True
            case Call() if node.function in _GROWING:
                return True
            case Call():
                calls += 1
            case Literal() if isinstance(node.value, (str, bytes)):
                longest = max(longest, len(node.value))
            case ListExpr():
                longest = max(longest, len(node.elements))
                calls += LONGEST_ATTRIBUTE
            case _:
                calls += 1
    worst_call = math.ceil((longest + 1) * 0.1) * math.ceil(longest * 0.25) + longest
    return calls * worst_call > LIMIT // 2


def reads(root: Node) -> frozenset[str] | None:
    """Which parts of the device the value can depend on; None where that may be all of it.

    `domain/id` is an attribute, `domain/*` all attributes of a domain;
    with `capacity:` before it, a capacity or all capacities of a domain;
    `device:driver` and the like are the device's own fields.
    """
    found: set[str] = set()
    return frozenset(found) if _collect(root, {}, found) else None


def _collect(node: Node, paths: Paths, found: set[str]) -> bool:
    """Add what a node reads; False where it may read everything."""
    path = _path(node, paths)
    if path is not None:
        name = _name(path)
        if name is None:
            return False
        found.add(name)
        return _collect_keys(node, paths, found)
    if chains.is_link(node):
        start, links = chains.unchained(node)
        keys = [link.args[1] for link in links if isinstance(link, Call)]
        return all(_collect(part, paths, found) for part in (start, *keys))
    if isinstance(node, Fold) and node.variable == UNUSED:
        return _collect_binding(node, paths, found)
    if isinstance(node, Fold):
        inner = {
            name: path
            for name, path in paths.items()
            if name not in (node.variable, node.variable2, node.accumulator)
        }
        outer = _collect(node.range, paths, found) and _collect(node.init, paths, found)
        return outer and all(
            _collect(part, inner, found) for part in (node.condition, node.step, node.result)
        )
    return all(_collect(child, paths, found) for child in children(node))


def _collect_binding(node: Fold, paths: Paths, found: set[str]) -> bool:
    path = _path(node.init, paths)
    inner = {name: known for name, known in paths.items() if name != node.accumulator}
    if path is not None and len(path) < 3:
        inner[node.accumulator] = path
        return _collect(node.result, inner, found)
    return _collect(node.init, paths, found) and _collect(node.result, inner, found)


def _collect_keys(node: Node, paths: Paths, found: set[str]) -> bool:
    """What the computed keys behind the known part of a chain read."""
    _, links = chains.unchained(node)
    return all(
        _collect(link.args[1], paths, found)
        for link in links
        if isinstance(link, Call) and chains.link_key(link) is MISSING
    )


def _path(node: Node, paths: Paths) -> tuple[str, ...] | None:
    """The known part of what a chain reads of the device; None for everything else."""
    root, links = chains.unchained(node)
    if isinstance(root, Select) or not isinstance(root, Ident):
        return None
    if root.is_global and root.name == "device":
        path: tuple[str, ...] = ()
    elif root.name in paths and not root.is_global:
        path = paths[root.name]
    else:
        return None
    for link in links:
        key = chains.link_key(link)
        if not isinstance(key, str):
            break
        path = (*path, key)
    return path


def _name(path: tuple[str, ...]) -> str | None:
    if not path:
        return None
    of, *rest = path
    if of in chains.OWN:
        return f"device:{of}"
    if of not in ("attributes", "capacity") or not rest:
        return None
    prefix = "capacity:" if of == "capacity" else ""
    return f"{prefix}{rest[0]}/{rest[1] if len(rest) > 1 else '*'}"
