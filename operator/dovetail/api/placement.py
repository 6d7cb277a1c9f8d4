"""Objects that only placing pods needs: Namespace, PriorityClass, volumes and what nodes can attach."""

from dovetail.api.meta import KubernetesObject, Listed, Mapped, Model
from dovetail.api.selection import LabelSelector, NodeSelector
from dovetail.api.slices import Amount

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


class Namespace(KubernetesObject):
    """A namespace: pod affinity selects it by its labels."""


class PriorityClass(KubernetesObject):
    """The priority that a pod names."""

    value: int = 0
    global_default: bool = False


class ObjectReference(Model):
    """A reference to an object by name."""

    name: str = ""
    namespace: str = ""
    uid: str = ""


class VolumeResources(Model):
    """How much room is asked for."""

    requests: Mapped[Amount] = {}


class PersistentVolumeClaimSpec(Model):
    """Which volume the claim asks for, or has."""

    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: Listed[str] = ()
    resources: VolumeResources = VolumeResources()
    selector: LabelSelector | None = None
    volume_mode: str = "Filesystem"


class PersistentVolumeClaim(KubernetesObject):
    """A claim for a volume; bound where it names one and says that binding is complete."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()

    @property
    def is_bound(self) -> bool:
        """The claim has its volume for good."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations


class CSIVolume(Model):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Model):
    """Which nodes reach the volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Model):
    """What the volume is and where it can be used."""

    csi: CSIVolume | None = None
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ObjectReference | None = None
    access_modes: Listed[str] = ()
    storage_class_name: str = ""
    capacity: Mapped[Amount] = {}
    volume_mode: str = "Filesystem"


class PersistentVolume(KubernetesObject):
    """A volume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class TopologySelectorRequirement(Model):
    """Allowed values of one label of nodes."""

    key: str = ""
    values: Listed[str] = ()


class TopologySelectorTerm(Model):
    """All conditions on labels hold."""

    match_label_expressions: Listed[TopologySelectorRequirement] = ()


class StorageClass(KubernetesObject):
    """How volumes of a class are made and bound."""

    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: Listed[TopologySelectorTerm] = ()


class NodeAllocatable(Model):
    """How many volumes a driver can attach; without a count, any number."""

    count: int | None = None


class CSINodeDriver(Model):
    """One CSI driver on a node."""

    name: str
    allocatable: NodeAllocatable | None = None
    topology_keys: Listed[str] = ()


class CSINodeSpec(Model):
    """The drivers of a node."""

    drivers: Listed[CSINodeDriver] = ()


class CSINode(KubernetesObject):
    """What the CSI drivers of a node can attach."""

    spec: CSINodeSpec = CSINodeSpec()
