"""The world of the demo: two nodes as real drivers publish them, classes, templates and pods.

`worlds/numa.json` says where each device sits, from the headers of the slices: what Dovetail derives is
held against it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml

from dovetail.api.mappings import GATE

Body = dict[str, Any]

ATTRIBUTE = "dovetail.dev/numaNode"
GPU, NIC, CPU = "gpu", "nic", "cpu"
CPU_CAPACITY = "dra.cpu/cpu"

_WORLDS = files("dovetail.demo") / "worlds"


@dataclass(frozen=True, slots=True)
class Wish:
    """One pod: how many devices of each kind it wants on one NUMA node (`cpus` of one CPU device)."""

    pod: str
    gpus: int
    nics: int = 0
    cpus: int = 0

    @property
    def words(self) -> str:
        """What it asks for."""
        parts = [f"{self.gpus} GPU{'s' * (self.gpus > 1)}"]
        parts += [f"{self.nics} NIC{'s' * (self.nics > 1)}"] if self.nics else []
        parts += [f"{self.cpus} CPUs"] if self.cpus else []
        return ", ".join(parts)

    @property
    def template(self) -> str:
        """The name of its ResourceClaimTemplate."""
        return f"{self.gpus}-gpu-{self.nics}-nic-{self.cpus}-cpu"


WISHES = (
    Wish("trainer-0", gpus=2, nics=2, cpus=16),
    Wish("trainer-1", gpus=2, nics=2, cpus=16),
    Wish("server-0", gpus=1, nics=1),
    Wish("server-1", gpus=1, nics=1),
    Wish("server-2", gpus=1, nics=1),
)
"""Pods that fit."""

IMPOSSIBLE = Wish("simulator", gpus=5)
"""A pod that fits nowhere: no NUMA node of either machine has five GPUs."""

NODES: Mapping[str, tuple[str, str]] = {
    "aks-gb300-vmss000001": ("Azure GB300", "GPUs publish no NUMA node, NICs call it dra.net/numaNode"),
    "dgx-h100-01": ("DGX H100", "all call it resource.kubernetes.io/numaNode"),
}
"""What each machine is, and what its drivers call a NUMA node."""


def slices() -> list[Body]:
    """The ResourceSlices of both nodes."""
    names = sorted(entry.name for entry in _WORLDS.iterdir() if entry.name.endswith(".yaml"))
    return [body for name in names for body in yaml.safe_load_all((_WORLDS / name).read_text("utf-8"))]


def numa_nodes() -> Mapping[tuple[str, str, str], int]:
    """Where each device sits, by driver, pool and device."""
    told = json.loads((_WORLDS / "numa.json").read_text("utf-8"))
    return {
        (driver, node, device): numa
        for node, drivers in told.items()
        for driver, devices in drivers.items()
        for device, numa in devices.items()
    }


def nodes() -> list[Body]:
    """The two nodes, ready, with the UIDs that their slices name as owner."""
    owners = {body["spec"]["nodeName"]: body["metadata"]["ownerReferences"][0]["uid"] for body in slices()}
    return [_node(name, uid) for name, uid in sorted(owners.items())]


def _node(name: str, uid: str) -> Body:
    room = {"cpu": "128", "memory": "1Ti", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": uid, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def classes() -> list[Body]:
    """One DeviceClass for each kind of device."""
    return [
        _class(GPU, 'device.driver == "gpu.nvidia.com"'),
        _class(NIC, 'device.driver == "dra.net" && device.attributes["dra.net"].rdma'),
        _class(CPU, 'device.driver == "dra.cpu"'),
    ]


def _class(name: str, expression: str) -> Body:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def templates() -> list[Body]:
    """One ResourceClaimTemplate for each sort of wish."""
    wishes = {wish.template: wish for wish in (*WISHES, IMPOSSIBLE)}
    return [_template(wish) for wish in wishes.values()]


def _template(wish: Wish) -> Body:
    requests = list(_requests(wish))
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": wish.template},
        "spec": {"spec": {"devices": {"requests": requests, "constraints": [{"matchAttribute": ATTRIBUTE}]}}},
    }


def _requests(wish: Wish) -> Iterator[Body]:
    for name, count in ((GPU, wish.gpus), (NIC, wish.nics)):
        if count:
            yield {"name": name, "exactly": {"deviceClassName": name, "count": count}}
    if wish.cpus:
        wanted = {"requests": {CPU_CAPACITY: str(wish.cpus)}}
        yield {"name": CPU, "exactly": {"deviceClassName": CPU, "capacity": wanted}}


def pod(wish: Wish) -> Body:
    """The pod of a wish, gated as the admission policy of the chart gates it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": wish.pod},
        "spec": {
            "schedulingGates": [{"name": GATE}],
            "resourceClaims": [{"name": "devices", "resourceClaimTemplateName": wish.template}],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/workload",
                    "resources": {"claims": [{"name": "devices"}]},
                }
            ],
        },
    }
