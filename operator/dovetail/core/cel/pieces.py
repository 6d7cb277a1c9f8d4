"""What the planner makes of a node: a function of the frame, and what is known of it before the run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dovetail.core.cel.meter import Meter
from dovetail.core.cel.values import MISSING

Frame = list[Any]
"""The memory of one evaluation: the view of the device, the meter, then a slot per variable."""

Run = Callable[[Frame], Any]

VIEW: Final = 0
METER: Final = 1
FIRST_VARIABLE: Final = 2


@dataclass(frozen=True, slots=True)
class Piece:
    """A planned node.

    `constant` is its value where that is known before the run, else `MISSING`.
    `bare` is `run` without the unit that cel-go charges for resolving a name or selection:
    that is how the branches of `?:` and computed keys are charged.
    """

    run: Run
    constant: Any = MISSING
    bare: Run | None = None
    is_conditional: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether the value is known before the run."""
        return self.constant is not MISSING

    @property
    def is_attribute(self) -> bool:
        """Whether cel-go resolves this as a name with selections."""
        return self.bare is not None

    @property
    def as_branch(self) -> Run:
        """How it runs as a branch of `?:`, or as a computed key."""
        return self.run if self.bare is None else self.bare


def constant(value: Any) -> Piece:
    """A piece that is known before the run."""
    return Piece(lambda _: value, value)


def charged(run: Run, cost: int) -> Run:
    """The same with a cost, which falls due before."""
    if cost == 0:
        return run

    def with_cost(frame: Frame) -> Any:
        meter: Meter = frame[METER]
        meter.cost += cost
        return run(frame)

    return with_cost
