"""The kinds that decisions read, each with the model that reads it."""

from collections.abc import Mapping

from dovetail.api.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate
from dovetail.api.mappings import DerivedAttribute
from dovetail.api.meta import KubernetesObject
from dovetail.api.nodes import Node
from dovetail.api.ownership import DeviceOwnership
from dovetail.api.placement import (
    CSINode,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PriorityClass,
    StorageClass,
)
from dovetail.api.pods import Pod
from dovetail.api.slices import DeviceTaintRule, ResourceSlice

MODELS: Mapping[str, type[KubernetesObject]] = {
    model.__name__: model
    for model in (
        Pod,
        Node,
        ResourceClaim,
        ResourceClaimTemplate,
        DeviceClass,
        ResourceSlice,
        DerivedAttribute,
        DeviceTaintRule,
        DeviceOwnership,
        Namespace,
        PriorityClass,
        PersistentVolumeClaim,
        PersistentVolume,
        StorageClass,
        CSINode,
    )
}
"""The kinds that are read, and how."""

KEPT_RAW = frozenset({"Pod", "ResourceClaim", "ResourceClaimTemplate", "DerivedAttribute"})
