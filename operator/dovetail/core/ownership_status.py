"""What a DeviceOwnership says of itself: how far its fence stands, whom it stops, what is wrong inside."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.api.ownership import DeviceOwnership, OwnedDevices
from dovetail.core.conditions import Condition, truth
from dovetail.core.fence_effects import Waiting
from dovetail.core.findings import Fault, Finding
from dovetail.core.ownership import TOLERATION, Fence
from dovetail.core.restrictions import UNRESTRICTED, Restrictions

FENCED = "Fenced"
CLEAN = "Clean"

NOTHING_FOUND = "the audit finds nothing wrong with these devices"


class FenceReason(enum.StrEnum):
    """The reason of the condition `Fenced`."""

    RULES_IN_PLACE = "RulesInPlace"
    """True: every entry has its rule."""

    NOT_SERVED = "NotServed"
    """False: the cluster does not serve DeviceTaintRule in resource.k8s.io/v1, so there is no fence."""

    SHARED_COUNTERS = "SharedCounters"
    """False: an entry names a device of a pool whose devices share counters."""

    RULE_REFUSED = "RuleRefused"
    """False: the API server refused a rule."""


@dataclass(frozen=True, slots=True)
class FenceState:
    """What the condition `Fenced` says."""

    fenced: bool
    reason: FenceReason
    message: str


def state_of(fence: Fence, *, served: bool, refused: str = "") -> FenceState:
    """What the object says of its fence; `refused` is the API server's word about a rule."""
    if not served:
        return FenceState(
            False,
            FenceReason.NOT_SERVED,
            "this cluster does not serve DeviceTaintRule in resource.k8s.io/v1: "
            "kube-scheduler can pick these devices as well",
        )
    if refused:
        return FenceState(False, FenceReason.RULE_REFUSED, refused)
    if fence.withheld:
        first = fence.withheld[0]
        return FenceState(
            False,
            FenceReason.SHARED_COUNTERS,
            f"device {first.device} shares counters with the other devices of pool {first.pool}: "
            "own the whole pool",
        )
    return FenceState(True, FenceReason.RULES_IN_PLACE, _in_place(fence))


def _in_place(fence: Fence) -> str:
    rules, devices = len(fence.rules), fence.devices
    sentence = (
        f"{rules} {'rule keeps' if rules == 1 else 'rules keep'} kube-scheduler off "
        f"{devices} {'device' if devices == 1 else 'devices'}"
    )
    if fence.idle:
        names = ", ".join(sorted(entry_name(entry) for entry in fence.idle))
        sentence += f"; no driver publishes {names} at present"
    return sentence


def entry_name(entry: OwnedDevices) -> str:
    """An entry as people read it."""
    return "/".join(filter(None, (entry.driver, entry.pool, entry.device)))


@dataclass(frozen=True, slots=True)
class Inspection:
    """What the last audit found, and whom each object's fence stops, by the object's name."""

    findings: tuple[Finding, ...]
    stops: Mapping[str, tuple[Waiting, ...]]


def status_of(
    ownership: DeviceOwnership,
    fence: Fence,
    state: FenceState,
    *,
    inspection: Inspection | None,
    restrictions: Restrictions = UNRESTRICTED,
    before: Mapping[str, Any],
    now: str,
) -> dict[str, Any]:
    """The whole status; equal to `before` where nothing changed. Without an audit, nothing is said of it."""
    generation = ownership.metadata.generation
    conditions = [Condition(FENCED, truth(state.fenced), str(state.reason), state.message)]
    stops = before.get("stops") or []
    if inspection is not None:
        conditions.append(_clean(ownership, inspection.findings))
        stops = [
            {"kind": str(waiting.kind), "count": waiting.count, "example": "/".join(waiting.example)}
            for waiting in inspection.stops.get(ownership.metadata.name, ())
        ]
    conditions.append(restrictions.condition)
    written = state.reason is not FenceReason.NOT_SERVED
    return {
        "observedGeneration": generation,
        "toleration": dict(TOLERATION),
        "fenced": {"devices": fence.devices if written else 0, "pools": fence.pools if written else 0},
        "rules": sorted(rule["metadata"]["name"] for rule in fence.rules) if written else [],
        "stops": stops,
        "conditions": _dated(conditions, before.get("conditions") or (), generation, now),
    }


def _clean(ownership: DeviceOwnership, findings: Iterable[Finding]) -> Condition:
    concerned = [finding for finding in findings if _concerns(finding, ownership)]
    if not concerned:
        return Condition(CLEAN, "True", "NothingFound", NOTHING_FOUND)
    more = f" ({len(concerned) - 1} more)" if len(concerned) > 1 else ""
    message = f"{concerned[0].sentence.removesuffix('.')}{more}"
    return Condition(CLEAN, "False", str(concerned[0].fault), message)


def _concerns(finding: Finding, ownership: DeviceOwnership) -> bool:
    if finding.fault is Fault.TOLERATES_EVERYTHING:
        return True
    device = finding.device
    if device is None:
        return False
    return any(
        entry.covers(device.driver, device.pool, device.device or entry.device or "")
        for entry in ownership.spec.devices
    )


def _dated(
    conditions: Iterable[Condition], before: Iterable[Mapping[str, Any]], generation: int, now: str
) -> list[dict[str, Any]]:
    """Each condition with the time of its last change; conditions of others, and older ones, stay."""
    known = {entry["type"]: entry for entry in before}
    current = {
        condition.type: condition.dated(known.get(condition.type), generation=generation, now=now)
        for condition in conditions
    }
    return [dict(entry) for entry in (known | current).values()]
