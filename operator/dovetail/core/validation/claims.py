"""What the API server refuses of a ResourceClaim's specification."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dovetail.core.shipped import shipped_mappings
from dovetail.core.validation import names
from dovetail.core.validation.expressions import MOST_COST, Rules, derived_cost, expression
from dovetail.core.validation.faults import (
    Fault,
    Faults,
    missing,
    repeats,
    size,
    too_long,
    too_many,
    unknown_choice,
)

MOST_REQUESTS: Final = 32
MOST_CONSTRAINTS: Final = 32
MOST_CONFIGS: Final = 32
MOST_SELECTORS: Final = 32
MOST_DERIVED: Final = 32
MOST_ALTERNATIVES: Final = 8
LONGEST_PARAMETERS: Final = 10 * 1024

MODES: Final = ("All", "ExactCount")
EFFECTS: Final = ("NoExecute", "NoSchedule", "None")

SHIPPED: Final = {
    mapping.spec.attribute.rpartition("/")[2]: mapping.spec.attribute for mapping in shipped_mappings()
}
"""The attributes that Dovetail has mappings for, by their names without a domain."""

Body = Mapping[str, Any]
Users = Mapping[str, frozenset[str]]
"""The attributes that constraints name, by request; those for all requests under an empty name."""


def claim_spec(spec: Body, at: str, rules: Rules) -> Faults:
    """The specification of a claim, or of the claims of a template."""
    devices: Body = spec.get("devices", {})
    at = f"{at}.devices"
    requests: list[Body] = devices.get("requests", [])
    constraints: list[Body] = devices.get("constraints", [])
    users = _users(constraints)
    if len(requests) > MOST_REQUESTS:
        yield too_many(f"{at}.requests", len(requests), MOST_REQUESTS)
    else:
        for index, request in enumerate(requests):
            yield from _request(request, f"{at}.requests[{index}]", rules, users)
        yield from repeats([request.get("name", "") for request in requests], f"{at}.requests")
    known = _request_names(requests)
    if len(constraints) > MOST_CONSTRAINTS:
        yield too_many(f"{at}.constraints", len(constraints), MOST_CONSTRAINTS)
    else:
        for index, constraint in enumerate(constraints):
            yield from _constraint(constraint, f"{at}.constraints[{index}]", known)
    yield from configs(devices.get("config", []), f"{at}.config", known)
    if len(requests) <= MOST_REQUESTS and (cost := sum(_derived_costs(requests, rules))) > MOST_COST:
        yield Fault(at, f"its derived attributes may cost {cost:,} together, and {MOST_COST:,} is the most")


def selectors(found: Sequence[Body], at: str, rules: Rules) -> Faults:
    """The selectors of a request or class."""
    if len(found) > MOST_SELECTORS:
        yield too_many(at, len(found), MOST_SELECTORS)
        return
    for index, selector in enumerate(found):
        if "cel" not in selector:
            yield missing(f"{at}[{index}].cel")
        else:
            text = selector["cel"].get("expression", "")
            yield from expression(text, f"{at}[{index}].cel.expression", rules)


def configs(found: Sequence[Body], at: str, known: frozenset[str] = frozenset()) -> Faults:
    """The configuration of a claim or class."""
    if len(found) > MOST_CONFIGS:
        yield too_many(at, len(found), MOST_CONFIGS)
        return
    for index, config in enumerate(found):
        here = f"{at}[{index}]"
        yield from _references(config.get("requests", []), f"{here}.requests", known)
        if "opaque" not in config:
            yield missing(f"{here}.opaque")
        else:
            yield from _opaque(config["opaque"], f"{here}.opaque")


def taint_effect(value: str, at: str) -> Faults:
    """The effect of a taint or toleration."""
    if value not in EFFECTS:
        yield unknown_choice(at, value, EFFECTS)


def _request(request: Body, at: str, rules: Rules, users: Users) -> Faults:
    name = request.get("name", "")
    yield from _named(name, f"{at}.name", names.label)
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable", [])
    if exactly is not None and alternatives:
        yield Fault(at, "exactly and firstAvailable exclude each other")
    elif exactly is not None:
        yield from _devices(exactly, f"{at}.exactly", rules, users, name)
    elif not alternatives:
        yield Fault(at, "exactly or firstAvailable is missing")
    elif len(alternatives) > MOST_ALTERNATIVES:
        yield too_many(f"{at}.firstAvailable", len(alternatives), MOST_ALTERNATIVES)
    else:
        for index, alternative in enumerate(alternatives):
            here, own = f"{at}.firstAvailable[{index}]", alternative.get("name", "")
            yield from _named(own, f"{here}.name", names.label)
            yield from _devices(alternative, here, rules, users, f"{name}/{own}")
        yield from repeats([each.get("name", "") for each in alternatives], f"{at}.firstAvailable")


def _devices(found: Body, at: str, rules: Rules, users: Users, request: str) -> Faults:
    """What a request and an alternative have in common."""
    class_name = found.get("deviceClassName", "")
    if not class_name:
        yield missing(f"{at}.deviceClassName")
    elif reason := names.subdomain(class_name):
        yield Fault(f"{at}.deviceClassName", reason)
    yield from selectors(found.get("selectors", []), f"{at}.selectors", rules)
    yield from _derived(found.get("derivedAttributes", []), f"{at}.derivedAttributes", rules, users, request)
    mode, count = found.get("allocationMode", ""), found.get("count", 0)
    if mode == "All" and count:
        yield Fault(f"{at}.count", "it excludes allocationMode All")
    elif mode == "ExactCount" and count <= 0:
        yield Fault(f"{at}.count", f"{count} is not greater than zero")
    elif mode not in MODES:
        yield unknown_choice(f"{at}.allocationMode", mode, MODES)
    for index, toleration in enumerate(found.get("tolerations", [])):
        yield from _toleration(toleration, f"{at}.tolerations[{index}]")


def _toleration(toleration: Body, at: str) -> Faults:
    if (key := toleration.get("key")) and (reason := names.key(key)):
        yield Fault(f"{at}.key", reason)
    operator, value = toleration.get("operator", ""), toleration.get("value", "")
    if operator == "Exists" and value:
        yield Fault(f"{at}.value", "it excludes operator Exists")
    elif operator == "Equal" and (reason := names.label_value(value)):
        yield Fault(f"{at}.value", reason)
    elif operator not in ("Equal", "Exists"):
        yield unknown_choice(f"{at}.operator", operator, ("Equal", "Exists"))
    if effect := toleration.get("effect"):
        yield from taint_effect(effect, f"{at}.effect")


def _derived(found: Sequence[Body], at: str, rules: Rules, users: Users, request: str) -> Faults:
    if len(found) > MOST_DERIVED:
        yield too_many(at, len(found), MOST_DERIVED)
        return
    parent = request.partition("/")[0]
    used = frozenset().union(*(users.get(whose, frozenset()) for whose in ("", request, parent)))
    for index, each in enumerate(found):
        here, name, text = f"{at}[{index}]", each.get("name", ""), each.get("expression", "")
        if not name:
            yield missing(f"{here}.name")
        elif reason := names.fully_qualified(name):
            yield Fault(f"{here}.name", reason)
        if name and name not in used:
            yield Fault(f"{here}.name", f"no constraint on this request names {name!r}")
        if text:
            yield from expression(text, f"{here}.expression", rules, derived=True)
        else:
            yield missing(f"{here}.expression")
    yield from repeats([each.get("name", "") for each in found], at)


def _derived_costs(requests: Sequence[Body], rules: Rules) -> Iterator[int]:
    for request in requests:
        exactly, alternatives = request.get("exactly"), request.get("firstAvailable", [])
        if exactly is not None and alternatives:
            continue
        for devices in alternatives[: MOST_ALTERNATIVES + 1] if exactly is None else [exactly]:
            derived = devices.get("derivedAttributes", [])
            for each in derived if len(derived) <= MOST_DERIVED else ():
                yield derived_cost(each.get("expression", ""), rules)


def _constraint(constraint: Body, at: str, known: frozenset[str]) -> Faults:
    yield from _references(constraint.get("requests", []), f"{at}.requests", known)
    attributes = [field for field in ("matchAttribute", "distinctAttribute") if field in constraint]
    if not attributes:
        yield Fault(at, "matchAttribute or distinctAttribute is missing")
    for field in attributes:
        if reason := names.fully_qualified(name := constraint[field]):
            near = f"; did you mean {SHIPPED[name]!r}?" if name in SHIPPED else ""
            yield Fault(f"{at}.{field}", f"{reason}{near}")


def _references(found: Sequence[str], at: str, known: frozenset[str]) -> Faults:
    """Names of requests, with those of their alternatives or without."""
    if len(found) > MOST_REQUESTS:
        yield too_many(at, len(found), MOST_REQUESTS)
        return
    for index, name in enumerate(found):
        if name not in known:
            yield Fault(f"{at}[{index}]", f"the claim has no request {name!r}")
        elif reason := next(filter(None, map(names.label, name.split("/"))), ""):
            yield Fault(f"{at}[{index}]", reason)
    yield from repeats(found, at)


def _opaque(opaque: Body, at: str) -> Faults:
    yield from _named(opaque.get("driver", ""), f"{at}.driver", names.driver)
    parameters = opaque.get("parameters")
    here = f"{at}.parameters"
    if parameters is None:
        yield missing(here)
    elif not isinstance(parameters, Mapping):
        yield Fault(here, "a mapping is expected")
    elif _size(parameters) > LONGEST_PARAMETERS:
        yield too_long(here, LONGEST_PARAMETERS)


def _size(parameters: Mapping[str, Any]) -> int:
    try:
        return size(json.dumps(parameters, separators=(",", ":"), ensure_ascii=False))
    except RecursionError:
        return 0  # how deep parameters may nest is said where they are read


def _named(value: str, at: str, rule: Any) -> Faults:
    if not value:
        yield missing(at)
    elif reason := rule(value):
        yield Fault(at, reason)


def _request_names(requests: Sequence[Body]) -> frozenset[str]:
    """Every name by which constraints and configuration can refer to a request."""
    return frozenset(_all_names(requests))


def _all_names(requests: Sequence[Body]) -> Iterator[str]:
    for request in requests:
        name = request.get("name", "")
        yield name
        for alternative in request.get("firstAvailable", []):
            yield f"{name}/{alternative.get('name', '')}"


def _users(constraints: Sequence[Body]) -> Users:
    found: dict[str, set[str]] = {}
    for constraint in constraints:
        attribute = constraint.get("matchAttribute", constraint.get("distinctAttribute"))
        if attribute is not None:
            for request in constraint.get("requests") or [""]:
                found.setdefault(request, set()).add(attribute)
    return {request: frozenset(attributes) for request, attributes in found.items()}
