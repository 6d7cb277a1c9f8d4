"""What the API server refuses of the fields that say where something is: node names and selectors."""

from collections.abc import Mapping
from typing import Any, Final

from dovetail.core.validation import names
from dovetail.core.validation.faults import Fault, Faults, missing, unknown_choice

Body = Mapping[str, Any]

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_NODE_NAME: Final = "metadata.name"


def places(found: Body, at: str, choices: tuple[str, ...]) -> Faults:
    """The fields by which a slice or device says on which nodes it is: exactly one."""
    chosen = [field for field in choices if found.get(field) or (field == "nodeSelector" and field in found)]
    for field in choices:
        if field in found and field not in chosen:
            yield Fault(f"{at}.{field}", "leave it out, or say where")
    if len(chosen) != 1:
        yield Fault(at, f"exactly one of {', '.join(choices)} is expected, not {len(chosen)}")
    if (node := found.get("nodeName")) and (reason := names.subdomain(node)):
        yield Fault(f"{at}.nodeName", reason)
    if "nodeSelector" in found:
        yield from node_selector(found["nodeSelector"], f"{at}.nodeSelector")


def node_selector(found: Body, at: str) -> Faults:
    """A selector over nodes."""
    terms = found.get("nodeSelectorTerms", [])
    if not terms:
        yield missing(f"{at}.nodeSelectorTerms")
    for index, term in enumerate(terms):
        here = f"{at}.nodeSelectorTerms[{index}]"
        for number, requirement in enumerate(term.get("matchExpressions", [])):
            yield from _expression(requirement, f"{here}.matchExpressions[{number}]")
        for number, requirement in enumerate(term.get("matchFields", [])):
            yield from _field(requirement, f"{here}.matchFields[{number}]")


def _expression(found: Body, at: str) -> Faults:
    operator, values = found.get("operator", ""), found.get("values", [])
    if operator not in _OPERATORS:
        yield unknown_choice(f"{at}.operator", operator, _OPERATORS)
    elif operator in ("In", "NotIn") and not values:
        yield missing(f"{at}.values")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield Fault(f"{at}.values", f"operator {operator} takes none")
    elif operator in ("Gt", "Lt") and len(values) != 1:
        yield Fault(f"{at}.values", f"operator {operator} takes exactly one")
    if reason := names.key(found.get("key", "")):
        yield Fault(f"{at}.key", reason)
    for index, value in enumerate(values):
        if reason := names.label_value(value):
            yield Fault(f"{at}.values[{index}]", reason)


def _field(found: Body, at: str) -> Faults:
    operator, values = found.get("operator", ""), found.get("values", [])
    if operator not in ("In", "NotIn"):
        yield unknown_choice(f"{at}.operator", operator, ("In", "NotIn"))
    elif len(values) != 1:
        yield Fault(f"{at}.values", "exactly one is expected")
    if found.get("key") != _NODE_NAME:
        yield unknown_choice(f"{at}.key", found.get("key", ""), (_NODE_NAME,))
        return
    for index, value in enumerate(values):
        if reason := names.subdomain(value):
            yield Fault(f"{at}.values[{index}]", reason)
