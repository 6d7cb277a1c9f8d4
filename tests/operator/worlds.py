"""Builders of what a cluster holds, with defaults: a test names only what it is about."""

from collections.abc import Mapping
from itertools import combinations
from random import Random
from typing import Any

from dovetail.embedded import EmbeddedCluster

Body = dict[str, Any]

GATE = "dovetail.dev/allocation"


def node(name: str = "n1", *, cpu: str = "8", plugins: Mapping[str, str] | None = None, **spec: Any) -> Body:
    """A node that is ready and has room; `plugins` are amounts that device plugins offer."""
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110", **(plugins or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def device(name: str, **attributes: int | str | bool) -> Body:
    """A device with attributes under bare names."""
    kinds = {bool: "bool", int: "int", str: "string"}
    return {
        "name": name,
        "attributes": {key: {kinds[type(value)]: value} for key, value in attributes.items()},
    }


def slice_of(driver: str, *devices: Body, node: str = "n1", generation: int = 1) -> Body:
    """All devices of a driver on a node."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
            "devices": list(devices),
        },
    }


def gpus(*places: int, node: str = "n1") -> Body:
    """GPUs of gpu.nvidia.com, one per NUMA node named."""
    devices = [device(f"gpu-{index}", numa=place) for index, place in enumerate(places)]
    return slice_of("gpu.nvidia.com", *devices, node=node)


def nics(*places: int, node: str = "n1") -> Body:
    """NICs of dra.net, one per NUMA node named."""
    devices = [device(f"nic-{index}", numaNode=place) for index, place in enumerate(places)]
    return slice_of("dra.net", *devices, node=node)


def device_class(name: str, driver: str) -> Body:
    """A class of one driver's devices."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
    }


CLASSES = (device_class("gpu", "gpu.nvidia.com"), device_class("nic", "dra.net"))


def request(name: str, count: int = 1) -> Body:
    """Devices of the class of the request's name."""
    return {"name": name, "exactly": {"deviceClassName": name, "count": count}}


def aligned(*requests: str, attribute: str = "dovetail.dev/numaNode", **counts: int) -> Body:
    """The specification of a claim whose requests share an attribute."""
    wanted = [request(name, counts.get(name, 1)) for name in requests or ("gpu", "nic")]
    return {"devices": {"requests": wanted, "constraints": [{"matchAttribute": attribute}]}}


def plain(*requests: str) -> Body:
    """The specification of a claim without constraints: kube-scheduler's own."""
    return {"devices": {"requests": [request(name) for name in requests]}}


def template(name: str = "pair", spec: Body | None = None) -> Body:
    """A template for claims."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": spec or aligned()},
    }


def claim(name: str, spec: Body | None = None) -> Body:
    """A claim that a user made."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec or aligned(),
    }


def pod(
    name: str = "p",
    *,
    template: str = "pair",
    claim: str = "",
    gates: tuple[str, ...] = (GATE,),
    cpu: str = "100m",
    **spec: Any,
) -> Body:
    """A pod with one claim, from a template or by name, behind our gate."""
    source = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulingGates": [{"name": gate} for gate in gates],
            "resourceClaims": [{"name": "devices", **source}],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.k8s.io/pause",
                    "resources": {"requests": {"cpu": cpu}, "claims": [{"name": "devices"}]},
                }
            ],
        }
        | spec,
    }


def is_running(body: Body) -> bool:
    """The pod has a node and runs."""
    return bool(body.get("status", {}).get("phase") == "Running")


def running_pod(name: str) -> Any:
    """A condition to wait for."""
    return lambda body: body["metadata"]["name"] == name and is_running(body)


def devices_of(body: Body) -> list[str]:
    """The names of the devices that a claim has."""
    results = body["status"]["allocation"]["devices"]["results"]
    return [result["device"] for result in results]


def condition(body: Body) -> Body:
    """The pod's condition of ours, or an empty one."""
    conditions = body.get("status", {}).get("conditions", [])
    return next((entry for entry in conditions if entry["type"] == "dovetail.dev/Allocated"), {})


def our_writes(cluster: EmbeddedCluster) -> list[tuple[str, str]]:
    """The writes of the operator, in order, without Leases, reviews and events."""
    return [
        (request.method, request.resource)
        for request in cluster.writes()
        if request.user_agent == "dovetail"
        and request.resource not in ("leases", "selfsubjectaccessreviews", "events")
    ]


def is_gated(body: Body) -> bool:
    """The pod carries our gate."""
    return any(gate["name"] == GATE for gate in body["spec"].get("schedulingGates") or ())


def waits_for(reason: str = "") -> Any:
    """A condition to wait for: the pod says that it waits, for this reason."""
    return lambda body: condition(body).get("status") == "False" and reason in ("", condition(body)["reason"])


def bind(cluster: EmbeddedCluster, name: str = "p", node_name: str = "n1") -> Body:
    """What kube-scheduler does in the end; the answer is the pod."""
    binding = {"target": {"kind": "Node", "name": node_name}}
    cluster.writer.bind(cluster.kinds.named("Pod"), ("default", name), binding)
    return cluster.get("Pod", name)


def pairs(count: int = 1, node_name: str = "n1") -> list[Body]:
    """A node with so many GPUs and NICs on NUMA node 0, the classes and a template for a pair."""
    places = [0] * count
    return [
        node(node_name),
        *CLASSES,
        gpus(*places, node=node_name),
        nics(*places, node=node_name),
        template(),
    ]


HARD_DRIVER = "hard.example.com"


def hard_hardware(node_name: str = "hard") -> list[Body]:
    """A node whose devices differ in many attributes, and the class `hard`: see `hard_claim`."""
    chance = Random(4)
    devices = [
        device(
            f"dev-{index}",
            **{"resource.kubernetes.io/numaNode": 0},
            **{f"x{number}": chance.randrange(6) for number in range(28)},
        )
        for index in range(80)
    ]
    return [
        node(node_name),
        device_class("hard", HARD_DRIVER),
        slice_of(HARD_DRIVER, *devices, node=node_name),
    ]


HARD_SEEDS = (1, 3, 4, 6)
"""With these a search takes longer than any decision may."""


def hard_claim(name: str, number: int = 0) -> Body:
    """A claim for twelve devices, pairs of which have to share something: the search for them is cut."""
    seed = HARD_SEEDS[number % len(HARD_SEEDS)]
    pairs = list(combinations(range(12), 2))
    Random(seed).shuffle(pairs)
    requests = [
        {"name": f"r{index}", "exactly": {"deviceClassName": "hard", "count": 1}} for index in range(12)
    ]
    constraints: list[Body] = [{"matchAttribute": "dovetail.dev/numaNode"}]
    for index, (one, other) in enumerate(pairs[:28]):
        attribute = f"{HARD_DRIVER}/x{index}"
        constraints.append({"matchAttribute": attribute, "requests": [f"r{one}", f"r{other}"]})
    return claim(name, {"devices": {"requests": requests, "constraints": constraints}})


def written_statuses(cluster: EmbeddedCluster, name: str) -> list[Body]:
    """Every status that the operator sent for a claim, in order, accepted or not.

    What comes back a moment later is not seen in the end, but was another's for that moment.
    """
    return [
        request.body["status"]
        for request in cluster.writes("resourceclaims/status", "PUT")
        if request.name == name and isinstance(request.body, dict)
    ]


def times_taken(cluster: EmbeddedCluster, name: str) -> int:
    """How often the operator sent a status that takes a claim's devices away."""
    return sum("allocation" not in status for status in written_statuses(cluster, name))
