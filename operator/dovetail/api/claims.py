"""ResourceClaim, ResourceClaimTemplate and DeviceClass (resource.k8s.io/v1)."""

from pydantic import Field

from dovetail.api.depth import Shallow
from dovetail.api.meta import KubernetesObject, Listed, Mapped, Model, ObjectMeta
from dovetail.api.selection import NodeSelector, Toleration
from dovetail.api.slices import Amount

DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"
"""The finalizer of an allocated claim (L30)."""

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a generated claim: the name of the pod's entry (G12)."""

EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that kube-scheduler makes for extended resources (G35): never ours."""


class CELSelector(Model):
    """A CEL expression over a device."""

    expression: str


class DeviceSelector(Model):
    """One condition on devices. `cel` is None where the selector is of a kind that we do not know."""

    cel: CELSelector | None = None


class NativeDerivedAttribute(Model):
    """A derived attribute as KEP-6080 shipped it in 1.37."""

    name: str
    expression: str


class CapacityRequirements(Model):
    """The amounts that a request wants of a device's capacities (KEP-5075)."""

    requests: Mapped[Amount] = {}


class ExactDeviceRequest(Model):
    """Devices of one class."""

    device_class_name: str = ""
    selectors: Listed[DeviceSelector] = ()
    allocation_mode: str = "ExactCount"
    count: int | None = None
    admin_access: bool | None = None
    tolerations: Listed[Toleration] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: Listed[NativeDerivedAttribute] = ()


class DeviceSubRequest(Model):
    """One alternative of a prioritized list (KEP-4816)."""

    name: str
    device_class_name: str = ""
    selectors: Listed[DeviceSelector] = ()
    allocation_mode: str = "ExactCount"
    count: int | None = None
    tolerations: Listed[Toleration] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: Listed[NativeDerivedAttribute] = ()


class DeviceRequest(Model):
    """One request of a claim: exactly one of `exactly` and `first_available`."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: Listed[DeviceSubRequest] = ()


class DeviceConstraint(Model):
    """What the devices of some requests (all, where none is named) have in common, or not."""

    requests: Listed[str] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class OpaqueConfig(Model):
    """Parameters for one driver, which only that driver understands."""

    driver: str
    parameters: Shallow = None


class DeviceConfig(Model):
    """Configuration for the devices of some requests (all, where none is named)."""

    requests: Listed[str] = ()
    opaque: OpaqueConfig | None = None


class DeviceClaim(Model):
    """What a claim asks for."""

    requests: Listed[DeviceRequest] = ()
    constraints: Listed[DeviceConstraint] = ()
    config: Listed[DeviceConfig] = ()


class ResourceClaimSpec(Model):
    """The specification of a claim; immutable (V1)."""

    devices: DeviceClaim = DeviceClaim()


class DeviceResult(Model):
    """One allocated device or share."""

    request: str = ""
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: Listed[Toleration] = ()
    binding_conditions: Listed[str] = ()
    binding_failure_conditions: Listed[str] = ()
    share_id: str | None = Field(default=None, alias="shareID")
    consumed_capacity: Mapped[Amount] = {}


class DeviceAllocation(Model):
    """The devices of an allocation. Configuration is carried raw: only drivers understand it."""

    results: Listed[DeviceResult] = ()
    config: Listed[Shallow] = ()


class AllocationResult(Model):
    """What a claim was given."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class Consumer(Model):
    """An entry of `reservedFor`."""

    api_group: str = ""
    resource: str
    name: str
    uid: str


class ResourceClaimStatus(Model):
    """What a claim has."""

    allocation: AllocationResult | None = None
    reserved_for: Listed[Consumer] = ()


class ResourceClaim(KubernetesObject):
    """A claim for devices."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Model):
    """What claims made from a template look like."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubernetesObject):
    """A template from which each pod gets its own claim."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceClassSpec(Model):
    """Which devices a class holds, and what drivers are told of them."""

    selectors: Listed[DeviceSelector] = ()
    config: Listed[DeviceConfig] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubernetesObject):
    """A class of devices."""

    spec: DeviceClassSpec = DeviceClassSpec()
