"""DeviceOwnership: which devices Dovetail alone gives to claims (dovetail.dev/v1alpha1)."""

from dovetail.api.meta import KubernetesObject, Listed, OwnedModel

FENCE_KEY = "dovetail.dev/owned"
"""The key of the taint on owned devices; its value is the name of the DeviceOwnership."""


class OwnedDevices(OwnedModel):
    """All devices of a driver, of one of its pools, or one device of a pool."""

    driver: str
    pool: str | None = None
    device: str | None = None

    def covers(self, driver: str, pool: str, device: str) -> bool:
        """Whether the device is among these."""
        return (
            self.driver == driver
            and self.pool in (None, pool)
            and (self.device is None or self.device == device)
        )


class DeviceOwnershipSpec(OwnedModel):
    """What is owned."""

    devices: Listed[OwnedDevices] = ()


class DeviceOwnership(KubernetesObject):
    """The fence around devices that are ours alone."""

    spec: DeviceOwnershipSpec
