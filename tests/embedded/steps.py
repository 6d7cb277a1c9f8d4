"""The requests of the conversation: how one is written, and the objects that they send."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]
Memory = dict[str, Body]
"""What earlier steps were answered, by the name of the step."""

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

NAMESPACE = "conversation"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DRA = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/namespaces/{NAMESPACE}/resourceclaims"
TEMPLATES = f"{DRA}/namespaces/{NAMESPACE}/resourceclaimtemplates"
SLICES = f"{DRA}/resourceslices"
FINALIZER = "resource.kubernetes.io/delete-protection"
GATE = "dovetail.dev/allocation"


@dataclass(frozen=True, slots=True)
class Step:
    """One request. The body may depend on earlier answers; `shows` are dotted paths of the answer.

    A patient step is repeated for a while when it is answered with 404 or 429: a new kind is served soon.
    """

    name: str
    method: str
    path: str
    body: Body | list[Body] | Callable[[Memory], Any] | None = None
    shows: tuple[str, ...] = ()
    content_type: str = "application/json"
    patient: bool = False


def claim(name: str = "", **metadata: Any) -> Body:
    """A claim for two devices that are aligned."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": ({"name": name} if name else {}) | metadata,
        "spec": spec(),
    }


def spec(**changes: Any) -> Body:
    """What a claim asks for."""
    devices: Body = {
        "requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "gpu"}},
            {"name": "nic", "firstAvailable": [{"name": "fast", "deviceClassName": "nic"}]},
        ],
        "constraints": [{"requests": ["gpu", "nic"], "matchAttribute": "dovetail.dev/numaNode"}],
    }
    return {"devices": devices | changes}


def allocation(device: str = "gpu-0", **changes: Any) -> Body:
    """Two devices on node-a."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}
    return {
        "devices": {
            "results": [
                {"request": "gpu", "driver": "gpu.example.com", "pool": "node-a", "device": device},
                {"request": "nic/fast", "driver": "nic.example.com", "pool": "node-a", "device": "nic-0"},
            ]
        },
        "nodeSelector": {"nodeSelectorTerms": [term]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    } | changes


def consumer(uid: str = "uid-1", name: str = "trainer") -> Body:
    """An entry of reservedFor."""
    return {"resource": "pods", "name": name, "uid": uid}


def pod(name: str, **spec_changes: Any) -> Body:
    """A gated pod with one generated claim."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "example.com/image"}],
            "schedulingGates": [{"name": GATE}, {"name": "example.com/other"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "pair"}],
        }
        | spec_changes,
    }


def but(step: str, **changes: Any) -> Callable[[Memory], Any]:
    """The object that a step was answered, with changes at top level."""
    return lambda memory: memory[step] | changes


def with_status(step: str, status: Body) -> Callable[[Memory], Any]:
    """The object that a step was answered, with another status."""
    return but(step, status=status)


def with_metadata(step: str, **changes: Any) -> Callable[[Memory], Any]:
    """The object that a step was answered, with changes of its metadata."""
    return lambda memory: memory[step] | {"metadata": memory[step]["metadata"] | changes}


STATUS = ("status", "metadata.finalizers", "metadata.annotations", "metadata.generation")
"""What a write on the status may have changed."""
