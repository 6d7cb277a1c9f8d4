"""Label and field selectors, as they stand in a query string."""

import re
from collections.abc import Callable
from typing import Any

from dovetail.embedded.answers import bad_request
from dovetail.embedded.bodies import Body, part

Filter = Callable[[Body], bool]

_SET = re.compile(r"^\s*([^\s!=,()]+)\s+(in|notin)\s*\(([^)]*)\)\s*$")
_EQUAL = re.compile(r"^\s*([^\s!=,()]+)\s*(==|=|!=)\s*([^\s,()]*)\s*$")
_EXISTS = re.compile(r"^\s*(!?)\s*([^\s!=,()]+)\s*$")
_COMMA = re.compile(r",(?![^(]*\))")


def filter_of(labels: str, fields: str) -> Filter:
    """Both selectors at once; an empty one accepts everything."""
    terms = [_label_term(term) for term in _COMMA.split(labels) if term.strip()]
    terms += [_field_term(term) for term in fields.split(",") if term.strip()]
    return lambda body: all(term(body) for term in terms)


def _label_term(term: str) -> Filter:
    if found := _SET.match(term):
        key, operator, values = found[1], found[2], {value.strip() for value in found[3].split(",")}
        return lambda body: (_label(body, key) in values) == (operator == "in")
    if found := _EQUAL.match(term):
        equal_key, equal, wanted = found.groups()
        return _equality(lambda body: _label(body, equal_key), equal, wanted)
    if found := _EXISTS.match(term):
        absent, there = found.groups()
        return lambda body: (_label(body, there) is None) == bool(absent)
    raise bad_request(f"unable to parse requirement: {term!r}")


def _field_term(term: str) -> Filter:
    found = _EQUAL.match(term)
    if not found:
        raise bad_request(f"invalid field selector: {term!r}")
    field, operator, wanted = found.groups()
    path = field.split(".")
    return _equality(lambda body: part(body, *path[:-1]).get(path[-1], ""), operator, wanted)


def _equality(read: Callable[[Body], Any], operator: str, wanted: str) -> Filter:
    return lambda body: (read(body) == wanted) == (operator != "!=")


def _label(body: Body, key: str) -> Any:
    return part(body, "metadata", "labels").get(key)
