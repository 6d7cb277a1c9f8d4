"""Whether a node reaches the volumes of a pod (kube-scheduler's VolumeBinding and its neighbours)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from dovetail.api.meta import KubernetesObject
from dovetail.api.placement import PersistentVolume, PersistentVolumeClaim, StorageClass
from dovetail.api.pods import Pod
from dovetail.core.footprints import Footprint
from dovetail.core.labels import Labels, labels_match, node_matches
from dovetail.core.node_refusals import NodeCause, NodeRefusal
from dovetail.core.nodes import NodeState
from dovetail.core.quantity import Quantity

if TYPE_CHECKING:
    from dovetail.core.world import World

NO_PROVISIONER = "kubernetes.io/no-provisioner"
LATE_BINDING = "WaitForFirstConsumer"
ONE_POD = "ReadWriteOncePod"

ZONE_LABELS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)

T = TypeVar("T", bound=KubernetesObject)


@dataclass(frozen=True, slots=True)
class VolumesFilter:
    """The pod's volumes: what is wrong with them everywhere, or where each can be reached."""

    everywhere: NodeRefusal | None
    volumes: tuple[PersistentVolume, ...] = ()
    choices: tuple[tuple[str, tuple[PersistentVolume, ...]], ...] = ()
    """Claims that are bound late to one of some volumes, by name."""
    classes: tuple[StorageClass, ...] = ()
    """Classes that make a volume once the node is known."""

    def refuse(self, state: NodeState) -> NodeRefusal | None:
        """The first volume that the node cannot have."""
        if self.everywhere is not None:
            return self.everywhere
        for volume in self.volumes:
            if not _reaches(state, volume):
                return NodeRefusal(NodeCause.VOLUME, f"PersistentVolume {volume.metadata.name}")
        for claim, choices in self.choices:
            if not any(_reaches(state, volume) for volume in choices):
                return NodeRefusal(NodeCause.VOLUME, f"no volume for PersistentVolumeClaim {claim}")
        for storage in self.classes:
            if not _is_allowed(state, storage):
                return NodeRefusal(NodeCause.VOLUME, f"StorageClass {storage.metadata.name}")
        return None


def volumes_filter(world: "World", footprint: Footprint) -> VolumesFilter | None:
    """None for a pod without claims for volumes."""
    names = claim_names(footprint.pod)
    if not names:
        return None
    namespace = footprint.pod.metadata.namespace
    claims = []
    for name in names:
        claim = find(world, PersistentVolumeClaim, namespace, name)
        refusal = _refuse_claim(world, footprint, claim, name)
        if refusal or claim is None:
            return VolumesFilter(NodeRefusal(NodeCause.VOLUME, refusal))
        claims.append(claim)
    return _filter_of(world, claims)


def claim_names(pod: Pod) -> tuple[str, ...]:
    """The claims for volumes that the pod uses, generic ephemeral volumes included."""
    return tuple(_claim_names(pod))


def find(world: "World", model: type[T], namespace: str, name: str) -> T | None:
    """An object of one of the kinds that only placing pods needs."""
    found = world.others[model.__name__].get((namespace, name))
    return found if isinstance(found, model) else None


def _claim_names(pod: Pod) -> Iterator[str]:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.metadata.name}-{volume.name}"


def _refuse_claim(
    world: "World", footprint: Footprint, claim: PersistentVolumeClaim | None, name: str
) -> str:
    """What is wrong with a claim on every node."""
    what = f"PersistentVolumeClaim {name}"
    if claim is None:
        return f"{what} does not exist"
    if claim.metadata.deletion_timestamp is not None:
        return f"{what} is being deleted"
    if ONE_POD in claim.spec.access_modes and _is_used_by_another(world, footprint, name):
        return f"{what} serves one pod and is in use"
    if claim.is_bound:
        volume = find(world, PersistentVolume, "", claim.spec.volume_name)
        return "" if volume is not None else f"PersistentVolume {claim.spec.volume_name} does not exist"
    return "" if _storage_class(world, claim) is not None else f"{what} is not bound"


def _is_used_by_another(world: "World", footprint: Footprint, name: str) -> bool:
    namespace = footprint.pod.metadata.namespace
    return any(
        name in claim_names(pod)
        for key, pod in world.pods.items()
        if key != footprint.key and key[0] == namespace and world.nodes.home_of(key) is not None
    )


def _storage_class(world: "World", claim: PersistentVolumeClaim) -> StorageClass | None:
    """The class that binds the claim once the node is known; None where nothing does."""
    storage = find(world, StorageClass, "", claim.spec.storage_class_name or "")
    return storage if storage is not None and storage.volume_binding_mode == LATE_BINDING else None


def _filter_of(world: "World", claims: Iterable[PersistentVolumeClaim]) -> VolumesFilter:
    volumes, choices, classes = [], [], []
    for claim in claims:
        volume = find(world, PersistentVolume, "", claim.spec.volume_name) if claim.is_bound else None
        storage = _storage_class(world, claim)
        if volume is not None:
            volumes.append(volume)
        elif storage is not None and storage.provisioner == NO_PROVISIONER:
            choices.append((claim.metadata.name, tuple(_available(world, claim))))
        elif storage is not None:
            classes.append(storage)
    return VolumesFilter(None, tuple(volumes), tuple(choices), tuple(classes))


def _available(world: "World", claim: PersistentVolumeClaim) -> Iterator[PersistentVolume]:
    """Volumes that the claim could be bound to; which claim gets which is left to Kubernetes."""
    for volume in world.others[PersistentVolume.__name__].values():
        if isinstance(volume, PersistentVolume) and _suits(volume, claim):
            yield volume


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    holder = volume.spec.claim_ref
    if holder is not None and (holder.namespace, holder.name) != claim.key:
        return False
    if volume.spec.storage_class_name != (claim.spec.storage_class_name or ""):
        return False
    if volume.spec.volume_mode != claim.spec.volume_mode:
        return False
    if claim.spec.selector is not None and not labels_match(claim.spec.selector, volume.metadata.labels):
        return False
    wanted = Quantity.parse(claim.spec.resources.requests.get("storage", 0))
    offered = Quantity.parse(volume.spec.capacity.get("storage", 0))
    return wanted <= offered and set(claim.spec.access_modes) <= set(volume.spec.access_modes)


def _reaches(state: NodeState, volume: PersistentVolume) -> bool:
    complete = state.node is not None
    affinity = volume.spec.node_affinity and volume.spec.node_affinity.required
    if affinity and not node_matches(affinity, state.name, state.labels, complete=complete):
        return False
    return _in_zone(state.labels, volume.metadata.labels)


def _in_zone(node: Labels, volume: Labels) -> bool:
    """Labels of the volume name the zones that it is in, joined by two underscores; unlabelled nodes pass."""
    if not any(label in node for label in ZONE_LABELS):
        return True
    return all(node.get(label) in volume[label].split("__") for label in ZONE_LABELS if label in volume)


def _is_allowed(state: NodeState, storage: StorageClass) -> bool:
    terms = storage.allowed_topologies
    if not terms or state.node is None:
        return True
    return any(
        all(state.labels.get(each.key) in each.values for each in term.match_label_expressions)
        for term in terms
    )
