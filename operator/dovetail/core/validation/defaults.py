"""What the API server fills in when an object is created, as far as planning depends on it."""

from collections.abc import Mapping
from typing import Any

Body = dict[str, Any]


WORKLOADS = ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
"""The kinds with a template for pods right in their specification."""


def fill(kind: str, body: Body) -> None:
    """Fill in an object that was read. When taints were added counts for nothing here, and is left out."""
    spec = body.get("spec", {})
    match kind:
        case "ResourceClaim":
            _claim(spec)
        case "ResourceClaimTemplate":
            _claim(spec.get("spec", {}))
        case "ResourceSlice":
            _slice(spec)
        case "Pod":
            _pod(spec)
        case _ if template := pod_template(kind, body):
            _pod(template.get("spec", {}))
        case _:
            pass


def pod_template(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The template for the pods of a workload; empty where there is none."""
    spec = body.get("spec", {})
    if kind == "CronJob":
        spec = spec.get("jobTemplate", {}).get("spec", {})
    elif kind not in WORKLOADS:
        return {}
    template: dict[str, Any] = spec.get("template", {})
    return template


def _claim(spec: Body) -> None:
    for request in spec.get("devices", {}).get("requests", []):
        exactly = request.get("exactly")
        for devices in ([] if exactly is None else [exactly]) + request.get("firstAvailable", []):
            devices["allocationMode"] = devices.get("allocationMode") or "ExactCount"
            if devices["allocationMode"] == "ExactCount":
                devices["count"] = devices.get("count") or 1
            for toleration in devices.get("tolerations", []):
                toleration["operator"] = toleration.get("operator") or "Equal"


def _slice(spec: Body) -> None:
    """An amount that is left out is none."""
    for device in spec.get("devices", []):
        for capacity in device.get("capacity", {}).values():
            capacity.setdefault("value", "0")
        for consumption in device.get("consumesCounters", []):
            _counters(consumption)
    for counter_set in spec.get("sharedCounters", []):
        _counters(counter_set)


def _counters(holder: Body) -> None:
    for counter in holder.get("counters", {}).values():
        counter.setdefault("value", "0")


def _pod(spec: Body) -> None:
    """A limit without a request is one; ports of the host's network are the host's."""
    for field in ("initContainers", "containers"):
        for container in spec.get(field, []):
            _requests(container.get("resources", {}))
            for port in container.get("ports", []):
                port["protocol"] = port.get("protocol") or "TCP"
                if spec.get("hostNetwork") and not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)
    _requests(spec.get("resources", {}))
    spec["schedulerName"] = spec.get("schedulerName") or "default-scheduler"


def _requests(resources: Body) -> None:
    limits: Mapping[str, Any] = resources.get("limits", {})
    if limits:
        requests = resources.setdefault("requests", {})
        for name, amount in limits.items():
            requests.setdefault(name, amount)
