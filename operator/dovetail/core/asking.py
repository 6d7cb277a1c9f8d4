"""What claims ask for, request by request, and whether one of them could take a device."""

from collections.abc import Iterator

from dovetail.api.claims import (
    DeviceClass,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)

Part = ExactDeviceRequest | DeviceSubRequest
"""One way to serve a request."""


def parts_of(spec: ResourceClaimSpec) -> Iterator[Part]:
    """All ways to serve the requests of a claim."""
    for request in spec.devices.requests:
        yield from request.first_available
        if request.exactly is not None:
            yield request.exactly


def selectors_for(device_class: DeviceClass, part: Part) -> Iterator[DeviceSelector]:
    """What a device has to satisfy: the selectors of the class, then those of the request."""
    yield from device_class.spec.selectors
    yield from part.selectors
