"""Pod, as far as placing it on a node needs (core/v1)."""

from typing import Any

from pydantic import Field

from dovetail.api.meta import KubernetesObject, Listed, Mapped, Model
from dovetail.api.selection import LabelSelector, NodeSelector, NodeSelectorTerm, Toleration
from dovetail.api.slices import Amount


class ClaimReference(Model):
    """A container's use of one of the pod's claims, or of one request of it."""

    name: str
    request: str = ""


class ResourceRequirements(Model):
    """What a container, or the whole pod, asks for."""

    requests: Mapped[Amount] = {}
    limits: Mapped[Amount] = {}
    claims: Listed[ClaimReference] = ()


class ContainerPort(Model):
    """A port; `host_port` 0 or absent takes nothing of the node."""

    container_port: int | None = None
    host_port: int | None = None
    host_ip: str = Field(default="", alias="hostIP")
    protocol: str = "TCP"


class Container(Model):
    """A container. An init container with `restart_policy` Always is a sidecar."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: Listed[ContainerPort] = ()
    restart_policy: str | None = None


class PodResourceClaim(Model):
    """One entry of `spec.resourceClaims`."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGate(Model):
    """A reason not to schedule the pod yet."""

    name: str


class PreferredTerm(Model):
    """A preference; only required terms decide whether a node can be used."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Model):
    """Which nodes the pod may use."""

    required: NodeSelector | None = Field(
        default=None, alias="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: Listed[PreferredTerm] = Field(
        default=(), alias="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Model):
    """Which pods, in which domain of nodes."""

    label_selector: LabelSelector | None = None
    topology_key: str = ""
    namespaces: Listed[str] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: Listed[str] = ()
    mismatch_label_keys: Listed[str] = ()


class PodAffinity(Model):
    """Pods to be near to, or away from."""

    required: Listed[PodAffinityTerm] = Field(
        default=(), alias="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Model):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Model):
    """How evenly pods are spread over domains of nodes."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: Listed[str] = ()


class PersistentVolumeClaimSource(Model):
    """A volume that lives outside the pod."""

    claim_name: str


class Volume(Model):
    """A volume; kinds that are not tied to nodes are not read."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: Any = None


class SchedulingGroup(Model):
    """The PodGroup that a pod belongs to (KEP-4671)."""

    pod_group_name: str | None = None


class PodSpec(Model):
    """What the pod wants."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    node_selector: Mapped[str] = {}
    affinity: Affinity | None = None
    tolerations: Listed[Toleration] = ()
    topology_spread_constraints: Listed[TopologySpreadConstraint] = ()
    scheduling_gates: Listed[SchedulingGate] = ()
    resource_claims: Listed[PodResourceClaim] = ()
    init_containers: Listed[Container] = ()
    containers: Listed[Container] = ()
    resources: ResourceRequirements | None = None
    overhead: Mapped[Amount] = {}
    host_network: bool = False
    priority: int | None = None
    preemption_policy: str | None = None
    volumes: Listed[Volume] = ()
    scheduling_group: SchedulingGroup | None = None


class PodResourceClaimStatus(Model):
    """The claim made for one entry; without a name, none is needed (G5)."""

    name: str
    resource_claim_name: str | None = None


class ContainerStatus(Model):
    """What a running container has, which differs from its specification while it is resized."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Amount] | None = None


class PodCondition(Model):
    """One condition of a pod."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(Model):
    """What the pod has."""

    phase: str = ""
    nominated_node_name: str = ""
    extended_resource_claim_status: Any = None
    """There once kube-scheduler has made the claim for the pod's extended resources."""
    conditions: Listed[PodCondition] = ()
    resource_claim_statuses: Listed[PodResourceClaimStatus] = ()
    container_statuses: Listed[ContainerStatus] = ()
    init_container_statuses: Listed[ContainerStatus] = ()


class Pod(KubernetesObject):
    """A pod."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_done(self) -> bool:
        """Terminal, or deleted before it had a node (L1)."""
        if self.status.phase in ("Succeeded", "Failed"):
            return True
        return self.metadata.deletion_timestamp is not None and not self.spec.node_name
