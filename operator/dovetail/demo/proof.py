"""Whether what the demo shows is so, judged from the API server's objects and nothing else.

Where a device sits is not taken from Dovetail but from `worlds/numa.json`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dovetail.api.mappings import ALLOCATED_CONDITION, GATE
from dovetail.demo.world import CPU, CPU_CAPACITY, GPU, NIC, Wish

Body = dict[str, Any]
Device = tuple[str, str, str]
"""Driver, pool and device."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the API server holds, and where each device sits."""

    pods: tuple[Body, ...]
    claims: tuple[Body, ...]
    slices: tuple[Body, ...]
    numa_nodes: Mapping[Device, int]

    def pod(self, name: str) -> Body | None:
        """The pod of that name."""
        return next((body for body in self.pods if body["metadata"]["name"] == name), None)

    def claims_of(self, pod: Body) -> list[Body]:
        """The claims that name the pod as their owner."""
        uid = pod["metadata"]["uid"]
        return [
            body
            for body in self.claims
            if any(owner["uid"] == uid for owner in body["metadata"].get("ownerReferences") or [])
        ]


def results_of(claim: Body) -> list[Body]:
    """The devices that a claim holds, one entry per device or share."""
    allocation = claim.get("status", {}).get("allocation") or {}
    return list(allocation.get("devices", {}).get("results") or [])


def device_of(result: Body) -> Device:
    """Which device an entry names."""
    return (result["driver"], result["pool"], result["device"])


def condition_of(pod: Body) -> Body:
    """What Dovetail says on the pod; empty where it says nothing."""
    conditions = pod.get("status", {}).get("conditions") or []
    return next((entry for entry in conditions if entry["type"] == ALLOCATED_CONDITION), {})


def problems(evidence: Evidence, *, wishes: Iterable[Wish], impossible: Wish) -> list[str]:
    """Everything that is not as the demo shows it; empty where all is well."""
    found = [problem for wish in wishes for problem in _pod_problems(evidence, wish)]
    found += _sharing_problems(evidence)
    return found + list(_refusal_problems(evidence, impossible))


def _pod_problems(evidence: Evidence, wish: Wish) -> Iterator[str]:
    pod = evidence.pod(wish.pod)
    if pod is None or pod["status"].get("phase") != "Running":
        yield f"pod {wish.pod} does not run"
        return
    claims = evidence.claims_of(pod)
    results = [result for claim in claims for result in results_of(claim)]
    counts = Counter(result["request"] for result in results)
    wanted = {GPU: wish.gpus, NIC: wish.nics, CPU: 1 if wish.cpus else 0}
    if any(counts[request] != count for request, count in wanted.items()):
        yield f"pod {wish.pod} has {dict(counts)} instead of {wish.words}"
    if any(pod["metadata"]["uid"] not in _consumers(claim) for claim in claims):
        yield f"a claim of pod {wish.pod} is not reserved for it"
    if {result["pool"] for result in results} != {pod["spec"].get("nodeName")}:
        yield f"pod {wish.pod} has devices of another node than its own"
    places = {evidence.numa_nodes.get(device_of(result)) for result in results}
    if len(places) != 1 or None in places:
        yield f"the devices of pod {wish.pod} do not share a NUMA node"


def _consumers(claim: Body) -> set[str]:
    return {consumer["uid"] for consumer in claim.get("status", {}).get("reservedFor") or []}


def _sharing_problems(evidence: Evidence) -> Iterator[str]:
    """No device is given twice, and no device that may be shared gives more than it has."""
    published = {
        (body["spec"]["driver"], body["spec"]["pool"]["name"], device["name"]): device
        for body in evidence.slices
        for device in body["spec"].get("devices") or []
    }
    given: dict[Device, list[Body]] = {}
    for claim in evidence.claims:
        for result in results_of(claim):
            given.setdefault(device_of(result), []).append(result)
    for device, results in sorted(given.items()):
        if device not in published:
            yield f"device {'/'.join(device)} is not published"
        elif not published[device].get("allowMultipleAllocations"):
            if len(results) > 1:
                yield f"device {'/'.join(device)} is given {len(results)} times"
        elif _taken(results) > _whole(published[device]):
            yield f"device {'/'.join(device)} gives more CPUs than it has"


def _taken(results: Iterable[Body]) -> Decimal:
    return sum(
        (Decimal((result.get("consumedCapacity") or {}).get(CPU_CAPACITY, 0)) for result in results),
        Decimal(),
    )


def _whole(device: Body) -> Decimal:
    return Decimal((device.get("capacity") or {}).get(CPU_CAPACITY, {}).get("value", 0))


def _refusal_problems(evidence: Evidence, wish: Wish) -> Iterator[str]:
    """The pod that fits nowhere waits, says why, and really fits nowhere."""
    pod = evidence.pod(wish.pod)
    if pod is None:
        yield f"pod {wish.pod} is not there"
        return
    condition = condition_of(pod)
    if condition.get("status") != "False" or not condition.get("message"):
        yield f"pod {wish.pod} does not say why it waits"
    gates = [gate["name"] for gate in pod["spec"].get("schedulingGates") or []]
    if pod["spec"].get("nodeName") or gates != [GATE]:
        yield f"pod {wish.pod} does not wait at its gate"
    if any(results_of(claim) for claim in evidence.claims_of(pod)):
        yield f"pod {wish.pod} has devices"
    if most_gpus(evidence) >= wish.gpus:
        yield f"pod {wish.pod} would fit: a NUMA node has {most_gpus(evidence)} GPUs"


def most_gpus(evidence: Evidence) -> int:
    """The number of GPUs, free or not, of the NUMA node that has most."""
    per_place = Counter(
        (pool, numa) for (driver, pool, _), numa in evidence.numa_nodes.items() if driver == "gpu.nvidia.com"
    )
    return max(per_place.values())


def free_gpus(evidence: Evidence) -> int:
    """How many GPUs nobody holds."""
    held = {device_of(result) for claim in evidence.claims for result in results_of(claim)}
    return sum(device not in held for device in evidence.numa_nodes if device[0] == "gpu.nvidia.com")
