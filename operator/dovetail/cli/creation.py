"""What becomes of new objects beside their validation: gates that are added, namespaces that end."""

from collections.abc import Iterable, Mapping
from typing import Any

from dovetail.api.mappings import GATE
from dovetail.cli.known_kinds import WORKLOADS
from dovetail.cli.manifests import Key, Manifest, Trouble

OPT_IN = "dovetail.dev/gate"
"""The label, of a pod or of its namespace, by which the chart's policy knows the pods that it gates."""

GATE_ASSUMED = (
    f"pods that opt in by the label {OPT_IN} are planned with the scheduling gate, "
    "as the chart's policy would add it."
)

CREATED = WORKLOADS | {"Pod", "ResourceClaim", "ResourceClaimTemplate", "PersistentVolumeClaim"}
"""What people create in namespaces."""


def has_identity(body: Mapping[str, Any]) -> bool:
    """Whether an API server has created the object, which what controllers are to make lacks."""
    metadata = body["metadata"]
    return any(metadata.get(field) for field in ("uid", "creationTimestamp", "resourceVersion"))


def with_gate(body: Mapping[str, Any], namespace_opts_in: bool) -> Mapping[str, Any]:
    """The pod as the chart's policy leaves it when it is created."""
    spec, labels = body.get("spec"), body["metadata"].get("labels")
    own = labels.get(OPT_IN) if isinstance(labels, Mapping) else None
    if not isinstance(spec, Mapping) or has_identity(body) or own == "disabled":
        return body
    gates = spec.get("schedulingGates") or []
    if not (own == "enabled" or namespace_opts_in) or not spec.get("resourceClaims") or spec.get("nodeName"):
        return body
    if not isinstance(gates, list) or any(isinstance(g, Mapping) and g.get("name") == GATE for g in gates):
        return body
    return {**body, "spec": {**spec, "schedulingGates": [*gates, {"name": GATE}]}}


def namespaces_that_opt_in(manifests: Iterable[Manifest]) -> frozenset[str]:
    """The namespaces whose label asks for the gate."""
    return frozenset(
        manifest.name
        for manifest in manifests
        if manifest.kind == "Namespace"
        and isinstance(labels := manifest.body["metadata"].get("labels"), Mapping)
        and labels.get(OPT_IN) == "enabled"
    )


def namespaces_that_end(manifests: Iterable[Manifest]) -> frozenset[str]:
    """The namespaces that are being deleted: nothing can be created in them."""
    return frozenset(
        manifest.name for manifest in manifests if manifest.kind == "Namespace" and _ends(manifest.body)
    )


def not_created(manifests: Iterable[Manifest], ending: frozenset[str]) -> dict[Key, Trouble]:
    """What cannot be created, since its namespace is being deleted."""
    return {
        manifest.key: manifest.trouble(f"{being_deleted(manifest.namespace)}: nothing can be created in it")
        for manifest in manifests
        if manifest.kind in CREATED and manifest.namespace in ending and not has_identity(manifest.body)
    }


def being_deleted(namespace: str) -> str:
    """The reason, in words."""
    return f"namespace {namespace!r} is being deleted"


def _ends(namespace: Mapping[str, Any]) -> bool:
    status = namespace.get("status")
    phase = status.get("phase") if isinstance(status, Mapping) else None
    return bool(namespace["metadata"].get("deletionTimestamp")) or phase == "Terminating"
