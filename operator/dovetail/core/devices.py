"""A device as expressions, constraints and mappings see it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dovetail.core.quantity import Quantity
from dovetail.core.values import Attributes, DeviceKey


@dataclass(frozen=True, slots=True, eq=False)
class DeviceView:
    """A device with qualified names throughout: bare ids lie in the driver's domain (V22)."""

    key: DeviceKey
    attributes: Attributes = field(default_factory=dict)
    capacity: Mapping[str, Quantity] = field(default_factory=dict)
    allow_multiple_allocations: bool = False
    prepared: Any = field(default=None, init=False, repr=False)
    """What `dovetail.core.cel` makes of the device on first use; nobody else's business."""
