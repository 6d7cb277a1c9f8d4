"""When labels satisfy a selector, as Kubernetes' label and node selectors do (meta/v1, core/v1)."""

import re
from collections.abc import Mapping

from dovetail.api.selection import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement

Labels = Mapping[str, str]

HOSTNAME = "kubernetes.io/hostname"
NAME_FIELD = "metadata.name"

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def requirement_holds(requirement: Requirement, labels: Labels) -> bool:
    """One condition on labels; an operator that Kubernetes does not know never holds."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _number_holds(requirement, value)
        case _:
            return False


def labels_match(selector: LabelSelector | None, labels: Labels) -> bool:
    """All conditions hold; an absent selector matches nothing, an empty one everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(requirement_holds(requirement, labels) for requirement in selector.match_expressions)


def node_matches(selector: NodeSelector, name: str, labels: Labels, *, complete: bool = True) -> bool:
    """One of the terms holds for the node; without terms, none does.

    Where `complete` is false, labels that are not there are unknown, and conditions on them hold.
    """
    return any(_term_holds(term, name, labels, complete) for term in selector.node_selector_terms)


def only_node(selector: NodeSelector | None) -> str | None:
    """The single node that an allocation's selector leaves, where it names one (S82)."""
    if selector is None or len(selector.node_selector_terms) != 1:
        return None
    for field in selector.node_selector_terms[0].match_fields:
        if field.key == NAME_FIELD and field.operator == "In" and len(field.values) == 1:
            return field.values[0]
    return None


def _term_holds(term: NodeSelectorTerm, name: str, labels: Labels, complete: bool) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {NAME_FIELD: name}
    return all(requirement_holds(field, fields) for field in term.match_fields) and all(
        requirement_holds(requirement, labels) or not (complete or requirement.key in labels)
        for requirement in term.match_expressions
    )


def _number_holds(requirement: Requirement, value: str | None) -> bool:
    wanted = requirement.values[0] if len(requirement.values) == 1 else ""
    if value is None or not (_INTEGER.fullmatch(value) and _INTEGER.fullmatch(wanted)):
        return False
    return int(value) > int(wanted) if requirement.operator == "Gt" else int(value) < int(wanted)
