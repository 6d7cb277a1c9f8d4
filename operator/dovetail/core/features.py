"""Which Kubernetes feature gates an allocation may rely on, as a plain value."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Features:
    """Kubernetes' gates by lower-case name; the defaults are those of 1.37 (allocation-rules 0.3)."""

    admin_access: bool = True
    prioritized_list: bool = True
    device_taints: bool = True
    device_taint_rules: bool = True
    extended_resource: bool = True
    device_status: bool = True
    consumable_capacity: bool = True
    binding_conditions: bool = True
    partitionable_devices: bool = True
    partitionable_devices_type: bool = False
    fractional_capacity_range: bool = False
    """On in 1.37 only with `--min-compatibility-version=1.37`; by default programs go together with 1.36."""
    list_type_attributes: bool = False
    derived_attributes: bool = False
    compatibility_groups: bool = False
    optional_node_operations: bool = False
    node_allocatable_resources: bool = False
    workload_resource_claims: bool = False

    @classmethod
    def none(cls) -> Self:
        """Everything off."""
        return cls(**{feature.name: False for feature in fields(cls)})

    def with_gates(self, gates: Mapping[str, bool]) -> Self:
        """The features with some gates set, by Kubernetes' names; an unknown gate raises KeyError."""
        return replace(self, **{GATES[gate]: value for gate, value in gates.items()})

    @property
    def gates(self) -> tuple[str, ...]:
        """Kubernetes' names of the gates that are on, sorted."""
        return tuple(sorted(gate for gate, name in GATES.items() if getattr(self, name)))


GATES: Mapping[str, str] = {
    "DRAAdminAccess": "admin_access",
    "DRAPrioritizedList": "prioritized_list",
    "DRADeviceTaints": "device_taints",
    "DRADeviceTaintRules": "device_taint_rules",
    "DRAExtendedResource": "extended_resource",
    "DRAResourceClaimDeviceStatus": "device_status",
    "DRAConsumableCapacity": "consumable_capacity",
    "DRADeviceBindingConditions": "binding_conditions",
    "DRAPartitionableDevices": "partitionable_devices",
    "DRAPartitionableDevicesType": "partitionable_devices_type",
    "DRAFractionalCapacityRange": "fractional_capacity_range",
    "DRAListTypeAttributes": "list_type_attributes",
    "DRADerivedAttributes": "derived_attributes",
    "DRADeviceCompatibilityGroups": "compatibility_groups",
    "DRAOptionalNodeOperations": "optional_node_operations",
    "DRANodeAllocatableResources": "node_allocatable_resources",
    "DRAWorkloadResourceClaims": "workload_resource_claims",
}
"""Kubernetes' name of each gate, and the field of `Features` that holds it."""
