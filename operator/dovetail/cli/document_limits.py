"""What a document may hold: no more than it says with aliases, no number or text that JSON does not have."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

MOST_VALUES = 1_000_000
"""How many values the aliases of a document may stand for, beyond those that are written."""

_SHOWN = 200
"""So many characters of a path are shown."""

_Place = tuple[Any, Any] | None
"""A field or index, behind the place of what holds it."""


def refuse_size(value: Any) -> str:
    """Why a document is too large or endless once its aliases are written out, or nothing."""
    sizes: dict[int, int] = {}
    open_: set[int] = set()
    stack = [value]
    written = 0
    while stack:
        top = stack[-1]
        children = _containers(top)
        if id(top) in sizes:
            stack.pop()
        elif id(top) in open_:
            sizes[id(top)] = len(top) + sum(sizes[id(child)] for child in children)
            written += len(top)
            if sizes[id(top)] - written > MOST_VALUES:
                return f"its aliases stand for more than {MOST_VALUES} values"
            open_.discard(id(top))
            stack.pop()
        elif isinstance(top, dict | list):
            open_.add(id(top))
            if any(id(child) in open_ for child in children):
                return "an alias contains itself"
            stack.extend(child for child in children if id(child) not in sizes)
        else:
            stack.pop()
    return ""


def refuse_values(value: Any) -> str:
    """Where a document has something that no JSON text can carry, and what; or nothing.

    Halves of surrogate pairs are no characters, and numbers beyond all floats are none either.
    """
    seen: set[int] = set()
    stack: list[tuple[Any, _Place]] = [(value, None)]
    while stack:
        top, place = stack.pop()
        if reason := _refuse_value(top):
            return f"{_path(place)}: {reason}"
        if isinstance(top, dict | list) and id(top) not in seen:
            seen.add(id(top))
            for key, child in reversed(list(_entries(top))):
                if reason := _refuse_value(key):
                    return f"{_path((key, place))}: the field's name: {reason}"
                stack.append((child, (key, place)))
    return ""


def _refuse_value(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "the number is too large"
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= each <= "\udfff" for each in value):
        return "the text is no Unicode: half of a surrogate pair stands alone"
    return ""


def _containers(value: Any) -> list[Any]:
    values: Iterable[Any] = value.values() if isinstance(value, Mapping) else value
    return (
        [each for each in values if isinstance(each, dict | list)] if isinstance(value, dict | list) else []
    )


def _entries(value: Any) -> Iterator[tuple[Any, Any]]:
    return iter(value.items()) if isinstance(value, dict) else iter(enumerate(value))


def _path(place: _Place) -> str:
    parts: list[str] = []
    while place is not None:
        key, place = place
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    path = "".join(reversed(parts)).removeprefix(".") or "the document"
    return path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
