"""The taint on a device that two claims hold: nobody gets it before both have let go.

kube-scheduler 1.37 notes the devices in use as a set.
When one of two claims with the same device is deallocated, it takes the device for free although the other
claim still holds it; the taint keeps it from giving the device to a third.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from dovetail.api.mappings import GROUP
from dovetail.core.values import DeviceKey

CLASH_KEY = f"{GROUP}/clash"
"""The key of the taint, and the label of its rule."""


def rule_name(device: DeviceKey) -> str:
    """The name of the rule for a device."""
    identity = f"{device.driver}\0{device.pool}\0{device.device}"
    return f"{GROUP}-clash-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def quarantine_rule(device: DeviceKey) -> dict[str, Any]:
    """The DeviceTaintRule for a device; it stops nobody who has the device already."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": rule_name(device),
            "labels": {"app.kubernetes.io/managed-by": "dovetail", CLASH_KEY: "true"},
        },
        "spec": {
            "deviceSelector": {"driver": device.driver, "pool": device.pool, "device": device.device},
            "taint": {"key": CLASH_KEY, "effect": "NoSchedule"},
        },
    }


def quarantined(rule: Mapping[str, Any]) -> DeviceKey | None:
    """The device that a rule is about, if it is one of these."""
    if CLASH_KEY not in (rule["metadata"].get("labels") or {}):
        return None
    selector = rule["spec"].get("deviceSelector") or {}
    device = DeviceKey(*(selector.get(part, "") for part in ("driver", "pool", "device")))
    return device if rule["metadata"]["name"] == rule_name(device) else None
