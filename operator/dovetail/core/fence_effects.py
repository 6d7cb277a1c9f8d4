"""Whom the fence keeps off besides kube-scheduler's own picks for plain claims: those who wait because of it.

A fence stops more than rivals: monitors with admin access, claims for all devices of a node,
and pods that ask for devices as an extended resource.
Each can be let through by a toleration in its request, but for the last, which has none.
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dovetail.api.claims import DeviceClass, DeviceSelector, ExactDeviceRequest, ResourceClaim
from dovetail.api.ownership import FENCE_KEY
from dovetail.api.pods import Pod
from dovetail.api.selection import Taint, Toleration
from dovetail.core.cel import Environment, Memory, compile_selector
from dovetail.core.decisions import ObjectKey
from dovetail.core.devices import DeviceView
from dovetail.core.node_taints import untolerated
from dovetail.core.ownership import EFFECT
from dovetail.errors import ExpressionInvalid

IMPLICIT_RESOURCE = "deviceclass.resource.kubernetes.io/"
"""Every class can be asked for as an extended resource of this prefix (KEP-5004)."""

_ENVIRONMENT = Environment(stored=True, list_type_attributes=True)


class Stopped(enum.StrEnum):
    """What kind of consumer the fence keeps waiting; a claim counts once, as the first that applies."""

    ADMIN_ACCESS = "AdminAccess"
    ALL_DEVICES = "AllDevices"
    PLAIN = "Plain"
    EXTENDED_RESOURCE = "ExtendedResource"


@dataclass(frozen=True, slots=True, order=True)
class Waiting:
    """How many of a kind wait, and one of them; pods for extended resources, claims for all others."""

    kind: Stopped
    count: int
    example: ObjectKey


def stopped_by(
    owned: Iterable[DeviceView],
    *,
    classes: Mapping[str, DeviceClass],
    claims: Iterable[ResourceClaim],
    pods: Iterable[Pod],
    memory: Memory,
) -> tuple[Waiting, ...]:
    """Who waits and asks for a class that holds an owned device, sorted; `claims` are those of others.

    Such a consumer may have to wait for other reasons as well.
    """
    reached = _Reach(tuple(owned), classes, memory)
    found: dict[Stopped, list[ObjectKey]] = {}
    for claim in claims:
        if claim.status.allocation is None:
            kinds = sorted(set(_kinds_of(claim, reached)), key=list(Stopped).index)
            if kinds:
                found.setdefault(kinds[0], []).append(claim.key)
    resources = _resources(classes)
    for pod in pods:
        if not pod.spec.node_name and not pod.is_done:
            wanted = {resources[name] for name in _resource_names(pod) if name in resources}
            if any(reached.by_class(name) for name in wanted):
                found.setdefault(Stopped.EXTENDED_RESOURCE, []).append(pod.key)
    return tuple(sorted(Waiting(kind, len(keys), min(keys)) for kind, keys in found.items()))


class _Reach:
    """Which classes hold an owned device; each is asked once."""

    def __init__(
        self, owned: tuple[DeviceView, ...], classes: Mapping[str, DeviceClass], memory: Memory
    ) -> None:
        self._owned = owned
        self._classes = classes
        self._memory = memory
        self._known: dict[str, bool] = {}

    def by_class(self, name: str) -> bool:
        """Whether the class exists and one of the owned devices is in it."""
        if name not in self._known:
            device_class = self._classes.get(name)
            self._known[name] = device_class is not None and self._holds_any(device_class.spec.selectors)
        return self._known[name]

    def _holds_any(self, selectors: Iterable[DeviceSelector]) -> bool:
        try:
            programs = [
                compile_selector(selector.cel.expression, _ENVIRONMENT)
                for selector in selectors
                if selector.cel is not None
            ]
        except ExpressionInvalid:
            return False
        return any(
            all(self._memory.matches(program, device) is True for program in programs)
            for device in self._owned
        )


def _kinds_of(claim: ResourceClaim, reached: _Reach) -> Iterator[Stopped]:
    for request in claim.spec.devices.requests:
        for part in (request.exactly, *request.first_available):
            if part is None or _passes(part.tolerations) or not reached.by_class(part.device_class_name):
                continue
            if isinstance(part, ExactDeviceRequest) and part.admin_access:
                yield Stopped.ADMIN_ACCESS
            elif part.allocation_mode == "All":
                yield Stopped.ALL_DEVICES
            else:
                yield Stopped.PLAIN


def _passes(tolerations: Iterable[Toleration]) -> bool:
    return untolerated([Taint(key=FENCE_KEY, effect=EFFECT)], tuple(tolerations)) is None


def _resources(classes: Mapping[str, DeviceClass]) -> Mapping[str, str]:
    """Extended resources that a class stands for."""
    implicit = {f"{IMPLICIT_RESOURCE}{name}": name for name in classes}
    named = {entry.spec.extended_resource_name: name for name, entry in classes.items()}
    return implicit | {resource: name for resource, name in named.items() if resource}


def _resource_names(pod: Pod) -> Iterator[str]:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        yield from container.resources.requests
