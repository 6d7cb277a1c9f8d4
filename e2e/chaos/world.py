"""The nodes, devices, claims and pods of the run, and which waiting pod could run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from e2e.chaos.attacks import HARD
from e2e.chaos.script import NODES, SHARED_CLAIMS, Shape
from e2e.harness import Object, allocated, objects, running
from e2e.tests.claims import CLASSES, GPU, NIC, NUMA, devices, numa_mapping, pair

EXTRA = "extra.example.com"
"""A driver whose devices are kube-scheduler's alone."""

PLACES = (0, 0, 1, 1)
"""The NUMA nodes of a node's GPUs, and of its NICs."""

EXTRAS = 3
SHAPE_LABEL = "chaos/shape"


def classes() -> tuple[Object, ...]:
    """What is there from the beginning, cluster-wide: ours are fenced, as the chart recommends."""
    owned = [{"driver": GPU}, {"driver": NIC}]
    ownership = {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "DeviceOwnership",
        "metadata": {"name": "chaos"},
        "spec": {"devices": owned},
    }
    mapping = numa_mapping()
    mapping["spec"]["rules"].append({"driver": HARD, "expression": f'device.attributes["{HARD}"].numaNode'})
    return (*CLASSES, objects.device_class(EXTRA), mapping, ownership)


def templates() -> tuple[Object, ...]:
    """What is there from the beginning in the namespace."""
    many = {"gpu": {"deviceClassName": GPU, "count": 2}, "nic": {"deviceClassName": NIC, "count": 2}}
    more = {"gpu": {"deviceClassName": GPU, "count": len(PLACES)}}
    return (
        objects.template("pair", pair()),
        objects.template("wide", objects.claim_spec(many, match=NUMA)),
        objects.template("impossible", objects.claim_spec(more, match=NUMA)),
        objects.template("plain", objects.claim_spec({"extra": EXTRA})),
        *(objects.claim(name, pair()) for name in SHARED_CLAIMS),
    )


def slices(node: str, driver: str, generation: int) -> tuple[Object, ...]:
    """What a driver publishes on a node in one generation: two slices that make one pool."""
    prefix = driver.partition(".")[0]
    places: Sequence[int] = PLACES if driver != EXTRA else (0,) * EXTRAS
    found = [objects.device(f"{prefix}-{index}", numaNode=place) for index, place in enumerate(places)]
    halves = (found[: len(found) // 2], found[len(found) // 2 :])
    return tuple(_half(node, driver, generation, part, half) for part, half in enumerate(halves))


def _half(node: str, driver: str, generation: int, part: int, found: Sequence[Object]) -> Object:
    half = objects.resource_slice(node, driver, found, generation=generation)
    half["metadata"]["name"] += f"-{part}"
    half["spec"]["pool"]["resourceSliceCount"] = 2
    return half


DRIVERS = (GPU, NIC, EXTRA)
_TEMPLATES: Mapping[Shape, Mapping[str, str]] = {
    Shape.PAIR: {"devices": "pair"},
    Shape.TWO: {"first": "pair", "second": "pair"},
    Shape.WIDE: {"devices": "wide"},
    Shape.BESIDE: {"devices": "pair", "other": "plain"},
    Shape.PLAIN: {"other": "plain"},
    Shape.SHARED: {},
    Shape.UNGATED: {"devices": "pair"},
    Shape.IMPOSSIBLE: {"devices": "impossible"},
}


def pod(name: str, shape: Shape, claim: str) -> Object:
    """A pod of a shape; `claim` is the shared one."""
    is_gated = shape not in (Shape.PLAIN, Shape.UNGATED)
    return objects.pod(
        name,
        templates=_TEMPLATES[shape],
        claims={"devices": claim} if claim else {},
        gates=(objects.GATE,) if is_gated else (),
        labels={SHAPE_LABEL: shape.name},
    )


def shape_of(body: Object) -> Shape:
    """The shape of a pod of the run."""
    return Shape[body["metadata"]["labels"][SHAPE_LABEL]]


def is_over(body: Object) -> bool:
    """Done, or being deleted: it wants nothing any more."""
    phase = body["status"].get("phase")
    return phase in ("Succeeded", "Failed") or "deletionTimestamp" in body["metadata"]


@dataclass(frozen=True, slots=True)
class Room:
    """What is free: per node and NUMA node GPUs and NICs, and per node of the third driver."""

    gpus: Mapping[tuple[str, int], int]
    nics: Mapping[tuple[str, int], int]
    extras: Mapping[str, int]

    @classmethod
    def of(cls, claims: Iterable[Object]) -> Room:
        """With all nodes and slices in place."""
        taken = {key for claim in claims if allocated(claim) for key in devices(claim)}
        free: dict[str, dict[tuple[str, int], int]] = {driver: defaultdict(int) for driver in DRIVERS}
        for node in NODES:
            for driver in DRIVERS:
                for half in slices(node, driver, 1):
                    for found in half["spec"]["devices"]:
                        if (driver, node, found["name"]) not in taken:
                            free[driver][node, found["attributes"]["numaNode"]["int"]] += 1
        extras = {node: free[EXTRA][node, 0] for node in NODES}
        return cls(free[GPU], free[NIC], extras)

    def takes(self, shape: Shape) -> bool:
        """Whether a pod of this shape, with claims that have no devices yet, fits somewhere."""
        return any(self._takes(shape, node) for node in NODES)

    def _takes(self, shape: Shape, node: str) -> bool:
        pairs = [min(self.gpus[node, place], self.nics[node, place]) for place in set(PLACES)]
        match shape:
            case Shape.PAIR | Shape.SHARED | Shape.UNGATED:
                return sum(pairs) >= 1
            case Shape.TWO:
                return sum(pairs) >= 2
            case Shape.WIDE:
                return max(pairs) >= 2
            case Shape.BESIDE:
                return sum(pairs) >= 1 and self.extras[node] >= 1
            case Shape.PLAIN:
                return self.extras[node] >= 1
            case Shape.IMPOSSIBLE:
                return False


def could_run(pods: Iterable[Object], claims: Sequence[Object]) -> list[str]:
    """The pods that wait although there is room for them, or although they have all their devices."""
    room = Room.of(claims)
    by_name = {claim["metadata"]["name"]: claim for claim in claims}
    return sorted(
        body["metadata"]["name"]
        for body in pods
        if not running(body) and not is_over(body) and (_has_all(body, by_name) or room.takes(shape_of(body)))
    )


def _has_all(body: Object, claims: Mapping[str, Object]) -> bool:
    """Every claim of the pod has its devices."""
    made = {
        entry["name"]: entry.get("resourceClaimName")
        for entry in body["status"].get("resourceClaimStatuses") or ()
    }
    names = [
        str(entry.get("resourceClaimName") or made.get(entry["name"]) or "")
        for entry in body["spec"]["resourceClaims"]
    ]
    return all(name in claims and allocated(claims[name]) for name in names)
