"""The fence around owned devices: the rules that a DeviceOwnership wants, and what it says of itself.

A rule's taint keeps kube-scheduler from picking a device for a claim of its own (S28),
while every allocation that is written already stays as it is (S21).
The effect is NoSchedule and never NoExecute: that one would evict pods (L40).
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.api.mappings import API_VERSION, GROUP
from dovetail.api.ownership import FENCE_KEY, DeviceOwnership, OwnedDevices
from dovetail.core.pool_records import PoolRecord
from dovetail.core.values import PoolKey

OWNERSHIP_LABEL = f"{GROUP}/ownership"
"""The label of a rule: the name of the object that it belongs to, as far as a label can hold it."""

TOLERATION: Mapping[str, str] = {"key": FENCE_KEY, "operator": "Exists", "effect": "NoSchedule"}
"""A request with this toleration passes the fence."""

EFFECT = "NoSchedule"

_LONGEST_LABEL = 63


@dataclass(frozen=True, slots=True)
class Fence:
    """What one object fences at present.

    `withheld` are entries without a rule: single devices of a pool whose devices share counters.
    Fencing a part of such a pool would let kube-scheduler and Dovetail spend the same counters twice.
    `idle` are entries that cover no published device at the moment; they have their rule all the same.
    """

    rules: tuple[Mapping[str, Any], ...]
    devices: int
    pools: int
    withheld: tuple[OwnedDevices, ...] = ()
    idle: tuple[OwnedDevices, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleChanges:
    """What makes the rules of an object what it wants: names to delete come with their UID."""

    create: tuple[Mapping[str, Any], ...] = ()
    replace: tuple[Mapping[str, Any], ...] = ()
    delete: tuple[tuple[str, str], ...] = ()


def fence_of(ownership: DeviceOwnership, pools: Mapping[PoolKey, PoolRecord]) -> Fence:
    """The rules that the object wants, given what drivers publish."""
    entries = ownership.spec.devices
    withheld = tuple(entry for entry in entries if _is_part_of_counters(entry, pools))
    fenced = tuple(entry for entry in entries if entry not in withheld)
    covered = {
        (key, device)
        for key, pool in pools.items()
        for device in pool.devices
        if any(entry.covers(key.driver, key.pool, device) for entry in fenced)
    }
    return Fence(
        rules=tuple(rule_for(ownership, entry) for entry in fenced),
        devices=len(covered),
        pools=len({key for key, _ in covered}),
        withheld=withheld,
        idle=tuple(
            entry
            for entry in fenced
            if not any(entry.covers(key.driver, key.pool, device) for key, device in covered)
        ),
    )


def _is_part_of_counters(entry: OwnedDevices, pools: Mapping[PoolKey, PoolRecord]) -> bool:
    if entry.device is None or entry.pool is None:
        return False
    pool = pools.get(PoolKey(entry.driver, entry.pool))
    if pool is None:
        return False
    return bool(pool.counters) or any(device.consumes_counters for device in pool.devices.values())


def rule_for(ownership: DeviceOwnership, entry: OwnedDevices) -> dict[str, Any]:
    """The DeviceTaintRule for one entry; equal entries of one object always get the same name."""
    name = ownership.metadata.name
    selector = {
        part: value
        for part, value in (("driver", entry.driver), ("pool", entry.pool), ("device", entry.device))
        if value is not None
    }
    digest = hashlib.sha256("\0".join([name, *selector.values()]).encode()).hexdigest()[:10]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": f"{GROUP}-{name}-{digest}",
            "labels": {
                "app.kubernetes.io/managed-by": "dovetail",
                OWNERSHIP_LABEL: name[:_LONGEST_LABEL].rstrip(".-"),
            },
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION,
                    "kind": "DeviceOwnership",
                    "name": name,
                    "uid": ownership.metadata.uid,
                    "controller": True,
                }
            ],
        },
        "spec": {
            "deviceSelector": selector,
            "taint": {"key": FENCE_KEY, "value": taint_value(name), "effect": EFFECT},
        },
    }


def taint_value(name: str) -> str:
    """The value of the taint: the name of the object, as far as a label value can hold it."""
    return name[:_LONGEST_LABEL].rstrip(".-")


def rule_changes(
    ownership: DeviceOwnership, fence: Fence, existing: Iterable[Mapping[str, Any]]
) -> RuleChanges:
    """What has to be written, given all DeviceTaintRules of the cluster as read.

    A rule counts as the object's by its owner reference, so that nobody else's is ever touched.
    What is replaced carries the resourceVersion of the rule that was read.
    """
    wanted = {rule["metadata"]["name"]: rule for rule in fence.rules}
    own = {rule["metadata"]["name"]: rule for rule in existing if belongs_to(rule, ownership.metadata.uid)}
    changed = [
        name for name in sorted(wanted.keys() & own.keys()) if not _says_the_same(own[name], wanted[name])
    ]
    return RuleChanges(
        create=tuple(wanted[name] for name in sorted(wanted.keys() - own.keys())),
        replace=tuple(_in_place_of(own[name], wanted[name]) for name in changed),
        delete=tuple((name, own[name]["metadata"]["uid"]) for name in sorted(own.keys() - wanted.keys())),
    )


def left_over(
    name: str, existing: Iterable[Mapping[str, Any]], uids: frozenset[str]
) -> tuple[tuple[str, str], ...]:
    """Rules, by name and UID, of an object of this name that is gone: `uids` are those that are there.

    The garbage collector deletes them too, but on a young cluster it may take half a minute.
    """
    return tuple(
        (rule["metadata"]["name"], rule["metadata"]["uid"])
        for rule in existing
        for owner in rule["metadata"].get("ownerReferences") or ()
        if owner.get("kind") == "DeviceOwnership"
        and str(owner.get("apiVersion", "")).startswith(f"{GROUP}/")
        and owner.get("name") == name
        and owner.get("uid") not in uids
    )


def belongs_to(rule: Mapping[str, Any], uid: str) -> bool:
    """Whether a rule is owned by the object with this UID."""
    owners = rule["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == uid for owner in owners)


def _says_the_same(rule: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    spec, wanted_spec = rule.get("spec") or {}, wanted["spec"]
    taint = spec.get("taint") or {}
    return bool(
        spec.get("deviceSelector") == wanted_spec["deviceSelector"]
        and all(taint.get(part) == value for part, value in wanted_spec["taint"].items())
    )


def _in_place_of(rule: Mapping[str, Any], wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = {**rule["metadata"], "ownerReferences": wanted["metadata"]["ownerReferences"]}
    return {**wanted, "metadata": metadata}
