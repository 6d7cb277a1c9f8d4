"""Small clusters as raw objects, with defaults: a test writes out only what it is about."""

from collections.abc import Iterable, Mapping
from typing import Any

from dovetail.api.mappings import GATE
from dovetail.api.pods import Pod
from dovetail.core.budget import Budget
from dovetail.core.decisions import Decision
from dovetail.core.features import Features
from dovetail.core.planner import PlanSettings, plan_pod
from dovetail.core.world import World

Body = dict[str, Any]
NUMA = "dovetail.dev/numaNode"
HOSTNAME = "kubernetes.io/hostname"


def world_of(
    *bodies: Body,
    features: Features | None = None,
    shipped: bool = True,
    assume: bool = False,
    exclude_dual_mode: bool = True,
) -> World:
    """A world with these objects."""
    world = World(
        features or Features(),
        shipped_mappings=shipped,
        assume_nodes=assume,
        exclude_dual_mode=exclude_dual_mode,
    )
    for body in bodies:
        world.put(body["kind"], body)
    return world


def decide(
    world: World, name: str = "pod", *, avoid: Iterable[str] = (), settings: PlanSettings | None = None
) -> Decision:
    """What the planner says of a pod of the world."""
    return plan_pod(
        world,
        pod_in(world, name),
        settings=settings or PlanSettings(),
        budget=Budget.unlimited(),
        avoid=tuple(avoid),
    )


def pod_in(world: World, name: str = "pod") -> Pod:
    """A pod of the world."""
    return world.pods["default", name]


def node(
    name: str,
    *,
    cpu: str = "8",
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Body] = (),
    plugins: Mapping[str, str] | None = None,
    **spec: Any,
) -> Body:
    """A node that takes ten pods; `plugins` are amounts that device plugins offer."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": {"taints": list(taints), **spec},
        "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "10", **(plugins or {})}},
    }


def pod(
    name: str = "pod",
    *,
    template: str | None = None,
    claims: Iterable[Body] = (),
    gated: bool = True,
    gates: Iterable[str] = (),
    cpu: str | None = None,
    metadata: Body | None = None,
    status: Body | None = None,
    **spec: Any,
) -> Body:
    """A pod of one container, gated by us; with `template`, entry `devices` names it."""
    entries = [*claims, *([{"name": "devices", "resourceClaimTemplateName": template}] if template else [])]
    requests = {"requests": {"cpu": cpu}} if cpu else {}
    all_gates = [*([GATE] if gated else []), *gates]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **(metadata or {})},
        "spec": {
            "containers": [{"name": "main", "resources": requests}],
            "schedulingGates": [{"name": gate} for gate in all_gates],
            "resourceClaims": entries,
            **spec,
        },
        "status": status or {},
    }


def named(claim: str, entry: str = "devices") -> Body:
    """A pod's entry for a claim that exists by itself."""
    return {"name": entry, "resourceClaimName": claim}


def request(name: str, driver: str, *, count: int = 1, **more: Any) -> Body:
    """A request for devices of the class that is called like the driver."""
    return {"name": name, "exactly": {"deviceClassName": driver, "count": count, **more}}


def devices_spec(*requests: Body, match: str | None = NUMA, over: Iterable[str] = (), **more: Any) -> Body:
    """A claim's spec: one GPU and one NIC, aligned, unless said otherwise."""
    constraints = [{"matchAttribute": match, **({"requests": list(over)} if over else {})}] if match else []
    wanted = list(requests) or [request("gpu", "gpu.example.com"), request("nic", "nic.example.com")]
    return {"devices": {"requests": wanted, "constraints": constraints, **more}}


def claim(
    name: str = "claim",
    *,
    spec: Body | None = None,
    owner: str | None = None,
    status: Body | None = None,
    metadata: Body | None = None,
) -> Body:
    """A claim; with `owner`, made for entry `devices` of that pod."""
    made: Body = {}
    if owner:
        made["annotations"] = {"resource.kubernetes.io/pod-claim-name": "devices"}
        made["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": f"uid-{owner}", "controller": True}
        ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default", **made, **(metadata or {})},
        "spec": spec or devices_spec(),
        "status": status or {},
    }


def allocated(
    node_name: str, *devices: str, driver: str = "gpu.example.com", reserved: Iterable[str] = ()
) -> Body:
    """The status of a claim that holds devices of one node."""
    results = [
        {"request": "gpu", "driver": driver, "pool": node_name, "device": device} for device in devices
    ]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    return {
        "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}},
        "reservedFor": [{"resource": "pods", "name": name, "uid": f"uid-{name}"} for name in reserved],
    }


def template(name: str = "template", *, spec: Body | None = None, **metadata: Any) -> Body:
    """A template for one GPU and one NIC on one NUMA node."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**({"metadata": metadata} if metadata else {}), "spec": spec or devices_spec()},
    }


def device_class(name: str, **spec: Any) -> Body:
    """The class of all devices of the driver that it is called like."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{name}"'}}], **spec},
    }


def devices(driver: str, node_name: str, numa: Iterable[int], *, attribute: str = "numaNode") -> Body:
    """A slice with one device per given NUMA node, called dev-0, dev-1 and so on."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"dev-{index}", "attributes": {attribute: {"int": where}}}
                for index, where in enumerate(numa)
            ],
        },
    }


def mapping(attribute: str = NUMA, name: str = "numa-node") -> Body:
    """A mapping that reads `numaNode` of every driver."""
    return {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "DerivedAttribute",
        "metadata": {"name": name},
        "spec": {
            "attribute": attribute,
            "rules": [{"driver": "*", "expression": "device.attributes[device.driver].numaNode"}],
        },
    }


def hardware(*nodes: str, numa: Iterable[int] = (0, 1)) -> list[Body]:
    """Nodes with a GPU and a NIC per NUMA node, their classes and the mapping."""
    where = tuple(numa)
    bodies = [device_class("gpu.example.com"), device_class("nic.example.com"), mapping()]
    for name in nodes:
        bodies += [
            node(name),
            devices("gpu.example.com", name, where),
            devices("nic.example.com", name, where),
        ]
    return bodies
