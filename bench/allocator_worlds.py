"""Worlds for the allocator's bench: nodes, slices, classes and what happens in them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

GPU, NIC, MIG = "gpu.example.com", "nic.example.com", "mig.example.com"
NUMA = "resource.kubernetes.io/numaNode"

DEFAULTS = (
    "DRAAdminAccess",
    "DRAPrioritizedList",
    "DRADeviceTaints",
    "DRAConsumableCapacity",
    "DRAFractionalCapacityRange",
    "DRAPartitionableDevices",
    "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus",
)
"""The allocator's gates that are on by default in 1.37."""


@dataclass(frozen=True, slots=True)
class World:
    """A cluster and the steps that both sides take in it."""

    nodes: Sequence[Json]
    slices: Sequence[Json]
    steps: Sequence[Json]
    classes: Sequence[Json] = field(default_factory=lambda: CLASSES)
    features: Sequence[str] = DEFAULTS
    allocated_claims: Sequence[Json] = ()

    def as_json(self) -> Json:
        """The file that the oracle reads."""
        return {
            "nodes": self.nodes,
            "slices": self.slices,
            "classes": self.classes,
            "steps": self.steps,
            "allocatedClaims": self.allocated_claims,
        }


def classes_of_run(run: int) -> Sequence[Json]:
    """A class per driver, with expressions that no other run has seen."""
    return tuple(
        {
            "metadata": {"name": driver.partition(".")[0]},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}" && {run} >= 0'}}]},
        }
        for driver in (GPU, NIC, MIG)
    )


CLASSES: Sequence[Json] = classes_of_run(0)

Attributes = Callable[[int], Json]


def numa_of(half: int) -> Attributes:
    """The first `half` devices are on NUMA node 0, the others on 1."""
    return lambda number: {NUMA: {"int": number // half}}


def quadrants(number: int) -> Json:
    """NPS4: a device's own NUMA node first, then the others of its socket (KEP-6072)."""
    own = number % 8
    first = own // 4 * 4
    return {NUMA: {"ints": [own, *(node for node in range(first, first + 4) if node != own)]}}


def unique(node: int, number: int, attributes: Json) -> Json:
    """The same with what differs from device to device on real nodes."""
    return {
        **attributes,
        "uuid": {"string": f"GPU-{node:08x}-{number:04x}-4ac1-9d3e"},
        "resource.kubernetes.io/pciBusID": {"string": f"{node % 65536:04x}:{number:02x}:00.0"},
        "productName": {"string": "Example Accelerator 80GB"},
    }


def node_name(index: int) -> str:
    """The name of a node."""
    return f"node-{index:05}"


def nodes(amount: int) -> list[Json]:
    """So many nodes."""
    return [{"metadata": {"name": node_name(index)}} for index in range(amount)]


def slice_of(node: int, driver: str, amount: int, attributes: Attributes) -> Json:
    """A slice with so many devices of one driver on one node."""
    name = node_name(node)
    kind = driver.partition(".")[0]
    return {
        "metadata": {"name": f"{name}-{kind}"},
        "spec": {
            "driver": driver,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"{kind}-{number}", "attributes": attributes(number)} for number in range(amount)
            ],
        },
    }


def pairs(amount: int, attributes: Attributes | None = None) -> list[Json]:
    """Slices of nodes with 8 GPUs and 8 NICs each, half of either on each of two NUMA nodes."""
    where = attributes or numa_of(4)
    return [slice_of(node, driver, 8, where) for node in range(amount) for driver in (GPU, NIC)]


def claim(name: str, requests: Sequence[Json], constraints: Sequence[Json] = ()) -> Json:
    """A claim in namespace `bench`."""
    return {
        "metadata": {"name": name, "namespace": "bench", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": list(requests), "constraints": list(constraints)}},
    }


def request(name: str, device_class: str, count: int, **more: Any) -> Json:
    """A request for so many devices of a class."""
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count, **more}
    return {"name": name, "exactly": exactly}


def matched(name: str, gpus: int, nics: int) -> Json:
    """A claim for GPUs and NICs on one NUMA node."""
    requests = [request("gpu", "gpu", gpus), request("nic", "nic", nics)]
    return claim(name, requests, [{"matchAttribute": NUMA}])


def one_after_another(claims: Iterator[Json]) -> list[Json]:
    """Allocate one claim after the other."""
    return [{"name": one["metadata"]["name"], "allocate": [one]} for one in claims]


def matched_world(amount: int, claims: int, devices: int) -> World:
    """Claims one after another, each for so many GPUs and NICs on one NUMA node."""
    steps = one_after_another(matched(f"c-{i}", devices, devices) for i in range(claims))
    return World(nodes(amount), pairs(amount), steps)


def single_world(amount: int, claims: int, **more: Any) -> World:
    """Claims one after another, each for one GPU of any NUMA node."""
    steps = one_after_another(claim(f"c-{i}", [request("gpu", "gpu", 1, **more)]) for i in range(claims))
    return World(nodes(amount), pairs(amount), steps)


def selected_world(amount: int, claims: int) -> World:
    """The same, each with a selector that half of the GPUs pass."""
    second = 'device.attributes["resource.kubernetes.io"].numaNode == 1'
    return single_world(amount, claims, selectors=[{"cel": {"expression": second}}])


def churn_world(amount: int, rounds: int) -> World:
    """90 % of all devices are in use; pods go, and others take their place."""
    full = amount * 9 // 10
    held = [_held(node, number) for node in range(full) for number in range(8)]
    steps: list[Json] = []
    for index in range(rounds):
        if index >= rounds // 4:
            steps.append({"release": f"c-{index - rounds // 4}"})
        steps.append({"name": f"c-{index}", "allocate": [matched(f"c-{index}", 1, 1)]})
    return World(nodes(amount), pairs(amount), steps, allocated_claims=held)


def _held(node: int, number: int) -> Json:
    """An allocated claim that holds one GPU and one NIC."""
    results = [
        {"request": kind, "driver": driver, "pool": node_name(node), "device": f"{kind}-{number}"}
        for kind, driver in (("gpu", GPU), ("nic", NIC))
    ]
    body = matched(f"held-{node}-{number}", 1, 1)
    return {**body, "status": {"allocation": {"devices": {"results": results}}}}


def list_world(amount: int, claims: int) -> World:
    """NUMA nodes as lists: four quadrants per socket."""
    steps = one_after_another(matched(f"c-{i}", 1, 1) for i in range(claims))
    features = (*DEFAULTS, "DRAListTypeAttributes")
    return World(nodes(amount), pairs(amount, quadrants), steps, features=features)


def partition_world(amount: int, claims: int) -> World:
    """GPUs in partitions: each claim takes a small and a large one."""
    slices = [one for node in range(amount) for one in _partitioned(node)]
    wanted = [
        request("small", "mig", 1, selectors=_size("1g")),
        request("large", "mig", 1, selectors=_size("3g")),
    ]
    steps = one_after_another(claim(f"c-{i}", wanted) for i in range(claims))
    return World(nodes(amount), slices, steps)


def _size(profile: str) -> list[Json]:
    return [{"cel": {"expression": f'device.attributes["{MIG}"].profile == "{profile}"'}}]


def _partitioned(node: int) -> Iterator[Json]:
    """Four GPUs on a node, each with seven partitions of one slice, two of three, and one of all."""
    name = node_name(node)
    pool = {"name": name, "generation": 1, "resourceSliceCount": 2}
    common = {"driver": MIG, "nodeName": name, "pool": pool}
    sets = [
        {"name": f"gpu-{gpu}", "counters": {"slices": {"value": "7"}, "memory": {"value": "80Gi"}}}
        for gpu in range(4)
    ]
    devices = [
        {
            "name": f"gpu-{gpu}-{profile}-{number}",
            "attributes": {"profile": {"string": profile}},
            "consumesCounters": [
                {
                    "counterSet": f"gpu-{gpu}",
                    "counters": {"slices": {"value": slices}, "memory": {"value": memory}},
                }
            ],
        }
        for gpu in range(4)
        for profile, amount, slices, memory in (
            ("1g", 7, "1", "10Gi"),
            ("3g", 2, "3", "40Gi"),
            ("7g", 1, "7", "80Gi"),
        )
        for number in range(amount)
    ]
    yield {"metadata": {"name": f"{name}-counters"}, "spec": {**common, "sharedCounters": sets}}
    yield {"metadata": {"name": f"{name}-devices"}, "spec": {**common, "devices": devices}}


def preference_world(amount: int, claims: int) -> World:
    """Four GPUs on one NUMA node if possible, else two, else one."""
    options = [
        {"name": f"of-{count}", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
        for count in (4, 2, 1)
    ]
    steps = one_after_another(
        claim(
            f"c-{i}",
            [{"name": "gpu", "firstAvailable": options}, request("nic", "nic", 1)],
            [{"matchAttribute": NUMA}],
        )
        for i in range(claims)
    )
    return World(nodes(amount), pairs(amount), steps)


# -- refusals ------------------------------------------------------------------------------------------


def refusals(amount: int) -> dict[str, World]:
    """Claims that no node can serve, on so many equal nodes."""
    thirty_one = [slice_of(node, GPU, 31, _equal) for node in range(amount)]
    four_nics = [
        slice_of(node, driver, count, _equal)
        for node in range(amount)
        for driver, count in ((GPU, 8), (NIC, 4))
    ]
    seven = [
        slice_of(node, driver, count, _roots)
        for node in range(amount)
        for driver, count in ((GPU, 8), (NIC, 7))
    ]
    asked = {
        "32 of 31": (thirty_one, claim("c", [request("gpu", "gpu", 32)])),
        "4 x 8 of 31": (thirty_one, claim("c", [request(f"gpu-{i}", "gpu", 8) for i in range(4)])),
        "9 of 8 + 8 matched": (
            [slice_of(node, GPU, 16, numa_of(8)) for node in range(amount)],
            claim("c", [request("gpu", "gpu", 9)], [{"matchAttribute": NUMA}]),
        ),
        "6 GPUs + 5 NICs with 4 NICs": (four_nics, matched("c", 6, 5)),
        "8 pairs, one NIC missing": (seven, _eight_pairs()),
    }
    return {
        name: World(nodes(amount), slices, [{"name": "c", "allocate": [one]}])
        for name, (slices, one) in asked.items()
    }


def _equal(_: int) -> Json:
    return {NUMA: {"int": 0}}


def _roots(number: int) -> Json:
    return {"resource.kubernetes.io/pcieRoot": {"string": f"pci{number:04}"}}


def _eight_pairs() -> Json:
    requests = [request(f"{kind}-{i}", kind, 1) for i in range(8) for kind in ("gpu", "nic")]
    constraints = [
        {"matchAttribute": "resource.kubernetes.io/pcieRoot", "requests": [f"gpu-{i}", f"nic-{i}"]}
        for i in range(8)
    ]
    return claim("c", requests, constraints)
