"""Calls to functions: arguments evaluated, an overload found by their types, the cost charged."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from dovetail.core.cel.equality import equal
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.pieces import METER, Frame, Piece, Run
from dovetail.core.cel.signatures import Dispatch
from dovetail.core.cel.values import UNHASHABLE, EvalError, Uint, Unhashable

IN_SET: Final = frozenset((bool, float, int, str, Uint))
"""The types of which a constant list makes a set."""


def application(dispatch: Dispatch, runs: list[Run]) -> Run:
    """A call, for its number of arguments."""
    known = dispatch.known
    if dispatch.spends:
        return _spending_application(dispatch, runs)
    match runs:
        case [one]:

            def unary(frame: Frame) -> Any:
                value = one(frame)
                run = known.get((type(value),))
                return run(value) if run is not None else dispatch.find((value,))(value)

            return unary
        case [left, right]:

            def binary(frame: Frame) -> Any:
                first, second = left(frame), right(frame)
                run = known.get((type(first), type(second)))
                if run is None:
                    run = dispatch.find((first, second))
                return run(first, second)

            return binary
        case _:
            return lambda frame: dispatch.apply(frame[METER], tuple([run(frame) for run in runs]))


def _spending_application(dispatch: Dispatch, runs: list[Run]) -> Run:
    """The same for a function that is given the meter."""
    known = dispatch.known
    if len(runs) != 2:
        return lambda frame: dispatch.apply(frame[METER], tuple([run(frame) for run in runs]))
    left, right = runs

    def binary(frame: Frame) -> Any:
        first, second = left(frame), right(frame)
        run = known.get((type(first), type(second)))
        if run is None:
            run = dispatch.find((first, second))
        return run(frame[METER], first, second)

    return binary


def metered_application(
    dispatch: Dispatch, runs: list[Run], cost: Callable[[Meter, tuple[Any, ...], Any], int]
) -> Run:
    """A call that is charged for, failed arguments included: cel-go charges for what it evaluated."""

    def apply(frame: Frame) -> Any:
        meter = frame[METER]
        values = evaluated(runs, frame)
        try:
            raise_first(values)
            result = dispatch.apply(meter, values)
        except EvalError:
            meter.charge(cost(meter, values, None))
            raise
        meter.charge(cost(meter, values, result))
        return result

    return apply


def evaluated(runs: list[Run], frame: Frame) -> tuple[Any, ...]:
    """The arguments of a call; an error stands for an argument that failed, up to two are all evaluated."""
    if len(runs) > 2:
        return tuple([run(frame) for run in runs])
    values: list[Any] = []
    for run in runs:
        try:
            values.append(run(frame))
        except EvalError as error:
            values.append(error)
    return tuple(values)


def raise_first(values: tuple[Any, ...]) -> None:
    """Raise what stands for the first argument that failed."""
    for value in values:
        if isinstance(value, EvalError):
            raise value


def in_set(run: Run, elements: list[Any]) -> Run:
    """Membership in a constant set, numbers of other types included where they are equal."""
    members = {(type(element), element) for element in elements}
    for element in elements:
        members |= set(_same_numbers(element))

    def contains(frame: Frame) -> bool:
        value = run(frame)
        kind = type(value)
        if kind in IN_SET:
            return (kind, value) in members
        if kind in UNHASHABLE:
            raise Unhashable
        return False

    return contains


def _same_numbers(element: Any) -> Sequence[tuple[type, Any]]:
    kind = type(element)
    if kind in (int, Uint):
        other = Uint if kind is int else int
        limits = range(1 << 64) if kind is int else range(1 << 63)
        found: list[tuple[type, Any]] = [(float, float(element))]
        return [*found, (other, other(element))] if int(element) in limits else found
    if kind is float and element == element // 1 and -(2.0**63) < element < 2.0**64:
        whole = int(element)
        return [(int, whole)] * (whole < 1 << 63) + [(Uint, Uint(whole))] * (whole >= 0)
    return []


def verdict(found: Any, *, negated: bool) -> bool:
    """`!=` holds for what cannot be compared; `==` fails."""
    if negated:
        return found is not True
    if isinstance(found, EvalError):
        raise found
    return bool(found)


def comparison(left: Run, second: Piece, *, negated: bool) -> Run:
    """`==` and `!=`; a constant string, integer or truth value is compared the short way."""
    right, wanted, kind = second.run, second.constant, type(second.constant)
    if second.is_constant and kind in (str, int, bool):

        def short(frame: Frame) -> bool:
            value = left(frame)
            if type(value) is kind:
                return bool((value == wanted) is not negated)
            return verdict(equal(value, wanted, frame[METER]), negated=negated)

        return short
    return lambda frame: verdict(equal(left(frame), right(frame), frame[METER]), negated=negated)
