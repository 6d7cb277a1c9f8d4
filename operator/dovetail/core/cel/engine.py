"""Expressions compiled and evaluated."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from dovetail.core.budget import Budget
from dovetail.core.cel.analysis import can_be_expensive, reads
from dovetail.core.cel.checker import check
from dovetail.core.cel.effort import Effort, TooLarge
from dovetail.core.cel.environment import Scope, scope
from dovetail.core.cel.estimator import estimate
from dovetail.core.cel.faults import brief, fault
from dovetail.core.cel.kinds import BOOL, INT, SEMVER, STRING, Type
from dovetail.core.cel.meter import LIMIT, Meter
from dovetail.core.cel.parser import parse
from dovetail.core.cel.pieces import FIRST_VARIABLE, Run
from dovetail.core.cel.planner import Planner
from dovetail.core.cel.shelf import Shelf
from dovetail.core.cel.signatures import type_name
from dovetail.core.cel.validators import validate
from dovetail.core.cel.values import (
    Aborted,
    CostExceeded,
    EvalError,
    NoSuchKey,
    NoSuchOverload,
    Optional,
    TypeValue,
)
from dovetail.core.cel.verdicts import Environment, Failure, FailureKind
from dovetail.core.cel.view import View, prepared
from dovetail.core.devices import DeviceView
from dovetail.core.semver import Semver
from dovetail.core.values import AttributeValue, Kind, Scalar
from dovetail.errors import ExpressionInvalid

ROOM: Final = 100_000
"""Parts that the compiled expressions which are kept have together, each at least `LEAST_WEIGHT`."""

LEAST_WEIGHT: Final = 25

TOO_COSTLY: Final = f"it may cost {{}} at worst, and {LIMIT:,} is the limit, as for selectors of Kubernetes"

MOST_TOLD: Final = 10**12

UNFORESEEN: Final = "the evaluation failed in a way that was not foreseen"

MAX_DERIVED: Final = 1_024
"""Elements of a derived attribute; the API allows a published one 64."""

MAX_DERIVED_TEXT: Final = 20_000
"""Characters of a derived attribute; the API allows a published one 64 times 64."""

_SCALARS: Final = (BOOL, INT, STRING, SEMVER)
_KINDS: Final = {bool: Kind.BOOL, int: Kind.INT, str: Kind.STRING, Semver: Kind.VERSION}


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A compiled expression: it changes nothing, and may be used from several threads at once.

    `reads` names what of a device the result can depend on (see `analysis.reads`); None means everything.
    """

    expression: str
    reads: frozenset[str] | None
    run: Run = field(repr=False)
    slots: int = FIRST_VARIABLE
    size: int = 1
    """How many parts the expression has, its macros expanded."""
    estimate: int = 0
    """What an evaluation costs at worst, in cel-go's units, as Kubernetes estimates it."""

    def matches(self, device: DeviceView, budget: Budget | None = None) -> bool | Failure:
        """Whether a selector takes the device. A spent budget raises BudgetSpent."""
        view = prepared(device)
        value = self.evaluate(view, budget) if view.broken is None else view.broken
        return value if type(value) is bool or type(value) is Failure else _as_bool(value)

    def derive(self, device: DeviceView, budget: Budget | None = None) -> AttributeValue | Failure | None:
        """The attribute that the device gets; None for an empty list. A spent budget raises BudgetSpent."""
        view = prepared(device)
        value = self.evaluate(view, budget) if view.broken is None else view.broken
        return value if type(value) is Failure else _as_attribute(value)

    def evaluate(self, view: View, budget: Budget | None = None) -> Any:
        """The value of the expression in CEL's terms, or a Failure. A spent budget raises BudgetSpent."""
        value, _ = self.evaluate_with_cost(view, budget)
        return value

    def evaluate_with_cost(self, view: View, budget: Budget | None = None) -> tuple[Any, int]:
        """The value, and what it cost: 0 for expressions that are too cheap to count."""
        meter = Meter(budget)
        frame: list[Any] = [view, meter]
        if self.slots > FIRST_VARIABLE:
            frame.extend([None] * (self.slots - FIRST_VARIABLE))
        try:
            value = self.run(frame)
            meter.charge(0)
        except EvalError as error:
            return _failure(error), meter.cost
        except Aborted as error:
            kind = FailureKind.COST if isinstance(error, CostExceeded) else FailureKind.OTHER
            return Failure(str(error), kind), meter.cost
        except (RecursionError, OverflowError) as error:
            return Failure(f"the evaluation went too far: {error}"), meter.cost
        except (TypeError, ValueError, LookupError, AssertionError) as error:
            # A mistake of ours, found by an expression that nobody thought of: it concerns that one alone.
            return Failure(f"{UNFORESEEN}: {type(error).__name__}"), meter.cost
        return value, meter.cost


def _failure(error: EvalError) -> Failure:
    if isinstance(error, NoSuchKey):
        if len(error.path) == 3:
            of, domain, ident = error.path
            return Failure(brief(str(error)), FailureKind.MISSING, brief(domain), brief(ident), of)
        return Failure(str(error), FailureKind.MISSING, "", brief(str(error.key)))
    kind = FailureKind.TYPE if isinstance(error, NoSuchOverload) else FailureKind.OTHER
    return Failure(brief(str(error)), kind)


def _as_bool(value: Any) -> bool | Failure:
    while type(value) is Optional and value.has_value:
        value = value.value
    if type(value) is bool:
        return value
    return Failure(f"a selector must give bool, and this gave {type_name(value)}", FailureKind.TYPE)


def _plain(value: Any) -> Any:
    """What Go sees of a value: the inside of an optional, the name of a type."""
    while type(value) is Optional and value.has_value:
        value = value.value
    return value.name if type(value) is TypeValue else value


_TOO_LARGE: Final = Failure(
    f"a derived attribute cannot have more than {MAX_DERIVED:,} elements or {MAX_DERIVED_TEXT:,} characters",
    FailureKind.COST,
)


def _as_attribute(value: Any) -> AttributeValue | Failure | None:
    is_list = isinstance(value, list)
    if is_list and not value:
        return None
    if is_list and len(value) > MAX_DERIVED:
        return _TOO_LARGE
    values = [_plain(item) for item in value] if is_list else [_plain(value)]
    kind = _KINDS.get(type(values[0]))
    if kind is None:
        given = f"a list of {type_name(value[0])}" if is_list else type_name(value)
        return Failure(f"a derived attribute cannot be {given}", FailureKind.TYPE)
    if any(type(item) is not type(values[0]) for item in values):
        return Failure("a derived attribute cannot be a list of different types", FailureKind.TYPE)
    scalars: list[Scalar] = [str(item) for item in values] if kind is Kind.VERSION else values
    if sum(len(item) for item in scalars if isinstance(item, str)) > MAX_DERIVED_TEXT:
        return _TOO_LARGE
    return AttributeValue(kind, tuple(scalars), is_list)


Expectation = Callable[[Type, Scope], str | None]

_kept: Final[Shelf[tuple[Expectation, str, Environment], Program | ExpressionInvalid]] = Shelf(ROOM)


def compile_selector(expression: str, environment: Environment, budget: Budget | None = None) -> Program:
    """A selector: raises ExpressionInvalid unless it can give a bool.

    What has to be compiled is taken from the budget; a spent budget raises BudgetSpent.
    """
    return _compiled(expression, environment, _expect_bool, budget)


def compile_attribute(expression: str, environment: Environment, budget: Budget | None = None) -> Program:
    """A derived attribute: raises ExpressionInvalid unless it can give a scalar or a list of scalars.

    What has to be compiled is taken from the budget; a spent budget raises BudgetSpent.
    """
    return _compiled(expression, environment, _expect_attribute, budget)


def forget_compiled() -> None:
    """Compile everything anew from now on: for measuring."""
    _kept.clear()


def _compiled(
    expression: str, environment: Environment, expect: Expectation, budget: Budget | None
) -> Program:
    key = expect, expression, environment
    known = _kept.get(key)
    if isinstance(known, Program):
        return known
    if known is not None:
        raise ExpressionInvalid(expression, known.reason, known.line, known.column)
    try:
        program = _compile(expression, environment, expect, budget)
    except ExpressionInvalid as error:
        kept = ExpressionInvalid(expression, error.reason, error.line, error.column)
        _kept.put(key, kept, LEAST_WEIGHT + len(expression) // 500)
        raise
    _kept.put(key, program, max(LEAST_WEIGHT, program.size))
    return program


def shown_cost(cost: int) -> str:
    """A cost as a sentence says it."""
    return "more than can be told" if cost > MOST_TOLD else f"{cost:,}"


def compile_metered(expression: str, environment: Environment, *, derived: bool) -> Program:
    """The same as the other two, but every evaluation is charged for, however cheap it must be."""
    return _compile(
        expression, environment, _expect_attribute if derived else _expect_bool, always_metered=True
    )


def _compile(
    expression: str,
    environment: Environment,
    expect: Expectation,
    budget: Budget | None = None,
    *,
    always_metered: bool = False,
) -> Program:
    names, effort = scope(environment), Effort(budget)
    try:
        root = parse(expression, effort)
        kind = check(expression, root, names, effort)
        validate(expression, root, effort)
        problem = expect(kind, names)
        if problem is not None:
            raise fault(expression, problem, root.at)
        estimated = estimate(root, effort, parts=environment.own)
        if environment.own and estimated > LIMIT:
            raise fault(expression, TOO_COSTLY.format(shown_cost(estimated)), root.at)
        effort.spend(root.size)
        planner = Planner(expression, names, effort, metered=always_metered or can_be_expensive(root))
        run = planner.plan(root).run
        return Program(expression, reads(root), run, planner.slots.count, root.size, estimated)
    except TooLarge as error:
        raise ExpressionInvalid(expression, str(error)) from error
    except RecursionError as error:
        raise ExpressionInvalid(expression, "it is nested too deeply") from error


def _expect_bool(kind: Type, names: Scope) -> str | None:
    if kind in (BOOL, names.attribute):
        return None
    return f"must evaluate to bool or the unknown type, not {kind}"


def _expect_attribute(kind: Type, names: Scope) -> str | None:
    if _is_scalar(kind) or (names.lists and kind.kind == "list" and _is_scalar(kind.params[0])):
        return None
    lists = " or a list of these" if names.lists else ""
    return f"must evaluate to a string, an integer, a bool or a version{lists}, not {kind}"


def _is_scalar(kind: Type) -> bool:
    return kind in _SCALARS or kind.is_dyn
