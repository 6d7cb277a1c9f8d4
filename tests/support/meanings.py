"""What quantities, policies, tolerations and values in a world mean, worked out without the allocator."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

Json = Mapping[str, Any]


def amount(raw: str) -> Fraction:
    """A quantity with the suffixes that worlds use."""
    for suffix, factor in (("Gi", 1 << 30), ("Mi", 1 << 20), ("m", Fraction(1, 1000))):
        if raw.endswith(suffix):
            return Fraction(raw[: -len(suffix)]) * factor
    return Fraction(raw)


def rounded(capacity: Json, raw: str | None) -> Fraction | None:
    """What a request takes; None where the policy has no amount for it."""
    policy = capacity.get("requestPolicy")
    if raw is None:
        return amount(policy["default"]) if policy and "default" in policy else amount(capacity["value"])
    asked = amount(raw)
    if not policy:
        return asked
    if "validValues" in policy:
        return next((amount(value) for value in policy["validValues"] if asked <= amount(value)), None)
    valid = policy.get("validRange")
    if valid is None:
        return asked
    lowest = amount(valid["min"])
    taken = max(asked, lowest)
    if "step" in valid:
        step = amount(valid["step"])
        taken = lowest + -((lowest - taken) // step) * step
    return None if "max" in valid and taken > amount(valid["max"]) else taken


def tolerates(toleration: Json, taint: Json) -> bool:
    """Whether a toleration covers a taint."""
    if toleration.get("effect", taint["effect"]) != taint["effect"]:
        return False
    if toleration.get("key", taint["key"]) != taint["key"]:
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint["value"]


def elements(value: Json) -> frozenset[object]:
    """The values of an attribute, each with its type."""
    ((kind, content),) = value.items()
    return frozenset(
        (kind.rstrip("s"), each) for each in (content if isinstance(content, list) else [content])
    )
