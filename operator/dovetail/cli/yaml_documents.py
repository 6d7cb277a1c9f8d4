"""YAML and JSON as Kubernetes' own tools read them: documents, each a value or a reason.

Kubernetes turns YAML into JSON with a YAML 1.1 reader that knows no base-60 numbers and no timestamps,
so that the PCI address `0008:06:00.0` stays a string (sigs.k8s.io/yaml).
A key that appears twice is refused: the text says two things.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from dovetail.cli.document_limits import refuse_size, refuse_values

MOST_MERGED = 200_000
"""How many keys a document may take over by merging: a chain of merges grows with its square."""


_BASE = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SEPARATOR = re.compile(r"^\ufeff?---(?=[ \t]|\r?$)", re.MULTILINE)
_END = re.compile(r"^\.\.\.[ \t]*\r?$", re.MULTILINE)
_BLANK = re.compile(r"(?:\s|^[ \t]*#.*$|^%.*$)*", re.MULTILINE)

_TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_INTEGER = r"[-+]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]+|[1-9][0-9_]*|0)"
_FLOAT = r"[-+]?(?:\.[0-9][0-9_]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_HALF = re.compile(r"\\u(?:0000)?d[89a-f]", re.IGNORECASE)
"""What may be half of a surrogate pair."""
_LONG_NUMBER = re.compile(r"[0-9]{19}|[0-9.][eE]\+?[0-9]{3}")
"""What may be beyond 64 bits, or beyond all floats."""
_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1

MERGE = "tag:yaml.org,2002:merge"


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a stream, counted from 1: `value`, or why it cannot be read."""

    number: int
    value: Any = None
    reason: str = ""


def read_documents(text: str) -> Iterator[Document]:
    """The documents of a stream, without those that hold nothing; a broken one does not stop the others."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            yield from _read_json(text)
        except _NotJSON:
            pass
        else:
            return
    for number, (line, part) in enumerate(_split(text), start=1):
        document = _read_yaml(number, part, line)
        if document.reason or document.value is not None:
            yield document


class _NotJSON(Exception):
    """The text starts like JSON, but is not: YAML's flow style looks the same."""


def _read_json(text: str) -> list[Document]:
    is_odd = _LONG_NUMBER.search(text) is not None
    decoder = json.JSONDecoder(
        object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_json_int if is_odd else None
    )
    is_odd = is_odd or _HALF.search(text) is not None
    documents: list[Document] = []
    position = _skip_blanks(text, 0)
    while position < len(text):
        number = len(documents) + 1
        try:
            value, position = decoder.raw_decode(text, position)
        except _Repeated as error:
            return [*documents, Document(number, reason=str(error))]
        except (ValueError, RecursionError) as error:
            raise _NotJSON from error
        documents.append(Document(number, value, refuse_values(value) if is_odd else ""))
        position = _skip_blanks(text, position)
    return documents


def _json_int(text: str) -> int | float:
    """Beyond 64 bits a number is a float, as in Go; Python would take any, and refuse the longest."""
    number = int(text) if len(text) < 25 else None
    return number if number is not None and _SMALLEST <= number <= _LARGEST else float(text)


def _skip_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


class _Repeated(ValueError):
    """A key appears twice."""

    def __init__(self, key: str) -> None:
        super().__init__(f"key {key!r} appears twice")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _Repeated(next(key for key, count in counts.items() if count > 1))
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _split(text: str) -> Iterator[tuple[int, str]]:
    """The texts between separators, each with the line before it.

    What comes before the first separator, or behind an end marker, counts only if it says anything.
    """
    starts = [0, *(match.end() for match in _SEPARATOR.finditer(text))]
    ends = [*(match.start() for match in _SEPARATOR.finditer(text)), len(text)]
    line, counted = 0, 0
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        line += text.count("\n", counted, start)
        counted = start
        first, *more = _END.split(text[start:end])
        if index or len(starts) == 1 or not _BLANK.fullmatch(first):
            yield line, first
        yield from ((line, part) for part in more if not _BLANK.fullmatch(part))


def _read_yaml(number: int, text: str, line: int) -> Document:
    try:
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader with fewer resolvers
    except yaml.YAMLError as error:
        return Document(number, reason=_words(error, line))
    except (ValueError, RecursionError) as error:
        return Document(number, reason=str(error))
    reason = refuse_size(value) if "*" in text else ""
    return Document(number, value, reason or (refuse_values(value) if _HALF.search(text) else ""))


def _words(error: yaml.YAMLError, line: int) -> str:
    """The parser's complaint on one line, with line and column of the file."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())
    parts = [part for part in (error.context, error.problem) if part]
    mark = error.problem_mark or error.context_mark
    place = f" at line {line + mark.line + 1}, column {mark.column + 1}" if mark else ""
    return ", ".join(parts) + place


class _Loader(_BASE):  # type: ignore[misc, valid-type] # the C loader has no stub
    """PyYAML's safe loader with the resolvers of Kubernetes' YAML."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._flat: set[int] = set()
        self._merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Take in merged keys: what is written out wins, then what is merged first.

        A mapping may be flattened for another one that merges it, before its own turn comes.
        """
        if id(node) in self._flat:
            return
        self._flat.add(id(node))
        own = {_key(self, key): (key, value) for key, value in node.value if key.tag != MERGE}
        if len(own) + sum(key.tag == MERGE for key, _ in node.value) < len(node.value):
            raise _repeated(self, node)
        merged: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for source in _merged_into(node):
            self.flatten_mapping(source)
            self._merged += 1 + len(source.value)
            if self._merged > MOST_MERGED:
                problem = f"its merges stand for more than {MOST_MERGED} keys"
                raise ConstructorError(None, None, problem, node.start_mark)
            for key, value in source.value:
                merged.setdefault(_key(self, key), (key, value))
        node.value = list((merged | own).values())


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})\\Z"), list(first))


_resolve("bool", "|".join((*_TRUE, *_FALSE)), "yYnNtTfFoO")
_resolve("null", "~|null|Null|NULL|", "~nN")
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"\Z"), [""])
_resolve("int", _INTEGER, "-+0123456789")
_resolve("float", _FLOAT, "-+.0123456789")
_resolve("merge", "<<", "<")


def _construct_bool(_: Any, node: yaml.ScalarNode) -> bool:
    return node.value in _TRUE


def _construct_int(_: Any, node: yaml.ScalarNode) -> int | float | str:
    """As Go's ParseInt with base 0: a leading zero means octal; a decimal beyond 64 bits is a float.

    What is neither stays text.
    """
    text = node.value.replace("_", "").lower()
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    if len(digits) < 70 and digits not in ("0x", "0b", "0o"):
        octal = f"0o{digits[1:]}" if re.fullmatch(r"0[0-7]+", digits) else digits
        number = sign * int(octal, 0)
        if _SMALLEST <= number <= _LARGEST:
            return number
    as_float = float(text) if _DECIMAL.fullmatch(text) else math.inf
    return as_float if math.isfinite(as_float) else str(node.value)


def _construct_float(_: Any, node: yaml.ScalarNode) -> int | float | str:
    """JSON knows one kind of number: a float without a fraction reads as an integer there.

    A number that no float can hold stays text.
    """
    number = float(node.value.replace("_", ""))
    if not math.isfinite(number):
        return str(node.value)
    return int(number) if number.is_integer() and abs(number) < 1 << 53 else number


def _construct_text(_: Any, node: yaml.ScalarNode) -> str:
    return str(node.value)


def _construct_map(loader: Any, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {}
    yield found
    if not isinstance(node, yaml.MappingNode):
        raise ConstructorError(None, None, "a mapping is expected", node.start_mark)
    loader.flatten_mapping(node)
    for key, value in node.value:
        found[_key(loader, key)] = loader.construct_object(value)


def _repeated(loader: Any, node: yaml.MappingNode) -> ConstructorError:
    seen: set[str] = set()
    for key, _ in node.value:
        name = "<<" if key.tag == MERGE else _key(loader, key)
        if name in seen and key.tag != MERGE:
            return ConstructorError(None, None, f"key {name!r} appears twice", key.start_mark)
        seen.add(name)
    return ConstructorError(None, None, "a key appears twice", node.start_mark)


def _merged_into(node: yaml.MappingNode) -> Iterator[yaml.MappingNode]:
    """The mappings that a mapping merges, in order."""
    for key, value in node.value:
        if key.tag != MERGE:
            continue
        sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for source in sources:
            if not isinstance(source, yaml.MappingNode):
                raise ConstructorError(None, None, "only mappings can be merged", value.start_mark)
            yield source


def _key(loader: Any, node: yaml.Node) -> str:
    """Numbers and booleans become the strings that JSON shows for them; nothing else can be a key."""
    key = loader.construct_object(node) if isinstance(node, yaml.ScalarNode) else None
    match key:
        case str():
            return key
        case bool() | int() | float():
            return json.dumps(key)
        case _:
            raise ConstructorError(None, None, "a key has to be a string", node.start_mark)


_CONSTRUCTORS = {
    "null": yaml.SafeLoader.construct_yaml_null,
    "bool": _construct_bool,
    "int": _construct_int,
    "float": _construct_float,
    "str": _construct_text,
    "timestamp": _construct_text,
    "merge": _construct_text,
    "seq": yaml.SafeLoader.construct_yaml_seq,
    "map": _construct_map,
}
# Sets, pairs and bytes, which YAML knows and JSON does not, are refused like any unknown tag.
_Loader.yaml_constructors = {None: yaml.SafeLoader.construct_undefined} | {
    f"tag:yaml.org,2002:{name}": constructor for name, constructor in _CONSTRUCTORS.items()
}
