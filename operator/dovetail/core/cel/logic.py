"""`&&`, `||`, `!` and `?:`: what absorbs errors, and what does not."""

from typing import Any

from dovetail.core.cel.pieces import Frame, Run
from dovetail.core.cel.values import EvalError, NoSuchOverload


def _no_bool() -> NoSuchOverload:
    return NoSuchOverload("no such overload: a logical operator wants bool")


def plan_logic(runs: list[Run], decisive: bool) -> Run:
    """True settles `||` and false settles `&&`, whatever else fails; without it an error stays."""
    if len(runs) == 2:
        return _pair(runs[0], runs[1], decisive)

    def chain(frame: Frame) -> Any:
        problem: EvalError | None = None
        for run in runs:
            try:
                value = run(frame)
            except EvalError as error:
                problem = problem or error
                continue
            if value is decisive:
                return decisive
            if value is not (not decisive):
                problem = problem or _no_bool()
        if problem is not None:
            raise problem
        return not decisive

    return chain


def _pair(left: Run, right: Run, decisive: bool) -> Run:
    other = not decisive

    def pair(frame: Frame) -> Any:
        problem: EvalError | None = None
        try:
            value = left(frame)
            if value is decisive:
                return decisive
            if value is not other:
                problem = _no_bool()
        except EvalError as error:
            problem = error
        value = _second(right, frame, problem)
        if value is decisive:
            return decisive
        if problem is not None:
            raise problem
        if value is not other:
            raise _no_bool()
        return other

    return pair


def _second(run: Run, frame: Frame, problem: EvalError | None) -> Any:
    """The second operand; where both fail, the first error is the one to tell."""
    if problem is None:
        return run(frame)
    try:
        return run(frame)
    except EvalError:
        raise problem from None


def plan_not(run: Run) -> Run:
    """`!a`."""

    def negate(frame: Frame) -> Any:
        value = run(frame)
        if value is True:
            return False
        if value is False:
            return True
        raise NoSuchOverload("no such overload: !_")

    return negate


def plan_not_strictly_false(run: Run) -> Run:
    """False only for false: an error counts as true, so that a loop goes on looking."""

    def test(frame: Frame) -> bool:
        try:
            return run(frame) is not False
        except EvalError:
            return True

    return test


def plan_conditional(condition: Run, first: Run, second: Run) -> Run:
    """`a ? b : c`: only the branch taken is evaluated."""

    def choose(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return first(frame)
        if value is False:
            return second(frame)
        raise NoSuchOverload("no such overload: ?: wants bool")

    return choose
