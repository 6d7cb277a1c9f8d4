"""What the API server refuses in ResourceClaims, templates and ResourceSlices.

Sources: the validation of resource.k8s.io/v1 in Kubernetes 1.37; identifiers as V61 name its rules.
Each rule yields causes, `field: what is wrong`.
"""

from collections.abc import Iterator
from typing import Any

from dovetail.embedded.bodies import Body, is_terminating, items, part

UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
RESERVED_LIMIT = 256
DEVICE_LIMIT = 32


def claim_created(body: Body) -> Iterator[str]:
    """A new claim (V2, V4, V20, V21)."""
    yield from _spec_causes(part(body, "spec"), "spec")


def template_created(body: Body) -> Iterator[str]:
    """A new template."""
    yield from _spec_causes(part(body, "spec", "spec"), "spec.spec")


def _spec_causes(spec: Body, at: str) -> Iterator[str]:
    requests = items(spec, "devices", "requests")
    names = set(_request_names(requests))
    if len(requests) > DEVICE_LIMIT:
        yield f"{at}.devices.requests: Too many: {len(requests)}: must have at most {DEVICE_LIMIT} items"
    for index, request in enumerate(requests):
        yield from _request_causes(request, f"{at}.devices.requests[{index}]")
    for index, constraint in enumerate(items(spec, "devices", "constraints")):
        yield from _constraint_causes(constraint, names, f"{at}.devices.constraints[{index}]")
    for index, config in enumerate(items(spec, "devices", "config")):
        yield from _reference_causes(config, names, f"{at}.devices.config[{index}]")


def _request_causes(request: Body, at: str) -> Iterator[str]:
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if bool(exactly) == bool(alternatives):
        yield f"{at}: Invalid value: exactly one of `exactly` or `firstAvailable` is required"
    for wanted in ([exactly] if exactly else []) + (alternatives or []):
        if not wanted.get("deviceClassName"):
            yield f"{at}.deviceClassName: Required value"


def _constraint_causes(constraint: Body, names: set[str], at: str) -> Iterator[str]:
    match, distinct = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
    # Both together pass, whatever the documentation of the API says.
    if not match and not distinct:
        yield f"{at}: Required value: exactly one of `matchAttribute` or `distinctAttribute` is required"
    for field, attribute in (("matchAttribute", match), ("distinctAttribute", distinct)):
        if attribute and "/" not in attribute:
            wanted = "a fully qualified name must be a domain and a name separated by a slash"
            yield f'{at}.{field}: Invalid value: "{attribute}": {wanted}'
    yield from _reference_causes(constraint, names, at)


def _reference_causes(holder: Body, names: set[str], at: str) -> Iterator[str]:
    for index, name in enumerate(items(holder, "requests")):
        if name not in names:
            yield f'{at}.requests[{index}]: Invalid value: "{name}": {UNKNOWN_REQUEST}'


def _request_names(requests: list[Any]) -> Iterator[str]:
    for request in requests:
        yield request.get("name", "")
        for alternative in request.get("firstAvailable") or []:
            yield f"{request.get('name')}/{alternative.get('name')}"


def spec_changed(old: Body, new: Body) -> Iterator[str]:
    """An update of a claim or template: the specification is immutable (V1)."""
    if old.get("spec") != new.get("spec"):
        yield "spec: Invalid value: field is immutable"


def claim_status_changed(old: Body, new: Body) -> Iterator[str]:
    """An update of a claim's status (V60 to V66)."""
    before, after = part(old, "status"), part(new, "status")
    allocation = after.get("allocation")
    if before.get("allocation") and allocation and allocation != before["allocation"]:
        yield "status.allocation: Invalid value: field is immutable"
    elif allocation and not before.get("allocation"):
        yield from _allocation_causes(allocation, part(new, "spec"))
    yield from _reserved_causes(before, after, terminating=is_terminating(old))
    yield from _device_causes(after)


def _allocation_causes(allocation: Body, spec: Body) -> Iterator[str]:
    at = "status.allocation"
    names = set(_request_names(items(spec, "devices", "requests")))
    results = items(allocation, "devices", "results")
    if len(results) > DEVICE_LIMIT:
        yield f"{at}.devices.results: Too many: {len(results)}: must have at most {DEVICE_LIMIT} items"
    for index, result in enumerate(results):
        for field in ("request", "driver", "pool", "device"):
            if not result.get(field):
                yield f"{at}.devices.results[{index}].{field}: Required value"
        if result.get("request") and result["request"] not in names:
            at_request = f"{at}.devices.results[{index}].request"
            yield f'{at_request}: Invalid value: "{result["request"]}": {UNKNOWN_REQUEST}'
    for index, config in enumerate(items(allocation, "devices", "config")):
        if config.get("source") not in ("FromClaim", "FromClass"):
            yield f'{at}.devices.config[{index}].source: Unsupported value: "{config.get("source", "")}"'
    selector = allocation.get("nodeSelector")
    if selector is not None and not items(allocation, "nodeSelector", "nodeSelectorTerms"):
        wanted = "must have at least one node selector term"
        yield f"{at}.nodeSelector.nodeSelectorTerms: Required value: {wanted}"


def _reserved_causes(before: Body, after: Body, *, terminating: bool) -> Iterator[str]:
    consumers = after.get("reservedFor") or []
    if consumers and not after.get("allocation"):
        yield "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"
    if len(consumers) > RESERVED_LIMIT:
        yield f"status.reservedFor: Too many: {len(consumers)}: must have at most {RESERVED_LIMIT} items"
    seen: set[str] = set()
    for index, consumer in enumerate(consumers):
        for field in ("resource", "name", "uid"):
            if not consumer.get(field):
                yield f"status.reservedFor[{index}].{field}: Required value"
        if consumer.get("uid") in seen:
            yield f'status.reservedFor[{index}]: Duplicate value: "{consumer.get("uid")}"'
        seen.add(consumer.get("uid", ""))
    if terminating and any(consumer not in (before.get("reservedFor") or []) for consumer in consumers):
        yield "status.reservedFor: Forbidden: new entries may not be added while `deletionTimestamp` is set"


def _device_causes(status: Body) -> Iterator[str]:
    allocated = {device_key(result) for result in items(status, "allocation", "devices", "results")}
    for index, device in enumerate(status.get("devices") or []):
        if device_key(device) not in allocated:
            yield f"status.devices[{index}]: Invalid value: must be an allocated device in the claim"


def device_key(device: Body) -> tuple[str, ...]:
    """What tells allocated devices and shares apart."""
    return tuple(str(device.get(field) or "") for field in ("driver", "pool", "device", "shareID"))


def without_lost_devices(old: Body, new: Body) -> Body:
    """The API server drops `status.devices` of devices that are deallocated (L15)."""
    status = part(new, "status")
    lost = {device_key(result) for result in items(old, "status", "allocation", "devices", "results")}
    lost -= {device_key(result) for result in items(status, "allocation", "devices", "results")}
    if not lost or not status.get("devices"):
        return new
    kept = [device for device in status["devices"] if device_key(device) not in lost]
    slim = {name: value for name, value in status.items() if name != "devices"}
    return dict(new) | {"status": slim | ({"devices": kept} if kept else {})}


def slice_created(body: Body) -> Iterator[str]:
    """A new slice (V80), and the limit on its devices."""
    spec = part(body, "spec")
    where = [
        field
        for field in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
        if spec.get(field)
    ]
    if len(where) != 1:
        wanted = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
        yield f"spec: {'Invalid' if where else 'Required'} value: {wanted}"
    if len(items(spec, "devices")) > 128:
        yield f"spec.devices: Too many: {len(items(spec, 'devices'))}: must have at most 128 items"


def slice_changed(old: Body, new: Body) -> Iterator[str]:
    """An update of a slice: driver, pool name and node stay (V80)."""
    before, after = part(old, "spec"), part(new, "spec")
    for field in ("driver", "nodeName"):
        if before.get(field) != after.get(field):
            yield f"spec.{field}: Invalid value: field is immutable"
    if part(before, "pool").get("name") != part(after, "pool").get("name"):
        yield "spec.pool.name: Invalid value: field is immutable"
    yield from slice_created(new)
