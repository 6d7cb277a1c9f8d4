"""What the API server refuses of a pod, as far as devices and their planning go."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dovetail.core.quantity import Quantity
from dovetail.core.validation import names
from dovetail.core.validation.expressions import Rules
from dovetail.core.validation.faults import Fault, Faults, missing, repeated, unknown_choice
from dovetail.core.validation.metadata import metadata
from dovetail.core.validation.placement import node_selector
from dovetail.core.validation.scheduling import scheduling

Body = Mapping[str, Any]

RESTARTS: Final = ("Always", "OnFailure", "Never")
CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(body: Body, _: Rules) -> Faults:
    """A pod that is about to be created."""
    yield from metadata(body.get("metadata", {}))
    yield from pod_spec(body.get("spec", {}), "spec")


def pod_spec(spec: Body, at: str) -> Faults:
    """The specification of a pod, or of the pods of a workload."""
    yield from _claims(spec.get("resourceClaims", []), f"{at}.resourceClaims")
    yield from _gates(spec, at)
    yield from scheduling(spec, at)
    if (policy := spec.get("restartPolicy") or RESTARTS[0]) not in RESTARTS:
        yield unknown_choice(f"{at}.restartPolicy", policy, RESTARTS)
    known = frozenset(claim["name"] for claim in spec.get("resourceClaims", []) if claim.get("name"))
    if not spec.get("containers"):
        yield missing(f"{at}.containers")
    yield from _containers(spec, at, known)
    for key, value in spec.get("nodeSelector", {}).items():
        if reason := names.key(key) or names.label_value(value):
            yield Fault(f"{at}.nodeSelector", reason)
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    if _REQUIRED in affinity:
        yield from node_selector(affinity[_REQUIRED], f"{at}.affinity.nodeAffinity.{_REQUIRED}")


def _claims(found: Sequence[Body], at: str) -> Faults:
    seen: set[str] = set()
    for index, claim in enumerate(found):
        here, name = f"{at}[{index}]", claim.get("name", "")
        if not name:
            yield missing(f"{here}.name")
        elif name in seen:
            yield repeated(f"{here}.name", name)
        elif reason := names.label(name):
            yield Fault(f"{here}.name", reason)
        seen.add(name)
        sources = [f for f in ("resourceClaimName", "resourceClaimTemplateName") if f in claim]
        if len(sources) != 1:
            yield Fault(here, "exactly one of resourceClaimName and resourceClaimTemplateName is expected")
        for field in sources:
            if reason := names.subdomain(claim[field]):
                yield Fault(f"{here}.{field}", reason)


def _gates(spec: Body, at: str) -> Faults:
    gates = [gate.get("name", "") for gate in spec.get("schedulingGates", [])]
    for index, name in enumerate(gates):
        if reason := names.key(name):
            yield Fault(f"{at}.schedulingGates[{index}]", reason)
        if name in gates[:index]:
            yield repeated(f"{at}.schedulingGates[{index}]", name)


def _containers(spec: Body, at: str, known: frozenset[str]) -> Faults:
    seen: set[str] = set()
    for field in CONTAINERS:
        for index, container in enumerate(spec.get(field, [])):
            here, name = f"{at}.{field}[{index}]", container.get("name", "")
            if not name:
                yield missing(f"{here}.name")
            elif reason := names.label(name):
                yield Fault(f"{here}.name", reason)
            elif name in seen:
                yield repeated(f"{here}.name", name)
            seen.add(name)
            resources = container.get("resources", {})
            yield from _amounts(resources, f"{here}.resources")
            yield from _uses(resources.get("claims", []), f"{here}.resources.claims", known)


def _uses(found: Sequence[Body], at: str, known: frozenset[str]) -> Faults:
    """The claims that a container uses, or single requests of them: nothing twice."""
    whole: set[str] = set()
    parts: dict[str, set[str]] = {}
    for index, use in enumerate(found):
        here, name, request = f"{at}[{index}]", use.get("name", ""), use.get("request", "")
        if not name:
            yield missing(here)
            continue
        if request and (reason := names.label(request)):
            yield Fault(f"{here}.request", reason)
        used = parts.setdefault(name, set())
        if name in whole or request in used or (used and not request):
            yield repeated(here, f"{name}/{request}" if request else name)
        if request:
            used.add(request)
        else:
            whole.add(name)
        if name not in known:
            yield Fault(here, f"spec.resourceClaims has no entry {name!r}")


def _amounts(resources: Body, at: str) -> Faults:
    limits = dict(_read(resources.get("limits", {})))
    for field, amounts in (("limits", limits), ("requests", dict(_read(resources.get("requests", {}))))):
        for name, amount in amounts.items():
            if amount.sign < 0:
                yield Fault(f"{at}.{field}[{name}]", f"{amount} is negative")
            elif _is_whole(name) and amount.nano % 10**9:
                yield Fault(f"{at}.{field}[{name}]", f"{amount} is no whole number")
            limit = limits.get(name)
            if field == "requests" and limit is not None and amount > limit:
                yield Fault(f"{at}.requests", f"{amount} is more than the {name} limit, {limit}")
            elif field == "requests" and _is_whole(name) and limit is None:
                yield Fault(f"{at}.limits", f"{name} needs a limit that equals the request")
            elif field == "requests" and _is_whole(name) and amount != limit:
                yield Fault(f"{at}.requests", f"{amount} has to equal the {name} limit, {limit}")


def _read(amounts: Body) -> Iterator[tuple[str, Quantity]]:
    for name, amount in amounts.items():
        yield name, Quantity.parse(amount)


def _is_whole(name: str) -> bool:
    """An extended resource: whole numbers, and the request equals the limit."""
    return "/" in name and "kubernetes.io/" not in name
