"""Loops and bindings: how the macros run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dovetail.core.cel.meter import Meter
from dovetail.core.cel.pieces import FIRST_VARIABLE, METER, Frame, Piece, Run
from dovetail.core.cel.values import CelMap, EvalError, Growing

UNREAD: Final = object()
"""In the slot of an accumulator that nobody has read: its first value is computed when somebody does."""


class _Held:
    """An error as the value of an accumulator: reading it raises the error."""

    __slots__ = ("error",)

    def __init__(self, error: EvalError) -> None:
        self.error = error


class Slots:
    """Gives each variable of an expression a place in the frame."""

    def __init__(self) -> None:
        self.count = FIRST_VARIABLE
        self._scopes: dict[str, list[Run]] = {}

    def enter(self, name: str, init: Run | None = None) -> int:
        """A slot for a variable; with `init`, for an accumulator that begins as that."""
        slot = self.count
        self.count += 1
        read = _variable(slot) if init is None else _accumulator(slot, init)
        self._scopes.setdefault(name, []).append(read)
        return slot

    def leave(self, name: str) -> None:
        """The variable goes out of scope."""
        self._scopes[name].pop()

    def reader(self, name: str) -> Run:
        """How the innermost variable of this name is read."""
        return self._scopes[name][-1]


def _variable(slot: int) -> Run:
    return lambda frame: frame[slot]


def _accumulator(slot: int, init: Run) -> Run:
    def read(frame: Frame) -> Any:
        value = frame[slot]
        if value is UNREAD:
            value = frame[slot] = _first_value(init, frame)
        if type(value) is _Held:
            raise value.error
        return value

    return read


def _first_value(init: Run, frame: Frame) -> Any:
    """The first value of an accumulator; an empty list or map becomes one that may grow in place."""
    try:
        value = init(frame)
    except EvalError as error:
        return _Held(error)
    if isinstance(value, list) and not value:
        return Growing()
    if isinstance(value, CelMap) and not len(value):
        return CelMap()
    return value


def plan_binding(slot: int, body: Run) -> Run:
    """`cel.bind`: the variable is computed when it is first read, or never."""

    def bind(frame: Frame) -> Any:
        frame[slot] = UNREAD
        return _settled(body(frame), frame)

    return bind


def _settled(value: Any, frame: Frame) -> Any:
    """What a loop or a binding gives: a list that does not grow any more."""
    if type(value) is not Growing:
        return value
    meter: Meter = frame[METER]
    meter.build(len(value))
    return list(value)


@dataclass(frozen=True, slots=True)
class Loop:
    """The planned parts of a loop; the numbers are slots."""

    over: Run
    accumulator: int
    variables: list[int]
    condition: Piece
    step: Run
    result: Run


def plan_loop(parts: Loop, *, metered: bool) -> Run:
    """A loop: while the condition is not false, the step gives the accumulator its next value."""
    over, step, result = parts.over, parts.step, parts.result
    accumulator, variables, condition = parts.accumulator, parts.variables, parts.condition
    items = _items_with_two if len(variables) == 2 else _items
    assign = _assign_two(variables) if len(variables) == 2 else _assign_one(variables[0])
    goes_on = None if condition.constant is True else condition.run

    def loop(frame: Frame) -> Any:
        values = items(over(frame), frame[METER])
        frame[accumulator] = UNREAD
        for item in values:
            assign(frame, item)
            if goes_on is not None and _stops(goes_on, frame):
                break
            try:
                frame[accumulator] = step(frame)
            except EvalError as error:
                frame[accumulator] = _Held(error)
            if metered:
                meter: Meter = frame[METER]
                meter.charge(0)
        return _settled(result(frame), frame)

    return loop


def _stops(goes_on: Run, frame: Frame) -> bool:
    try:
        return goes_on(frame) is False
    except EvalError:
        return False


def _assign_one(slot: int) -> Callable[[Frame, Any], None]:
    def assign(frame: Frame, item: Any) -> None:
        frame[slot] = item

    return assign


def _assign_two(slots: list[int]) -> Callable[[Frame, Any], None]:
    first, second = slots

    def assign(frame: Frame, item: Any) -> None:
        frame[first], frame[second] = item

    return assign


def _items(values: Any, meter: Meter) -> Iterator[Any]:
    """The elements as they are now: what a loop does may add to the list."""
    if isinstance(values, list):
        meter.build(len(values))
        return iter(list(values))
    if isinstance(values, CelMap):
        meter.build(len(values))
        return iter(list(values.keys()))
    raise EvalError("this type cannot be the range of a comprehension")


def _items_with_two(values: Any, meter: Meter) -> Iterator[Any]:
    if isinstance(values, list):
        meter.build(len(values))
        return enumerate(list(values))
    if isinstance(values, CelMap):
        meter.build(2 * len(values))
        return zip(list(values.keys()), list(values.entries.values()), strict=True)
    raise EvalError("this type cannot be the range of a comprehension")
