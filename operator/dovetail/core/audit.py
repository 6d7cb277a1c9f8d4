"""What is wrong across all claims of a cluster, whoever wrote them.

The audit shares no code with the allocator: it recounts from the objects themselves,
so that a mistake in the allocator's bookkeeping cannot hide itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dovetail.api.claims import (
    DELETE_PROTECTION,
    POD_CLAIM_NAME,
    DeviceClass,
    DeviceResult,
    ResourceClaim,
)
from dovetail.api.nodes import Node
from dovetail.api.ownership import FENCE_KEY
from dovetail.api.pods import Pod
from dovetail.api.selection import NodeSelector, Toleration
from dovetail.api.slices import Amount, DeviceTaintRule, ResourceSlice
from dovetail.core.decisions import ObjectKey
from dovetail.core.dual_mode_audit import given_by_plugins
from dovetail.core.findings import TRANSIENT, Fault, Finding
from dovetail.core.labels import node_matches
from dovetail.core.pool_records import PoolRecord, read_pools
from dovetail.core.quantity import Quantity
from dovetail.core.values import DeviceKey, PoolKey


@dataclass(frozen=True, slots=True)
class Evidence:
    """The objects of a cluster at one moment, all of them of each kind.

    `ours` names the claims that Dovetail allocates: only others can pass its fence.
    `allows_dual_mode`: device plugins keep to other devices than DRA drivers, whatever they offer.
    `malformed` holds one sentence per object that could not be read.
    """

    claims: tuple[ResourceClaim, ...]
    slices: tuple[ResourceSlice, ...]
    pods: tuple[Pod, ...]
    nodes: tuple[Node, ...] = ()
    rules: tuple[DeviceTaintRule, ...] = ()
    ours: frozenset[ObjectKey] = frozenset()
    classes: tuple[DeviceClass, ...] = ()
    allows_dual_mode: bool = False
    malformed: tuple[str, ...] = ()


def audit(evidence: Evidence) -> tuple[Finding, ...]:
    """Everything that is wrong, sorted; the same evidence in another order gives the same findings."""
    pools = read_pools(evidence.slices)
    holders = list(_holders(evidence.claims))
    findings: set[Finding] = set()
    findings |= {Finding(Fault.UNREADABLE, (), reason=reason) for reason in evidence.malformed}
    findings.update(_devices_held_twice(holders))
    findings.update(_devices_that_are_not_there(holders, pools))
    findings.update(_counters(holders, pools))
    findings.update(_capacities(holders, pools))
    findings.update(_claims(evidence))
    findings.update(_bound_pods(evidence))
    findings.update(_fence(evidence))
    if not evidence.allows_dual_mode:
        findings.update(given_by_plugins(evidence.claims, evidence.slices, evidence.pods, evidence.classes))
    return tuple(sorted(findings))


def lasting(now: Iterable[Finding], before: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that are no passing state: a transient one counts when it was there before as well."""
    known = set(before)
    return tuple(finding for finding in now if finding.fault not in TRANSIENT or finding in known)


@dataclass(frozen=True, slots=True)
class _Holder:
    """One result of one claim; results with admin access hold nothing and are left out."""

    claim: ObjectKey
    device: DeviceKey
    result: DeviceResult


def _holders(claims: Iterable[ResourceClaim]) -> Iterator[_Holder]:
    for claim in claims:
        if claim.status.allocation is None:
            continue
        for result in claim.status.allocation.devices.results:
            if not result.admin_access:
                yield _Holder(claim.key, DeviceKey(result.driver, result.pool, result.device), result)


def _by_device(holders: Iterable[_Holder]) -> Mapping[DeviceKey, list[_Holder]]:
    grouped: dict[DeviceKey, list[_Holder]] = defaultdict(list)
    for holder in holders:
        grouped[holder.device].append(holder)
    return grouped


def _claims_of(holders: Iterable[_Holder]) -> tuple[ObjectKey, ...]:
    return tuple(sorted({holder.claim for holder in holders}))


def _devices_held_twice(holders: Iterable[_Holder]) -> Iterator[Finding]:
    for device, held in _by_device(holders).items():
        shares = [holder.result.share_id for holder in held if holder.result.share_id]
        is_shared_properly = len(shares) == len(held) == len(set(shares))
        if len(held) > 1 and not is_shared_properly:
            yield Finding(Fault.DEVICE_HELD_TWICE, _claims_of(held), device, wanted=str(len(held)))


def _devices_that_are_not_there(
    holders: Iterable[_Holder], pools: Mapping[PoolKey, PoolRecord]
) -> Iterator[Finding]:
    for holder in holders:
        pool = pools.get(holder.device.pool_key)
        if pool is None or (pool.is_complete and holder.device.device not in pool.devices):
            yield Finding(Fault.NO_SUCH_DEVICE, (holder.claim,), holder.device)


def _counters(holders: Iterable[_Holder], pools: Mapping[PoolKey, PoolRecord]) -> Iterator[Finding]:
    # A device pays once, however many shares of it are held (allocation-rules 2.5).
    takers: dict[tuple[PoolKey, str, str], list[tuple[Quantity, list[_Holder]]]] = defaultdict(list)
    for key, held in _by_device(holders).items():
        pool = pools.get(key.pool_key)
        device = pool.devices.get(key.device) if pool else None
        for consumption in device.consumes_counters if device else ():
            for name, counter in consumption.counters.items():
                takers[(key.pool_key, consumption.counter_set, name)].append((_read(counter.value), held))
    for (pool_key, counter_set, name), taken in takers.items():
        pool = pools[pool_key]
        declared = pool.counters.get((counter_set, name))
        total = sum((amount for amount, _ in taken), Quantity(0))
        if pool.is_complete and (declared is None or total > _read(declared)):
            yield Finding(
                Fault.COUNTER_OVERCOMMITTED,
                _claims_of(holder for _, held in taken for holder in held),
                DeviceKey(pool_key.driver, pool_key.pool, ""),
                counter=f"{counter_set}/{name}",
                wanted=str(total),
                available="no such counter" if declared is None else str(_read(declared)),
            )


def _capacities(holders: Iterable[_Holder], pools: Mapping[PoolKey, PoolRecord]) -> Iterator[Finding]:
    for key, held in _by_device(holders).items():
        pool = pools.get(key.pool_key)
        device = pool.devices.get(key.device) if pool else None
        if device is None:
            continue
        capacities = {_qualified(name, key.driver): entry.value for name, entry in device.capacity.items()}
        taken: dict[str, Quantity] = {}
        for holder in held:
            for name, amount in holder.result.consumed_capacity.items():
                capacity = _qualified(name, key.driver)
                taken[capacity] = taken.get(capacity, Quantity(0)) + _read(amount)
        for name, total in taken.items():
            if name in capacities and total > _read(capacities[name]):
                yield Finding(
                    Fault.CAPACITY_OVERCOMMITTED,
                    _claims_of(held),
                    key,
                    counter=name,
                    wanted=str(total),
                    available=str(_read(capacities[name])),
                )


def _qualified(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def _read(amount: Amount) -> Quantity:
    """The amount; one that is no quantity counts as nothing, since the API server lets none through."""
    try:
        return Quantity.parse(amount)
    except ValueError:
        return Quantity(0)


def _claims(evidence: Evidence) -> Iterator[Finding]:
    pods = {pod.key: pod for pod in evidence.pods}
    for claim in evidence.claims:
        yield from _reservations(claim, pods)
        yield from _owner(claim, pods)
        if claim.status.allocation and DELETE_PROTECTION not in claim.metadata.finalizers:
            yield Finding(Fault.ALLOCATED_UNPROTECTED, (claim.key,))


def _reservations(claim: ResourceClaim, pods: Mapping[ObjectKey, Pod]) -> Iterator[Finding]:
    namespace = claim.metadata.namespace
    for consumer in claim.status.reserved_for:
        if consumer.api_group or consumer.resource != "pods":
            continue
        pod = pods.get((namespace, consumer.name))
        if pod is None:
            reason = "is gone"
        elif pod.metadata.uid != consumer.uid:
            reason = "was replaced by another pod of that name"
        elif pod.is_done:
            reason = "is done"
        else:
            continue
        name = f"{namespace}/{consumer.name}"
        yield Finding(Fault.RESERVED_FOR_GONE_POD, (claim.key,), consumer=name, reason=reason)


def _owner(claim: ResourceClaim, pods: Mapping[ObjectKey, Pod]) -> Iterator[Finding]:
    owner = claim.metadata.controller
    if owner is None:
        if POD_CLAIM_NAME in claim.metadata.annotations:
            yield Finding(Fault.CLAIM_WITHOUT_OWNER, (claim.key,), reason="no pod owns it")
        return
    if owner.kind != "Pod":
        return
    pod = pods.get((claim.metadata.namespace, owner.name))
    if pod is None or pod.metadata.uid != owner.uid:
        reason = f"pod {claim.metadata.namespace}/{owner.name}, its owner, is gone"
        yield Finding(Fault.CLAIM_WITHOUT_OWNER, (claim.key,), reason=reason)


def _bound_pods(evidence: Evidence) -> Iterator[Finding]:
    claims = {claim.key: claim for claim in evidence.claims}
    nodes = {node.metadata.name: node for node in evidence.nodes}
    for pod in evidence.pods:
        if not pod.spec.node_name or pod.is_done or pod.metadata.deletion_timestamp:
            continue
        for key in _claim_keys(pod):
            if claim := claims.get(key):
                yield from _bound_pod(pod, claim, nodes.get(pod.spec.node_name))


def _bound_pod(pod: Pod, claim: ResourceClaim, node: Node | None) -> Iterator[Finding]:
    name = "/".join(pod.key)
    allocation = claim.status.allocation
    if allocation is None:
        yield Finding(Fault.BOUND_WITHOUT_DEVICES, (claim.key,), consumer=name, reason="not allocated")
        return
    # A claim of a PodGroup is reserved for the group, not for its pods (G29).
    if all(
        consumer.uid != pod.metadata.uid and consumer.resource == "pods"
        for consumer in claim.status.reserved_for
    ):
        yield Finding(Fault.BOUND_WITHOUT_DEVICES, (claim.key,), consumer=name, reason="not reserved for it")
    if node and allocation.node_selector and not _covers(allocation.node_selector, node):
        reason = f"node {pod.spec.node_name}"
        yield Finding(Fault.BOUND_ELSEWHERE, (claim.key,), consumer=name, reason=reason)


def _covers(selector: NodeSelector, node: Node) -> bool:
    return node_matches(selector, node.metadata.name, node.metadata.labels)


def _claim_keys(pod: Pod) -> Iterator[ObjectKey]:
    generated = {entry.name: entry.resource_claim_name for entry in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        if name := entry.resource_claim_name or generated.get(entry.name):
            yield pod.metadata.namespace, name


def _fence(evidence: Evidence) -> Iterator[Finding]:
    if not any(rule.spec.taint.key == FENCE_KEY for rule in evidence.rules):
        return
    for claim in evidence.claims:
        if claim.key in evidence.ours:
            continue
        for name in passes_unnamed(claim):
            yield Finding(Fault.TOLERATES_EVERYTHING, (claim.key,), reason=name)


def passes_unnamed(claim: ResourceClaim) -> Iterator[str]:
    """The requests of a claim that pass the fence without naming it; who writes its key means to pass."""
    for name, tolerations in _taking_requests(claim):
        if any(_tolerates_everything(toleration) for toleration in tolerations):
            yield name


def _taking_requests(claim: ResourceClaim) -> Iterator[tuple[str, tuple[Toleration, ...]]]:
    """The requests that take devices for themselves: those with admin access do not."""
    for request in claim.spec.devices.requests:
        if request.exactly and not request.exactly.admin_access:
            yield request.name, request.exactly.tolerations
        for alternative in request.first_available:
            yield f"{request.name}/{alternative.name}", alternative.tolerations


def _tolerates_everything(toleration: Toleration) -> bool:
    has_no_key = toleration.key == "" and toleration.operator == "Exists"
    return has_no_key and toleration.effect in ("", "NoSchedule")
