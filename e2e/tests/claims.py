"""What tests of the operator ask of claims and pods."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from e2e.harness import objects
from e2e.harness.kube import Object, allocated, condition, running

NUMA = "dovetail.dev/numaNode"
GPU, NIC = "gpu.example.com", "nic.example.com"


def placed(places: Iterable[int], prefix: str) -> list[Object]:
    """One device per NUMA node named."""
    return [objects.device(f"{prefix}-{index}", numaNode=place) for index, place in enumerate(places)]


def gpu_slice(node: str, *places: int) -> Object:
    """The GPUs of a node, by the driver that the test's mapping knows."""
    return objects.resource_slice(node, GPU, placed(places, "gpu"))


def nic_slice(node: str, *places: int) -> Object:
    """The NICs of a node."""
    return objects.resource_slice(node, NIC, placed(places, "nic"))


def numa_mapping(*, nic_expression: str = f'device.attributes["{NIC}"].numaNode') -> Object:
    """How the two drivers of the tests say where their devices sit."""
    rules = [
        {"driver": GPU, "expression": f'device.attributes["{GPU}"].numaNode'},
        {"driver": NIC, "expression": nic_expression},
    ]
    return objects.mapping("numa", NUMA, rules)


CLASSES = (objects.device_class(GPU), objects.device_class(NIC))


def pair(attribute: str = NUMA) -> Object:
    """One GPU and one NIC that share an attribute."""
    return objects.claim_spec({"gpu": GPU, "nic": NIC}, match=attribute)


def plain_gpu() -> Object:
    """A GPU without any constraint: kube-scheduler's own."""
    return objects.claim_spec({"gpu": GPU})


def devices(claim: Object) -> list[tuple[str, str, str]]:
    """The devices of an allocated claim."""
    results = claim["status"]["allocation"]["devices"]["results"]
    return [(result["driver"], result["pool"], result["device"]) for result in results]


def alignment(claim: Object) -> list[dict[str, Any]]:
    """What the claim's annotation says that its devices have in common."""
    found: list[dict[str, Any]] = json.loads(claim["metadata"]["annotations"]["dovetail.dev/alignment"])
    return found


def held_twice(claims: Iterable[Object]) -> list[tuple[str, str, str]]:
    """Devices that more than one claim holds."""
    counts = Counter(device for claim in claims if allocated(claim) for device in devices(claim))
    return [device for device, holders in counts.items() if holders > 1]


def reserved_for(claim: Object) -> list[str]:
    """The uids of a claim's consumers."""
    return [entry["uid"] for entry in (claim.get("status") or {}).get("reservedFor") or ()]


def waits(reason: str = "", text: str = "") -> Callable[[Object], bool]:
    """Whether the pod's condition says that it waits, for this reason and with these words."""

    def check(pod: Object) -> bool:
        found = condition(pod, "dovetail.dev/Allocated") or {}
        return (
            found.get("status") == "False"
            and reason in ("", found.get("reason"))
            and text in found.get("message", "")
        )

    return check


def gated(pod: Object) -> bool:
    """Whether the pod carries our gate."""
    return any(gate["name"] == objects.GATE for gate in pod["spec"].get("schedulingGates") or ())


def runs_on(node: str) -> Callable[[Object], bool]:
    """Whether the pod runs on this node."""
    return lambda pod: running(pod) and pod["spec"].get("nodeName") == node
