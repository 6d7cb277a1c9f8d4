"""Devices that a claim holds where a pod has the same ones from a device plugin, perhaps."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dovetail.api.claims import DeviceClass, DeviceResult, ResourceClaim
from dovetail.api.pods import Pod
from dovetail.api.slices import ResourceSlice
from dovetail.core.decisions import ObjectKey
from dovetail.core.findings import Fault, Finding
from dovetail.core.plugin_names import offers_devices_of
from dovetail.core.resources import requests_of
from dovetail.core.values import PoolKey


@dataclass(frozen=True, slots=True)
class _Held:
    """A claim that holds devices of a driver, through a class that names this extended resource, if any."""

    driver: str
    named: str
    claim: ObjectKey

    def may_be(self, resource: str) -> bool:
        """Whether a device plugin that offers the resource may offer the devices."""
        return self.named == resource or offers_devices_of(resource, self.driver)


def given_by_plugins(
    claims: Iterable[ResourceClaim],
    slices: Iterable[ResourceSlice],
    pods: Iterable[Pod],
    classes: Iterable[DeviceClass],
) -> Iterator[Finding]:
    """One finding per pod that has a plugin's resource, and driver whose devices claims hold on its node."""
    held = _held(claims, slices, classes)
    for pod in pods:
        node = pod.spec.node_name
        if node not in held or pod.is_done:
            continue
        for resource in _from_plugins(pod):
            for driver, keys in _claims_by_driver(held[node], resource).items():
                yield Finding(
                    Fault.GIVEN_BY_PLUGIN_TOO,
                    tuple(sorted(keys)),
                    counter=resource,
                    consumer="/".join(pod.key),
                    reason=f"devices of {driver} on node {node}",
                )


def _claims_by_driver(held: Iterable[_Held], resource: str) -> Mapping[str, set[ObjectKey]]:
    found: dict[str, set[ObjectKey]] = defaultdict(set)
    for each in held:
        if each.may_be(resource):
            found[each.driver].add(each.claim)
    return found


def _held(
    claims: Iterable[ResourceClaim], slices: Iterable[ResourceSlice], classes: Iterable[DeviceClass]
) -> Mapping[str, set[_Held]]:
    """What is held, by node; pools of several nodes are no device plugin's."""
    nodes = {
        PoolKey(entry.spec.driver, entry.spec.pool.name): entry.spec.node_name
        for entry in slices
        if entry.spec.node_name
    }
    named = {each.metadata.name: each.spec.extended_resource_name or "" for each in classes}
    held: dict[str, set[_Held]] = defaultdict(set)
    for claim in claims:
        for result in _results(claim):
            node = nodes.get(PoolKey(result.driver, result.pool))
            if node is not None:
                resource = named.get(_class_of(claim, result.request), "")
                held[node].add(_Held(result.driver, resource, claim.key))
    return held


def _results(claim: ResourceClaim) -> Iterable[DeviceResult]:
    """What the claim takes for itself: admin access takes nothing."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return (result for result in results if not result.admin_access)


def _class_of(claim: ResourceClaim, request: str) -> str:
    """The class of a request by its name in results: `main`, or `main/sub` for an alternative."""
    for each in claim.spec.devices.requests:
        if each.exactly is not None and each.name == request:
            return each.exactly.device_class_name
        for alternative in each.first_available:
            if f"{each.name}/{alternative.name}" == request:
                return alternative.device_class_name
    return ""


def _from_plugins(pod: Pod) -> Iterator[str]:
    """The extended resources that the pod has, without those that kube-scheduler gave it as devices."""
    try:
        requests = requests_of(pod)
    except ValueError:
        # The API server lets no such pod through; in a dump, it is reported as malformed.
        return
    by_devices = _given_as_devices(pod)
    yield from (resource for resource in requests if "/" in resource and resource not in by_devices)


def _given_as_devices(pod: Pod) -> frozenset[str]:
    """The resources for which kube-scheduler made a claim (KEP-5004)."""
    status = pod.status.extended_resource_claim_status
    mappings = status.get("requestMappings") if isinstance(status, Mapping) else None
    entries = mappings if isinstance(mappings, list) else []
    names = (entry.get("resourceName") for entry in entries if isinstance(entry, Mapping))
    return frozenset(name for name in names if isinstance(name, str))
