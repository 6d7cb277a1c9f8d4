"""Where the API server keeps each kind."""

from __future__ import annotations

from dataclasses import dataclass

# Which group serves a kind that is named without its apiVersion.
_GROUPS = {
    "v1": "Pod Node Namespace Event ServiceAccount ConfigMap Secret Service "
    "PersistentVolume PersistentVolumeClaim",
    "resource.k8s.io/v1": "ResourceClaim ResourceClaimTemplate ResourceSlice DeviceClass DeviceTaintRule",
    "dovetail.dev/v1alpha1": "DerivedAttribute DeviceOwnership",
    "apps/v1": "Deployment StatefulSet ReplicaSet DaemonSet",
    "batch/v1": "Job",
    "coordination.k8s.io/v1": "Lease",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "admissionregistration.k8s.io/v1": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
    "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
    "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "StorageClass CSINode",
    "authorization.k8s.io/v1": "SelfSubjectAccessReview",
}
HOME_OF = {kind: group for group, kinds in _GROUPS.items() for kind in kinds.split()}


@dataclass(frozen=True, slots=True)
class Resource:
    """How a kind is addressed."""

    api_version: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The path of a collection or of an object."""
        root = f"/api/{self.api_version}" if "/" not in self.api_version else f"/apis/{self.api_version}"
        place = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        rest = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{place}/{self.plural}{rest}"
