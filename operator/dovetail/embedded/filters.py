"""Label and field selectors, as they stand in a query string."""

import re
from collections.abc import Callable
from typing import Any

from dovetail.embedded.answers import bad_request
from dovetail.embedded.bodies import Body, part
from dovetail.embedded.kinds import Kind

Filter = Callable[[Body], bool]

_KEY = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]{0,251}[A-Za-z0-9])?/)?[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?"
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*", re.ASCII)
_EQUAL = re.compile(rf"\s*({_KEY})\s*(==|=|!=|>|<)\s*([^\s,()]*)\s*", re.ASCII)
_EXISTS = re.compile(rf"\s*(!?)\s*({_KEY})\s*", re.ASCII)
_FIELD = re.compile(r"\s*([\w.]+)\s*(==|=|!=)(.*)", re.ASCII | re.DOTALL)
_COMMA = re.compile(r",(?![^(]*\))")

_EVENT_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: dict[str, frozenset[str]] = {
    "pods": frozenset(
        {
            *(f"spec.{name}" for name in ("nodeName", "restartPolicy", "schedulerName", "hostNetwork")),
            "spec.serviceAccountName",
            *(f"status.{name}" for name in ("phase", "podIP", "podIPs", "nominatedNodeName")),
        }
    ),
    "nodes": frozenset({"spec.unschedulable"}),
    "namespaces": frozenset({"status.phase", "name"}),
    "secrets": frozenset({"type"}),
    "events": frozenset(
        {
            *(f"{field}.{name}" for field in ("involvedObject", "regarding") for name in _EVENT_FIELDS),
            *("reason", "reportingComponent", "reportingController", "source", "type"),
        }
    ),
    "jobs": frozenset({"status.successful"}),
    "replicasets": frozenset({"status.replicas"}),
    "resourceslices": frozenset({"spec.driver", "spec.nodeName"}),
}
"""The fields that can be selected by, beside name and namespace."""


def filter_of(kind: Kind, labels: str, fields: str) -> Filter:
    """Both selectors at once; an empty one accepts everything."""
    terms = [_label_term(term) for term in _COMMA.split(labels)] if labels.strip() else []
    terms += [_field_term(kind, term) for term in fields.split(",") if term.strip()]
    return lambda body: all(term(body) for term in terms)


def _label_term(term: str) -> Filter:
    if found := _SET.fullmatch(term):
        key, operator, values = found[1], found[2], {value.strip() for value in found[3].split(",")}
        for value in values:
            _check_value(term, value)
        return lambda body: (_label(body, key) in values) == (operator == "in")
    if found := _EQUAL.fullmatch(term):
        equal_key, equal, wanted = found.groups()
        if equal in "<>":
            return _comparison(equal_key, equal, term, wanted)
        _check_value(term, wanted)
        return _equality(lambda body: _label(body, equal_key), equal, wanted)
    if found := _EXISTS.fullmatch(term):
        absent, there = found.groups()
        return lambda body: (_label(body, there) is None) == bool(absent)
    raise bad_request(f"unable to parse requirement: {term!r}")


def _check_value(term: str, value: str) -> None:
    if not _VALUE.fullmatch(value):
        raise bad_request(f"unable to parse requirement: {term!r}: {value!r} is no label value")


def _comparison(key: str, operator: str, term: str, wanted: str) -> Filter:
    if not re.fullmatch(r"-?[0-9]{1,18}", wanted):
        raise bad_request(f"unable to parse requirement: {term!r}: a number is expected")

    def accepts(body: Body) -> bool:
        value = str(_label(body, key) or "")
        if not re.fullmatch(r"-?[0-9]{1,18}", value):
            return False
        return int(value) > int(wanted) if operator == ">" else int(value) < int(wanted)

    return accepts


def _field_term(kind: Kind, term: str) -> Filter:
    found = _FIELD.fullmatch(term)
    if not found:
        raise bad_request(f"invalid field selector: {term!r}")
    field, operator, wanted = found.groups()
    known = _FIELDS.get(kind.plural, frozenset()) if kind.builtin else frozenset()
    if field not in ("metadata.name", "metadata.namespace") and field not in known:
        raise bad_request(f'field label not supported: "{field}"')
    path = field.split(".")
    return _equality(lambda body: part(body, *path[:-1]).get(path[-1], ""), operator, wanted)


def _equality(read: Callable[[Body], Any], operator: str, wanted: str) -> Filter:
    return lambda body: (read(body) == wanted) == (operator != "!=")


def _label(body: Body, key: str) -> Any:
    return part(body, "metadata", "labels").get(key)
