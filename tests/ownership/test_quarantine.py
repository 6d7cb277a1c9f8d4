"""The rule that keeps a device which two claims hold from a third."""

from dovetail.core.ownership import left_over
from dovetail.core.quarantine import quarantine_rule, quarantined, rule_name
from dovetail.core.values import DeviceKey

DEVICE = DeviceKey("gpu.example.com", "n1", "gpu-0")


def test_a_rule_is_about_one_device() -> None:
    """Device to rule and back; another device has another rule."""
    assert quarantined(quarantine_rule(DEVICE)) == DEVICE
    assert rule_name(DEVICE) != rule_name(DeviceKey("gpu.example.com", "n1", "gpu-1"))


def test_rules_of_others_are_no_quarantine() -> None:
    """Neither a rule without the label, nor one whose name and device do not belong together."""
    rule = quarantine_rule(DEVICE)
    assert quarantined(rule | {"metadata": {"name": rule["metadata"]["name"]}}) is None
    assert quarantined(rule | {"spec": rule["spec"] | {"deviceSelector": {"driver": "other"}}}) is None


def test_ownerships_leave_it_alone() -> None:
    """It belongs to no DeviceOwnership, so that none deletes it."""
    assert left_over("gpus", [quarantine_rule(DEVICE)], frozenset()) == ()
