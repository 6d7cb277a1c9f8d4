"""What the API server refuses in Pods: the specification is immutable, apart from a few doors.

Each rule yields causes, `field: what is wrong`.
"""

from collections.abc import Iterator
from typing import Any

from dovetail.embedded.bodies import Body, items, part

ONLY_ADDITIONS = "only additions are allowed (no mutations or deletions)"


def pod_created(body: Body) -> Iterator[str]:
    """A new pod: containers are there, gates and claims are unique, and a gated pod has no node."""
    spec = part(body, "spec")
    if not spec.get("containers"):
        yield "spec.containers: Required value"
    for field in ("schedulingGates", "resourceClaims"):
        yield from _duplicates(items(spec, field), f"spec.{field}")
    for index, claim in enumerate(items(spec, "resourceClaims")):
        if bool(claim.get("resourceClaimName")) == bool(claim.get("resourceClaimTemplateName")):
            wanted = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield f"spec.resourceClaims[{index}]: Invalid value: {wanted}"
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"


def pod_changed(old: Body, new: Body) -> Iterator[str]:
    """An update of a pod: gates only go; tolerations only come; a gated pod's node choice only narrows."""
    before, after = part(old, "spec"), part(new, "spec")
    added = _names(after, "schedulingGates") - _names(before, "schedulingGates")
    if added:
        wanted = f"only deletion is allowed, but found new scheduling gate '{min(added)}'"
        index = next(at for at, gate in enumerate(items(after, "schedulingGates")) if gate["name"] in added)
        yield f"spec.schedulingGates[{index}].name: Forbidden: {wanted}"
    missing = [entry for entry in items(before, "tolerations") if entry not in items(after, "tolerations")]
    if missing:
        yield "spec.tolerations: Forbidden: existing toleration can not be modified"
    doors = {"schedulingGates", "tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds"}
    if before.get("schedulingGates"):
        doors |= {"nodeSelector", "affinity"}
        yield from _narrowing_causes(before, after)
    if _fixed(before, doors) != _fixed(after, doors):
        yield "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`, …"


def _narrowing_causes(before: Body, after: Body) -> Iterator[str]:
    new_selector = after.get("nodeSelector") or {}
    if any(new_selector.get(key) != value for key, value in (before.get("nodeSelector") or {}).items()):
        yield f"spec.nodeSelector: Invalid value: {ONLY_ADDITIONS}"
    path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    old_terms = items(before, *path, "nodeSelectorTerms")
    new_terms = items(after, *path, "nodeSelectorTerms")
    if old_terms and not (len(old_terms) == len(new_terms) and all(map(_narrows, old_terms, new_terms))):
        yield f"spec.affinity.nodeAffinity: Invalid value: {ONLY_ADDITIONS}"


def _narrows(old: Body, new: Body) -> bool:
    return all(
        requirement in items(new, field)
        for field in ("matchExpressions", "matchFields")
        for requirement in items(old, field)
    )


def _fixed(spec: Body, doors: set[str]) -> Body:
    fixed = {
        name: value for name, value in spec.items() if name not in doors and value not in (None, [], {}, "")
    }
    for field in ("containers", "initContainers"):
        if field in fixed:
            fixed[field] = [_without(container, "image") for container in fixed[field]]
    return fixed


def _without(container: Body, field: str) -> Body:
    return {name: value for name, value in container.items() if name != field}


def pod_status_changed(old: Body, new: Body) -> Iterator[str]:
    """An update of a pod's status: claim statuses name claims of the pod, once each (G26)."""
    statuses = items(new, "status", "resourceClaimStatuses")
    yield from _duplicates(statuses, "status.resourceClaimStatuses")
    known = _names(part(old, "spec"), "resourceClaims")
    for index, status in enumerate(statuses):
        if status.get("name") not in known:
            wanted = f'"{status.get("name")}": must match the name of an entry in `spec.resourceClaims`'
            yield f"status.resourceClaimStatuses[{index}].name: Invalid value: {wanted}"
    for index, condition in enumerate(items(new, "status", "conditions")):
        if condition.get("status") not in ("True", "False", "Unknown"):
            yield f'status.conditions[{index}].status: Unsupported value: "{condition.get("status", "")}"'


def _names(spec: Body, field: str) -> set[str]:
    return {entry.get("name", "") for entry in items(spec, field)}


def _duplicates(entries: list[Any], at: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if entry.get("name") in seen:
            yield f'{at}[{index}]: Duplicate value: "{entry.get("name")}"'
        seen.add(entry.get("name", ""))
