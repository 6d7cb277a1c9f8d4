"""How many volumes of each CSI driver a node can still attach (kube-scheduler's NodeVolumeLimits)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from dovetail.api.placement import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from dovetail.api.pods import Pod
from dovetail.core.footprints import Footprint
from dovetail.core.node_refusals import NodeCause, NodeRefusal
from dovetail.core.nodes import NodeState, pods_beside, pods_expected
from dovetail.core.volumes import claim_names, find

if TYPE_CHECKING:
    from dovetail.core.world import World

Attached = tuple[str, str]
"""A CSI driver and the handle of one of its volumes."""


@dataclass(frozen=True, slots=True)
class VolumeLimitsFilter:
    """The volumes of the pod that have to be attached."""

    world: "World"
    footprint: Footprint
    wanted: frozenset[Attached]

    def refuse(self, state: NodeState) -> NodeRefusal | None:
        """The first driver that would have to attach more than it can."""
        limits = _limits(self.world, state.name)
        if not limits:
            return None
        there = {
            volume
            for other in chain(pods_beside(state, self.footprint), pods_expected(state, self.footprint))
            for volume in _attached(self.world, other.pod)
        }
        added = Counter(driver for driver, _ in self.wanted - there)
        held = Counter(driver for driver, _ in there)
        for driver in sorted(added):
            if driver in limits and held[driver] + added[driver] > limits[driver]:
                return NodeRefusal(NodeCause.VOLUME_LIMIT, f"{driver}: {limits[driver]}")
        return None


def volume_limits_filter(world: "World", footprint: Footprint) -> VolumeLimitsFilter | None:
    """None for a pod without volumes of CSI drivers."""
    wanted = frozenset(_attached(world, footprint.pod))
    return VolumeLimitsFilter(world, footprint, wanted) if wanted else None


def _limits(world: "World", node: str) -> dict[str, int]:
    found = find(world, CSINode, "", node)
    drivers = found.spec.drivers if found is not None else ()
    return {
        driver.name: driver.allocatable.count
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _attached(world: "World", pod: Pod) -> Iterator[Attached]:
    for name in claim_names(pod):
        claim = find(world, PersistentVolumeClaim, pod.metadata.namespace, name)
        if claim is not None and (volume := _volume(world, claim)) is not None:
            yield volume


def _volume(world: "World", claim: PersistentVolumeClaim) -> Attached | None:
    """A claim without a volume yet counts for the driver that will make it."""
    if claim.spec.volume_name:
        volume = find(world, PersistentVolume, "", claim.spec.volume_name)
        csi = volume.spec.csi if volume is not None else None
        return (csi.driver, csi.volume_handle) if csi is not None else None
    storage = find(world, StorageClass, "", claim.spec.storage_class_name or "")
    return (storage.provisioner, "/".join(claim.key)) if storage is not None else None
