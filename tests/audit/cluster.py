"""Builders of a small cluster as manifests: only what a test is about is written out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dovetail.api.claims import DeviceClass, ResourceClaim
from dovetail.api.nodes import Node
from dovetail.api.pods import Pod
from dovetail.api.slices import DeviceTaintRule, ResourceSlice
from dovetail.core.audit import Evidence

Body = dict[str, Any]
DRIVER = "gpu.example.com"
PROTECTED = ("resource.kubernetes.io/delete-protection",)


def published(
    *devices: str | Body,
    driver: str = DRIVER,
    pool: str = "n1",
    generation: int = 1,
    slices: int = 1,
    counters: Sequence[Body] = (),
) -> Body:
    """A slice of one pool."""
    listed = [{"name": device} if isinstance(device, str) else device for device in devices]
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": f"{pool}-{generation}-{devices[0] if devices else 'counters'}"},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": slices},
            "nodeName": pool,
            "devices": listed,
            "sharedCounters": list(counters),
        },
    }


def result(device: str, *, pool: str = "n1", **more: Any) -> Body:
    """One allocated device."""
    return {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device} | more


def claim(
    name: str,
    *results: str | Body,
    reserved_for: Iterable[Body] = (),
    owner: Body | None = None,
    generated: bool = False,
    finalizers: Sequence[str] = PROTECTED,
    tolerations: Sequence[Body] = (),
    node: str = "n1",
    **request: Any,
) -> Body:
    """A claim; with results it is allocated, and sound unless the test says otherwise."""
    listed = [result(entry) if isinstance(entry, str) else entry for entry in results]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    allocation = {"devices": {"results": listed}, "nodeSelector": {"nodeSelectorTerms": [term]}}
    exactly = {"deviceClassName": "gpu", "tolerations": list(tolerations), **request}
    status = {"allocation": allocation, "reservedFor": list(reserved_for)} if listed else {}
    return {
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "finalizers": list(finalizers),
            "annotations": {"resource.kubernetes.io/pod-claim-name": "gpu"} if generated else {},
            "ownerReferences": [owner] if owner else [],
        },
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        "status": status,
    }


def pod(
    name: str,
    *claims: str,
    uid: str = "",
    node: str = "",
    phase: str = "Running",
    takes: Mapping[str, str] | None = None,
) -> Body:
    """A pod that uses claims by name, and takes amounts of resources."""
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"limits": dict(takes or {})}}],
            "resourceClaims": [{"name": entry, "resourceClaimName": entry} for entry in claims],
        },
        "status": {"phase": phase},
    }


def device_class(name: str, **spec: Any) -> Body:
    """A class."""
    return {"kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def consumer(name: str, uid: str = "") -> Body:
    """An entry of `reservedFor` for a pod."""
    return {"resource": "pods", "name": name, "uid": uid or f"uid-{name}"}


def owner(name: str, uid: str = "") -> Body:
    """An owner reference to a pod."""
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid or f"uid-{name}", "controller": True}


def ownership(*devices: Mapping[str, str], name: str = "gpus") -> Body:
    """A DeviceOwnership."""
    return {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "DeviceOwnership",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"devices": [dict(entry) for entry in devices]},
    }


def fence() -> Body:
    """The taint rule that keeps kube-scheduler off the driver's devices."""
    taint = {"key": "dovetail.dev/owned", "value": "gpus", "effect": "NoSchedule"}
    return {
        "kind": "DeviceTaintRule",
        "metadata": {"name": "fence"},
        "spec": {"deviceSelector": {"driver": DRIVER}, "taint": taint},
    }


def evidence(*bodies: Body) -> Evidence:
    """The objects as the audit takes them."""
    return Evidence(
        claims=tuple(ResourceClaim.parse(body) for body in bodies if body["kind"] == "ResourceClaim"),
        slices=tuple(ResourceSlice.parse(body) for body in bodies if body["kind"] == "ResourceSlice"),
        pods=tuple(Pod.parse(body) for body in bodies if body["kind"] == "Pod"),
        nodes=tuple(Node.parse(body) for body in bodies if body["kind"] == "Node"),
        classes=tuple(DeviceClass.parse(body) for body in bodies if body["kind"] == "DeviceClass"),
        rules=tuple(DeviceTaintRule.parse(body) for body in bodies if body["kind"] == "DeviceTaintRule"),
    )
