"""Expressions compiled and evaluated."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import celpy
import celpy.celtypes as ct

from dovetail.core.budget import Budget
from dovetail.core.cel.verdicts import Environment, Failure, FailureKind
from dovetail.core.devices import DeviceView
from dovetail.core.values import AttributeValue, Kind, Unusable
from dovetail.errors import ExpressionInvalid

MAX_BYTES = 10_240


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A compiled expression: pure, and safe to use from several threads."""

    expression: str
    reads: frozenset[str] | None
    runner: Any

    def matches(self, device: DeviceView, budget: Budget | None = None) -> bool | Failure:
        """Whether a selector takes the device. A spent budget raises BudgetSpent."""
        value = self._evaluate(device)
        if isinstance(value, Failure):
            return value
        if isinstance(value, (bool, ct.BoolType)):
            return bool(value)
        return Failure(f"expression gives {type(value).__name__}, not bool", FailureKind.TYPE)

    def derive(self, device: DeviceView, budget: Budget | None = None) -> AttributeValue | None | Failure:
        """The attribute that the device gets; None for an empty list. A spent budget raises BudgetSpent."""
        value = self._evaluate(device)
        if isinstance(value, Failure):
            return value
        if isinstance(value, list):
            if not value:
                return None
            return AttributeValue(_kind(value[0]), tuple(_plain(v) for v in value), True)
        if isinstance(value, (bool, int, str)):
            return AttributeValue(_kind(value), (_plain(value),))
        return Failure(f"expression gives {type(value).__name__}, not a scalar", FailureKind.TYPE)

    def _evaluate(self, device: DeviceView) -> Any:
        attributes: Any = ct.MapType()
        for name, value in device.attributes.items():
            if isinstance(value, Unusable):
                return Failure(f"attribute {name}: unsupported attribute value", FailureKind.UNUSABLE)
            domain, _, ident = name.partition("/")
            attributes.setdefault(ct.StringType(domain), ct.MapType())[ct.StringType(ident)] = (
                celpy.json_to_cel(value.plain)
            )
        try:
            seen = celpy.json_to_cel(
                {"driver": device.key.driver, "name": device.key.device, "pool": device.key.pool}
            )
            seen[ct.StringType("attributes")] = attributes
            return self.runner.evaluate({"device": seen})
        except celpy.CELEvalError as error:
            return Failure(str(error))


def _kind(value: object) -> Kind:
    if isinstance(value, (bool, ct.BoolType)):
        return Kind.BOOL
    return Kind.INT if isinstance(value, int) else Kind.STRING


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, ct.BoolType)):
        return bool(value)
    return int(value) if isinstance(value, int) else str(value)


@lru_cache(maxsize=1024)
def compile_selector(expression: str, environment: Environment) -> Program:
    """A selector: raises ExpressionInvalid unless it can give a bool."""
    return _compile(expression)


@lru_cache(maxsize=1024)
def compile_attribute(expression: str, environment: Environment) -> Program:
    """A derived attribute: raises ExpressionInvalid unless it can give a scalar or a list of scalars."""
    return _compile(expression)


def _compile(expression: str) -> Program:
    env = celpy.Environment()
    try:
        runner = env.program(env.compile(expression))
    except celpy.CELParseError as error:
        raise ExpressionInvalid(expression, str(error), error.line or 0, error.column or 0) from error
    return Program(expression, None, runner)
