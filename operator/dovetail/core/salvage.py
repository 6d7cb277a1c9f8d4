"""What can still be read of a malformed claim: the devices that it holds are never given away."""

from collections.abc import Iterable, Mapping
from typing import Any

from dovetail.api.claims import (
    AllocationResult,
    DeviceAllocation,
    DeviceResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from dovetail.api.meta import ObjectMeta
from dovetail.core.decisions import ObjectKey


def salvage(key: ObjectKey, body: Mapping[str, Any], before: ResourceClaim | None) -> ResourceClaim:
    """A claim that holds every device that `body` names readably.

    Where a part of the allocation cannot be read, it also holds what the claim held `before`.
    """
    results, whole = _results(body)
    if not whole and before is not None and before.status.allocation is not None:
        known = before.status.allocation.devices.results
        results = [*results, *(result for result in known if result not in results)]
    allocation = AllocationResult(devices=DeviceAllocation(results=tuple(results))) if results else None
    return ResourceClaim(
        metadata=ObjectMeta(namespace=key[0], name=key[1]), status=ResourceClaimStatus(allocation=allocation)
    )


def _results(body: Mapping[str, Any]) -> tuple[list[DeviceResult], bool]:
    """The readable results, and whether nothing else could name a device."""
    place: Any = body
    for name in ("status", "allocation", "devices"):
        place = place.get(name)
        if place is None:
            return [], True
        if not isinstance(place, Mapping):
            return [], False
    found = place.get("results")
    if not isinstance(found, list):
        return [], found is None
    readable = list(_readable(found))
    return readable, len(readable) == len(found)


def _readable(found: Iterable[Any]) -> Iterable[DeviceResult]:
    for raw in found:
        for attempt in (raw, _bare(raw)):
            try:
                yield DeviceResult.model_validate(attempt)
            except ValueError:
                continue
            break


def _bare(raw: object) -> dict[str, Any]:
    """A result reduced to which device it is."""
    if not isinstance(raw, Mapping):
        return {}
    return {name: raw.get(name) for name in ("driver", "pool", "device", "shareID") if raw.get(name)}
