"""The fields that Kubernetes 1.37 knows, and objects read by them: unknown fields, wrong types, nulls.

`fields.json` comes from the OpenAPI documents of a running API server (`make fields`).
"""

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, Final

from dovetail.core.quantity import Quantity
from dovetail.core.validation.faults import Fault

Fields = Mapping[str, str]

_INTEGERS: Final = {"int32": 1 << 31, "int64": 1 << 63}
_TIME: Final = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[T]([01]\d|2[0-3]):[0-5]\d:[0-5]\d([.,]\d+)?"
    r"(Z|[+-]([01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_ZEROS: Final[Mapping[str, Any]] = {
    "string": "",
    "boolean": False,
    "int32": 0,
    "int64": 0,
    "Quantity": "0",
    "IntOrString": 0,
    "Time": None,
    "any": None,
    "byte": "",
}
_LEAVES: Final = frozenset(_ZEROS)

Path = tuple["Path", str | int] | None
"""A path to a field, from its end to its beginning: it is written out only where something is wrong."""


@cache
def _types() -> tuple[Mapping[str, str], Mapping[str, Fields]]:
    """The type of each kind, and the fields of each type; read when first asked for."""
    found = json.loads(files(__package__).joinpath("fields.json").read_text())
    return found["kinds"], found["types"]


def knows(api_version: str, kind: str) -> bool:
    """Whether the fields of a kind are known."""
    return f"{api_version}/{kind}" in _types()[0]


class Reading:
    """One object, read as the API server reads JSON.

    `body` has no unknown fields and no nulls; what has the wrong type is left out.
    `unknown` are fields that Kubernetes does not know, `wrong` values of the wrong type.
    """

    def __init__(self, body: Mapping[str, Any], api_version: str, kind: str) -> None:
        kinds, self._all = _types()
        self.unknown: list[Fault] = []
        self.wrong: list[Fault] = []
        self.body: dict[str, Any] = self._object(body, kinds[f"{api_version}/{kind}"], None)

    def _object(self, value: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
        fields = self._all[name]
        clean: dict[str, Any] = {}
        for field, part in value.items():
            if (kind := fields.get(field)) is None:
                self.unknown.append(Fault(written((path, field)), self._unknown(field, name, path)))
            elif part is not None:
                self._put(clean, field, part, kind, (path, field))
        return clean

    def _unknown(self, field: str, name: str, path: Path) -> str:
        """What is said of a field that a type does not have: the nearest name, or where it belongs."""
        fields = self._all[name]
        near = get_close_matches(field, fields, n=1, cutoff=0.6)
        near = near or [known for known in fields if known.lower() == field.lower()]
        if near:
            return f"Kubernetes knows no such field; did you mean {near[0]!r}?"
        below = self._below(field, name)
        place = f"; it belongs in {written(path)}.{below}" if below else ""
        return f"Kubernetes knows no such field here{place}"

    def _below(self, field: str, name: str) -> str:
        """Where below a type the field is, nearest first, as `devices.requests[].exactly`."""
        ways = [("", name)]
        seen = {name, "meta.v1.ObjectMeta"}
        for way, kind in ways:
            if way and field in self._all[kind]:
                return way.removeprefix(".")
            for part, of in self._all[kind].items():
                inner = of.removeprefix("[]").removeprefix("{}")
                if inner in self._all and inner not in seen:
                    seen.add(inner)
                    ways.append((f"{way}.{part}{'[]' if of.startswith('[]') else ''}", inner))
        return ""

    def _put(self, clean: dict[str, Any], field: str, part: Any, kind: str, path: Path) -> None:
        try:
            clean[field] = self._value(part, kind, path)
        except _WrongType as error:
            self.wrong.append(Fault(written(error.path), str(error)))

    def _value(self, value: Any, kind: str, path: Path) -> Any:
        if kind in _LEAVES:
            return value if kind == "any" else _leaf(value, kind, path)
        if kind.startswith("[]"):
            return self._list(value, kind[2:], path)
        if not isinstance(value, Mapping):
            raise _WrongType(path, f"a mapping is expected, not {_shown(value)}")
        if not kind.startswith("{}"):
            return self._object(value, kind, path)
        clean: dict[str, Any] = {}
        for key, part in value.items():
            self._put(clean, key, self._zero(kind[2:]) if part is None else part, kind[2:], (path, key))
        return clean

    def _list(self, value: Any, kind: str, path: Path) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise _WrongType(path, f"a list is expected, not {_shown(value)}")
        return [
            self._zero(kind) if part is None else self._value(part, kind, (path, index))
            for index, part in enumerate(value)
        ]

    @staticmethod
    def _zero(kind: str) -> Any:
        """What null stands for where a value has to be: an entry of a list or map."""
        if kind in _ZEROS:
            return _ZEROS[kind]
        return [] if kind.startswith("[]") else {}


class _WrongType(ValueError):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.path = path


def written(path: Path) -> str:
    """A path as the API server writes it: `spec.devices.requests[0].name`."""
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.append(f"[{part}]" if isinstance(part, int) else f".{part}")
    return "".join(reversed(parts)).removeprefix(".")


def _leaf(value: Any, kind: str, path: Path) -> Any:
    if kind in ("string", "byte"):
        fits = isinstance(value, str)
    elif kind == "boolean":
        fits = isinstance(value, bool)
    elif kind in _INTEGERS:
        fits = _is_integer(value, _INTEGERS[kind])
    elif kind == "IntOrString":
        fits = isinstance(value, str) or _is_integer(value, _INTEGERS["int32"])
    elif kind == "Time":
        fits = isinstance(value, str) and _TIME.fullmatch(value) is not None
    else:
        return _quantity(value, path)
    if not fits:
        raise _WrongType(path, f"{_EXPECTED[kind]} is expected, not {_shown(value)}")
    return value


_EXPECTED: Final = {
    "string": "a string",
    "byte": "a string",
    "boolean": "true or false",
    "int32": "a 32-bit integer",
    "int64": "a 64-bit integer",
    "IntOrString": "an integer or a string",
    "Time": "a time such as 2026-01-31T12:00:00Z",
}


def _is_integer(value: Any, limit: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit


def _quantity(value: Any, path: Path) -> Any:
    if not isinstance(value, str | int | float):
        raise _WrongType(path, f"a quantity is expected, not {_shown(value)}")
    try:
        Quantity.parse(value)
    except ValueError as error:
        raise _WrongType(path, str(error)) from error
    return value


def _shown(value: Any) -> str:
    """A value as the user wrote it, or what it is where that would be long."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:37]}..."
