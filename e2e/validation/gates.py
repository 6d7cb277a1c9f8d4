"""The gates that decide which fields of devices and claims there are."""

from __future__ import annotations

from typing import Final

from dovetail.core.features import GATES as KNOWN
from dovetail.core.features import Features
from e2e.harness.kube import Kube
from e2e.validation.generator import LABELLED

GATES: Final = dict.fromkeys(
    (
        "DRADerivedAttributes",
        "DRAFractionalCapacityRange",
        "DRADeviceCompatibilityGroups",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "DRAPartitionableDevicesType",
        "DRAResourcePoolStatus",
    ),
    True,
)
"""Those of Kubernetes 1.37 that are off by default and hide fields."""

ALL_ON: Final = Features().with_gates({gate: True for gate in GATES if gate in KNOWN})


async def prepare(kube: Kube) -> None:
    """The namespace whose claims may ask for admin access."""
    labels = {"resource.kubernetes.io/admin-access": "true"}
    metadata = {"name": LABELLED, "labels": labels}
    await kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
