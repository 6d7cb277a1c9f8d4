"""What the API server refuses of the fields that say where a pod may run, besides node affinity."""

from collections.abc import Mapping
from typing import Any, Final

from dovetail.core.validation import names
from dovetail.core.validation.faults import Fault, Faults, missing, unknown_choice

Body = Mapping[str, Any]

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS: Final = ("Equal", "Exists", "Lt", "Gt")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def scheduling(spec: Body, at: str) -> Faults:
    """Gates, tolerations, spread, and affinity to other pods."""
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield Fault(f"{at}.nodeName", "a pod with scheduling gates cannot have a node")
    for index, toleration in enumerate(spec.get("tolerations", [])):
        yield from _toleration(toleration, f"{at}.tolerations[{index}]")
    for index, spread in enumerate(spec.get("topologySpreadConstraints", [])):
        yield from _spread(spread, f"{at}.topologySpreadConstraints[{index}]")
    for field in ("podAffinity", "podAntiAffinity"):
        for index, term in enumerate(spec.get("affinity", {}).get(field, {}).get(_REQUIRED, [])):
            if not term.get("topologyKey"):
                yield missing(f"{at}.affinity.{field}.{_REQUIRED}[{index}].topologyKey")


def _toleration(found: Body, at: str) -> Faults:
    key, operator = found.get("key", ""), found.get("operator") or "Equal"
    if key and (reason := names.key(key)):
        yield Fault(f"{at}.key", reason)
    if operator not in _OPERATORS:
        yield unknown_choice(f"{at}.operator", operator, _OPERATORS)
    elif not key and operator != "Exists":
        yield Fault(f"{at}.operator", "without a key it has to be Exists")
    elif operator == "Exists" and found.get("value"):
        yield Fault(f"{at}.value", "operator Exists takes none")
    if (effect := found.get("effect", "")) and effect not in _EFFECTS:
        yield unknown_choice(f"{at}.effect", effect, _EFFECTS)
    if "tolerationSeconds" in found and effect != "NoExecute":
        yield Fault(f"{at}.effect", "with tolerationSeconds it has to be NoExecute")


def _spread(found: Body, at: str) -> Faults:
    if found.get("maxSkew", 0) <= 0:
        yield Fault(f"{at}.maxSkew", "it is not greater than zero")
    if not found.get("topologyKey"):
        yield missing(f"{at}.topologyKey")
    if (choice := found.get("whenUnsatisfiable", "")) not in _UNSATISFIABLE:
        yield unknown_choice(f"{at}.whenUnsatisfiable", choice, _UNSATISFIABLE)
