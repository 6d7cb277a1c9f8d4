"""What is compared: three ways to the same pods, and the cluster that they run on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from e2e.harness import Cluster, Object, gather_limited, objects

GPU, NIC = "gpu.example.com", "nic.example.com"
PUBLISHED = "resource.kubernetes.io/numaNode"
"""The attribute that both drivers publish under one name: what kube-scheduler needs by itself."""

DERIVED = "dovetail.dev/numaNode"
NATIVE = "derived/numaNode"
PAIRS_PER_NODE = 8
NUMA_NODES = 2
GATES = {"DRADerivedAttributes": True, "DRAListTypeAttributes": True}


@dataclass(frozen=True, slots=True)
class Arm:
    """One way: who allocates, by which attribute, on a control plane with which feature gates."""

    name: str
    title: str
    attribute: str
    with_operator: bool = False
    gates: Mapping[str, bool] = field(default_factory=dict)

    @property
    def claim(self) -> Object:
        """One GPU and one NIC on one NUMA node."""
        wishes = {"gpu": self._wish(GPU, "numa"), "nic": self._wish(NIC, "numaNode")}
        return objects.claim_spec(wishes, match=self.attribute)

    def pod(self, name: str) -> Object:
        """A pod with one such claim, generated from the template `pair`."""
        gates = (objects.GATE,) if self.with_operator else ()
        return objects.pod(name, templates={"devices": "pair"}, gates=gates)

    def _wish(self, driver: str, attribute: str) -> Object:
        wish: Object = {"deviceClassName": driver}
        if self.attribute == NATIVE:
            expression = f'device.attributes["{driver}"].{attribute}'
            wish["derivedAttributes"] = [{"name": NATIVE, "expression": expression}]
        return wish


SCHEDULER = Arm("scheduler", "kube-scheduler, published attribute", PUBLISHED)
NATIVELY = Arm("native", "kube-scheduler, native derived attributes", NATIVE, gates=GATES)
DOVETAIL = Arm("dovetail", "Dovetail, derived attribute, gated pods", DERIVED, with_operator=True)


async def build_world(cluster: Cluster, nodes: int) -> None:
    """Equal nodes with eight GPUs and NICs on two NUMA nodes, named in drivers' words and in common ones."""
    names = [f"node-{number:04}" for number in range(nodes)]
    await cluster.add_nodes(names)
    slices = [item for name in names for item in (_slice(name, GPU, "numa"), _slice(name, NIC, "numaNode"))]
    await gather_limited([partial(cluster.kube.create, item) for item in slices])
    await cluster.create_all([objects.device_class(GPU), objects.device_class(NIC)])
    rules = [
        {"driver": GPU, "expression": f'device.attributes["{GPU}"].numa'},
        {"driver": NIC, "expression": f'device.attributes["{NIC}"].numaNode'},
    ]
    await cluster.kube.create(objects.mapping("numa-node", DERIVED, rules))


def _slice(node: str, driver: str, attribute: str) -> Object:
    devices = []
    for number in range(PAIRS_PER_NODE):
        place = number * NUMA_NODES // PAIRS_PER_NODE
        known: dict[str, str | int] = {attribute: place, PUBLISHED: place, "model": "example"}
        devices.append(objects.device(f"{driver[:3]}-{number}", **known))
    return objects.resource_slice(node, driver, devices)
