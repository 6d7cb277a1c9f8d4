"""What an audit can find wrong, as data and as one sentence each."""

import enum
from dataclasses import dataclass
from typing import Any

from dovetail.core.decisions import ObjectKey
from dovetail.core.values import DeviceKey


class Fault(enum.StrEnum):
    """The kinds of findings."""

    DEVICE_HELD_TWICE = "DeviceHeldTwice"
    """More than one claim, or request, holds a device that serves one at a time."""

    COUNTER_OVERCOMMITTED = "CounterOvercommitted"
    """The allocated devices of a pool take more of a shared counter than there is (KEP-4815)."""

    CAPACITY_OVERCOMMITTED = "CapacityOvercommitted"
    """The shares of a device take more of its capacity than it has (KEP-5075)."""

    NO_SUCH_DEVICE = "NoSuchDevice"
    """An allocation names a device that no driver publishes."""

    RESERVED_FOR_GONE_POD = "ReservedForGonePod"
    """A claim is reserved for a pod that is gone, done, or replaced by another of the same name (L3)."""

    CLAIM_WITHOUT_OWNER = "ClaimWithoutOwner"
    """A claim that was made for a pod has no owner, or one that is gone: nobody will delete it."""

    ALLOCATED_UNPROTECTED = "AllocatedUnprotected"
    """An allocated claim lacks the finalizer, so that kube-controller-manager will not free it (L11)."""

    BOUND_WITHOUT_DEVICES = "BoundWithoutDevices"
    """A pod is bound to a node while a claim of it is not allocated or not reserved for it (V-16)."""

    BOUND_ELSEWHERE = "BoundElsewhere"
    """A pod runs on a node that the allocation of its claim does not cover."""

    TOLERATES_EVERYTHING = "ToleratesEverything"
    """A claim that is not ours passes the fence of a DeviceOwnership, since it tolerates every taint."""

    GIVEN_BY_PLUGIN_TOO = "GivenByPluginToo"
    """Claims hold devices of a driver on a node where a pod has such devices from a device plugin (R-G4)."""

    UNREADABLE = "Unreadable"
    """An object is malformed: what it holds is not known."""


TRANSIENT = frozenset(
    {
        Fault.RESERVED_FOR_GONE_POD,
        Fault.CLAIM_WITHOUT_OWNER,
        Fault.BOUND_WITHOUT_DEVICES,
        Fault.NO_SUCH_DEVICE,
        Fault.ALLOCATED_UNPROTECTED,
    }
)
"""Faults that also show for a moment while controllers do their work: true only when they last."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is wrong.

    `claims` are the claims concerned, sorted.
    `device`, `counter` (or capacity, or extended resource) and `consumer` are set where the fault has one.
    `wanted` and `available` are amounts as Kubernetes prints them.
    """

    fault: Fault
    claims: tuple[ObjectKey, ...]
    device: DeviceKey | None = None
    counter: str = ""
    consumer: str = ""
    wanted: str = ""
    available: str = ""
    reason: str = ""

    @property
    def sentence(self) -> str:
        """What is wrong, in one sentence."""
        return f"{_SENTENCES[self.fault].format(**self._words())}."

    def _words(self) -> dict[str, str]:
        return {
            "claims": _and([f"{namespace}/{name}" for namespace, name in self.claims]),
            "claim": "/".join(self.claims[0]) if self.claims else "",
            "device": device_name(self.device) if self.device else "",
            "pool": f"{self.device.driver}/{self.device.pool}" if self.device else "",
            "counter": self.counter,
            "consumer": self.consumer,
            "wanted": self.wanted,
            "available": self.available,
            "reason": self.reason,
        }

    def as_json(self) -> dict[str, Any]:
        """The finding as `dovetail audit -o json` prints it; fields without a value are left out."""
        device = self.device
        body = {
            "fault": str(self.fault),
            "sentence": self.sentence,
            "claims": [{"namespace": namespace, "name": name} for namespace, name in self.claims],
            "device": device and {"driver": device.driver, "pool": device.pool, "device": device.device},
            "counter": self.counter,
            "consumer": self.consumer,
            "wanted": self.wanted,
            "available": self.available,
            "reason": self.reason,
        }
        return {name: value for name, value in body.items() if value}


_SENTENCES = {
    Fault.DEVICE_HELD_TWICE: "device {device} is held {wanted} times, by {claims}",
    Fault.COUNTER_OVERCOMMITTED: "the devices of pool {pool} that {claims} hold take {wanted} "
    "of counter {counter}, which has {available}",
    Fault.CAPACITY_OVERCOMMITTED: "the shares of device {device} that {claims} hold take {wanted} "
    "of {counter}, which has {available}",
    Fault.NO_SUCH_DEVICE: "claim {claim} holds device {device}, which no driver publishes",
    Fault.RESERVED_FOR_GONE_POD: "claim {claim} is reserved for pod {consumer}, which {reason}",
    Fault.CLAIM_WITHOUT_OWNER: "claim {claim} was made for a pod, but {reason}",
    Fault.ALLOCATED_UNPROTECTED: "claim {claim} is allocated without the finalizer that lets "
    "kube-controller-manager free it",
    Fault.BOUND_WITHOUT_DEVICES: "pod {consumer} is bound, but its claim {claim} is {reason}",
    Fault.BOUND_ELSEWHERE: "pod {consumer} is bound to {reason}, which the allocation of its claim {claim} "
    "does not cover",
    Fault.TOLERATES_EVERYTHING: "claim {claim} tolerates every taint in request {reason}, "
    "so that the fence around Dovetail's devices does not hold it off",
    Fault.GIVEN_BY_PLUGIN_TOO: "pod {consumer} has {counter} from a device plugin, which may be {reason} "
    "that {claims} got as well",
    Fault.UNREADABLE: "{reason}",
}


def device_name(key: DeviceKey) -> str:
    """A device as people read it."""
    return f"{key.driver}/{key.pool}/{key.device}"


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "nobody"
