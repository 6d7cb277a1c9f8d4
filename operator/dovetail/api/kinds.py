"""The kinds of objects that Dovetail reads or writes, and where the API server serves them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind in one version; `name` is the kind as manifests spell it."""

    group: str
    version: str
    plural: str
    name: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Group and version as manifests spell them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """Plural and group, as rights name them: `resourceclaims.resource.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def root(self) -> str:
        """The path of the group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of one object, or of all of them; without a namespace, of all namespaces."""
        parts = [self.root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


POD = Kind("", "v1", "pods", "Pod")
NODE = Kind("", "v1", "nodes", "Node", namespaced=False)
EVENT = Kind("", "v1", "events", "Event")
CLAIM = Kind("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
TEMPLATE = Kind("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
CLASS = Kind("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
SLICE = Kind("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
TAINT_RULE = Kind("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule", namespaced=False)
MAPPING = Kind("dovetail.dev", "v1alpha1", "derivedattributes", "DerivedAttribute", namespaced=False)
OWNERSHIP = Kind("dovetail.dev", "v1alpha1", "deviceownerships", "DeviceOwnership", namespaced=False)
NAMESPACE = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
VOLUME = Kind("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
VOLUME_CLAIM = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CSI_NODE = Kind("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False)
LEASE = Kind("coordination.k8s.io", "v1", "leases", "Lease")
ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)

SURROUNDINGS: tuple[Kind, ...] = (NAMESPACE, VOLUME, VOLUME_CLAIM, STORAGE_CLASS, CSI_NODE)
"""What decides, besides devices and nodes, where a pod can run."""

WATCHED: tuple[Kind, ...] = (
    *(SLICE, CLASS, NODE, *SURROUNDINGS),
    *(TEMPLATE, CLAIM, POD, MAPPING, TAINT_RULE, OWNERSHIP),
)
"""What the picture of the cluster is made of."""

OPTIONAL: tuple[Kind, ...] = (MAPPING, TAINT_RULE, OWNERSHIP, CSI_NODE)
"""Kinds that a cluster may lack: a CRD not applied, a gate that is off."""

STREAMED: tuple[Kind, ...] = (POD, CLAIM, *OPTIONAL)
"""Kinds that are followed by watches of our own: those that change often, and those that come and go."""
