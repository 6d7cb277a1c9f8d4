"""What a pod's devices take of its node besides themselves: cpu, memory, huge pages (KEP-5517).

The amounts are known only once devices are chosen; a node that lacks them is refused, as kube-scheduler does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dovetail.api.claims import DeviceResult, ResourceClaim
from dovetail.api.pods import Pod
from dovetail.core.decisions import DoesNotFit, ObjectKey
from dovetail.core.footprints import Footprint
from dovetail.core.inventory import Inventory
from dovetail.core.node_refusals import NodeCause, NodeRefusal
from dovetail.core.published import NodeShare
from dovetail.core.quantity import Quantity
from dovetail.core.reasons import Reason
from dovetail.core.references import Entry
from dovetail.core.resources import CPU, Amounts, human, read_amounts, requests_of_containers, total_of
from dovetail.core.values import DeviceKey

_NANO = 10**9
_NANO_OF_MILLI = 10**6


@dataclass(frozen=True, slots=True)
class Granted:
    """The devices of one claim, and the entries of the pod that stand for the claim."""

    entries: frozenset[str]
    results: tuple[DeviceResult, ...]


def granted_to(
    entries: Iterable[Entry], allocated: Mapping[ObjectKey, Sequence[DeviceResult]]
) -> tuple[Granted, ...]:
    """What a pod with these entries has, by claim; a claim that several entries name counts once."""
    names: dict[ObjectKey, list[str]] = {}
    for entry in entries:
        if entry.key is not None and entry.key in allocated:
            names.setdefault(entry.key, []).append(entry.name)
    return tuple(Granted(frozenset(each), tuple(allocated[key])) for key, each in names.items())


def results_of(
    claims: Mapping[ObjectKey, ResourceClaim], entries: Iterable[Entry]
) -> dict[ObjectKey, tuple[DeviceResult, ...]]:
    """The devices of the claims that a pod's entries stand for, as far as these are allocated."""
    found = {entry.key: claims.get(entry.key) for entry in entries if entry.key is not None}
    return {
        key: claim.status.allocation.devices.results
        for key, claim in found.items()
        if claim is not None and claim.status.allocation is not None
    }


def charged(inventory: Inventory, footprint: Footprint, granted: Iterable[Granted]) -> Footprint:
    """The footprint with what these devices add to the pod's requests."""
    demand = demand_of(inventory, footprint.pod, granted)
    return footprint.with_requests(total_of((footprint.requests, demand))) if demand else footprint


def demand_of(inventory: Inventory, pod: Pod, granted: Iterable[Granted]) -> Amounts:
    """What these claims add to the pod's requests; nothing where the gate is off.

    Resources that the pod as a whole asks for are left out: that request is a ceiling, and stays as it is.
    """
    ceilings = pod.spec.resources.requests if pod.spec.resources is not None else {}
    taken = _taken(inventory, pod, granted)
    return {resource: amount for resource, amount in taken.items() if resource not in ceilings}


def refuse_pod(inventory: Inventory, pod: Pod, granted: Sequence[Granted]) -> NodeRefusal | None:
    """Why kube-scheduler refuses the pod with these devices, whatever its node has left."""
    taken = _taken(inventory, pod, granted)
    if not taken:
        return None
    return _refuse_unmapped(inventory, granted) or _refuse_pod_level(pod, taken)


def is_mapped(inventory: Inventory, results: Iterable[DeviceResult]) -> bool:
    """Whether the devices stand for a resource of the node: their claim then belongs to one pod alone."""
    return any(share.is_mapped for _, share in _shares(inventory, results))


def taken_whole(inventory: Inventory, claims: Iterable[ResourceClaim]) -> DoesNotFit | None:
    """A claim that stands for a resource of its node belongs to one pod: kube-scheduler lets no other in."""
    for claim in claims:
        allocation = claim.status.allocation
        if (
            allocation is not None
            and claim.status.reserved_for
            and is_mapped(inventory, allocation.devices.results)
        ):
            return DoesNotFit(
                Reason.CONSUMER_LIMIT,
                f"Claim {claim.metadata.name!r} stands for cpu or memory of its node, and such a claim "
                f"serves one pod: {claim.status.reserved_for[0].name!r} has it.",
            )
    return None


def _taken(inventory: Inventory, pod: Pod, granted: Iterable[Granted]) -> Amounts:
    """A mapping counts once per claim, an overhead per pod and per container that uses the claim.

    Devices that are not published any more take nothing.
    """
    nano: dict[str, int] = {}
    for claim in granted:
        uses = sum(
            reference.name in claim.entries
            for container in (*pod.spec.init_containers, *pod.spec.containers)
            for reference in container.resources.claims
        )
        for result, share in _shares(inventory, claim.results):
            amount = share.per_pod + uses * share.per_container + _mapped(share, result)
            nano[share.resource] = nano.get(share.resource, 0) + amount
    return {resource: _whole(resource, amount) for resource, amount in nano.items() if amount > 0}


def _refuse_unmapped(inventory: Inventory, granted: Iterable[Granted]) -> NodeRefusal | None:
    """A device stands for a capacity that its claim does not consume: kube-scheduler reports an error."""
    for claim in granted:
        for result, share in _shares(inventory, claim.results):
            if share.capacity_key and not result.consumed_capacity:
                detail = f"{share.resource} by {share.capacity_key}, which is not shared"
                return NodeRefusal(NodeCause.DEVICE_RESOURCES, detail)
    return None


def _refuse_pod_level(pod: Pod, taken: Amounts) -> NodeRefusal | None:
    """Requests and limits of the pod as a whole have to cover what its devices take."""
    if pod.spec.resources is None:
        return None
    asked = requests_of_containers(pod)
    for resource, ceiling in read_amounts(pod.spec.resources.requests).items():
        wanted = asked.get(resource, 0) + taken.get(resource, 0)
        if resource in taken and wanted > ceiling:
            return _over("request", resource, ceiling, wanted)
    for resource, ceiling in read_amounts(pod.spec.resources.limits).items():
        limits = [
            read_amounts(each.resources.limits) for each in pod.spec.containers if each.resources.claims
        ]
        wanted = max((each[resource] for each in limits if resource in each), default=-1) + taken.get(
            resource, 0
        )
        if resource in taken and wanted > ceiling:
            return _over("limit", resource, ceiling, wanted)
    return None


def _over(what: str, resource: str, ceiling: int, wanted: int) -> NodeRefusal:
    given = f"{what} of {human(resource, ceiling)} {resource}"
    return NodeRefusal(NodeCause.POD_LEVEL, f"{given}, and {human(resource, wanted)} with the devices")


def _shares(
    inventory: Inventory, results: Iterable[DeviceResult]
) -> Iterator[tuple[DeviceResult, NodeShare]]:
    if not inventory.features.node_allocatable_resources:
        return
    for result in results:
        device = inventory.device(DeviceKey(result.driver, result.pool, result.device))
        for share in device.node_shares if device is not None else ():
            yield result, share


def _mapped(share: NodeShare, result: DeviceResult) -> int:
    """The amount in billionths that the device itself stands for."""
    if not share.capacity_key:
        return share.device_multiplier
    consumed = result.consumed_capacity.get(share.capacity_key)
    return Quantity.parse(consumed).nano * share.capacity_multiplier // _NANO if consumed is not None else 0


def _whole(resource: str, nano: int) -> int:
    return -(-nano // (_NANO_OF_MILLI if resource == CPU else _NANO))
