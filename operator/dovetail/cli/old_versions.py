"""Objects of older versions of resource.k8s.io in the form of v1.

v1beta2 and DeviceTaintRule look as in v1; v1beta1 kept the fields of a device and of a request elsewhere.
"""

from collections.abc import Callable, Mapping
from typing import Any

Body = Mapping[str, Any]

_KEPT_BESIDE_EXACTLY = ("name", "firstAvailable")


def modernize(kind: str, version: str, body: Body) -> Body:
    """The object as v1 would show it; parts that are malformed stay as they are."""
    if version != "v1beta1":
        return body
    match kind:
        case "ResourceClaim":
            return _within(body, ("spec", "devices", "requests"), _request)
        case "ResourceClaimTemplate":
            return _within(body, ("spec", "spec", "devices", "requests"), _request)
        case "ResourceSlice":
            return _within(body, ("spec", "devices"), _device)
        case _:
            return body


def _within(body: Body, path: tuple[str, ...], change: Callable[[Body], Body]) -> Body:
    """The body with every mapping of the list at `path` changed."""
    first, *rest = path
    inner = body.get(first)
    if rest:
        return {**body, first: _within(inner, tuple(rest), change)} if isinstance(inner, Mapping) else body
    if not isinstance(inner, list):
        return body
    return {**body, first: [change(each) if isinstance(each, Mapping) else each for each in inner]}


def _request(request: Body) -> Body:
    exactly = {field: value for field, value in request.items() if field not in _KEPT_BESIDE_EXACTLY}
    kept = {field: request[field] for field in _KEPT_BESIDE_EXACTLY if field in request}
    return {**kept, "exactly": exactly} if exactly and "exactly" not in request else request


def _device(device: Body) -> Body:
    basic = device.get("basic")
    if not isinstance(basic, Mapping):
        return device
    return {**{field: value for field, value in device.items() if field != "basic"}, **basic}
