"""Which devices a constraint still admits, given those that were chosen (allocation-rules 2.4, 2.10)."""

from dovetail.core.board import ValueBoard
from dovetail.core.sources import Element

State = frozenset[Element] | None
"""What a constraint knows of the chosen devices; None before the first.

For `matchAttribute` the values that all of them have, for `distinctAttribute` those that any has.
A device that is refused stays refused while more devices are chosen: the search relies on this.
"""

# Stands for a chosen device whose list does not count, so that the state is not that of no device.
_LONE: State = frozenset()


def admitted(values: ValueBoard, state: State, *, distinct: bool) -> int:
    """The devices that the constraint admits next, as a mask."""
    if state is None:
        return values.present
    if distinct:
        return values.present & ~values.lone & ~values.any_of(state)
    return values.any_of(state)


def after(values: ValueBoard, state: State, number: int, *, distinct: bool) -> State:
    """What the constraint knows once an admitted device is chosen."""
    elements = values.values[number].elements
    if state is None:
        return elements or _LONE
    return state | elements if distinct else state & elements
