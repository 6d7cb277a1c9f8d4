"""What goes into an evaluation besides the device, and what comes out besides a value."""

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Environment:
    """Which names an expression may use."""

    consumable_capacity: bool = True
    """`device.allowMultipleAllocations` exists (DRAConsumableCapacity)."""
    list_type_attributes: bool = False
    """`includes()` exists, and attributes may be lists (DRAListTypeAttributes)."""
    own: bool = False
    """The expression is part of a mapping of ours: `device.name` and `device.pool` exist."""
    stored: bool = False
    """The API server has stored the expression already: functions of gates that are off compile too."""


class FailureKind(enum.StrEnum):
    """What went wrong in an evaluation."""

    MISSING = "Missing"
    """The device lacks an attribute or capacity that the expression reads without a guard."""
    UNUSABLE = "Unusable"
    """The device carries an attribute without a usable value (allocation-rules 2.10)."""
    TYPE = "Type"
    """The result has a type that does not serve, or no function takes these types."""
    COST = "Cost"
    """The evaluation costs more than Kubernetes allows."""
    OTHER = "Other"
    """Anything else: overflow, a division by zero, text that does not parse, …"""


@dataclass(frozen=True, slots=True)
class Failure:
    """A run-time error as a value; kube-scheduler gives up on the claim for such an error.

    For `MISSING`, `domain` and `id` say which attribute (or capacity) was read in vain.
    """

    message: str
    kind: FailureKind = FailureKind.OTHER
    domain: str = ""
    id: str = ""
    of: str = "attributes"
    """`attributes` or `capacity`: where the device lacks something."""
