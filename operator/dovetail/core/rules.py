"""The rules of a mapping, compiled and applied to devices (design, section 3)."""

import enum
from dataclasses import dataclass, field
from typing import Literal, assert_never

from dovetail.api.mappings import DerivedAttribute, Rule, UnknownValue
from dovetail.core.budget import Budget
from dovetail.core.cel import (
    Environment,
    Failure,
    FailureKind,
    Memory,
    Program,
    compile_attribute,
    compile_selector,
)
from dovetail.core.devices import DeviceView
from dovetail.core.values import AttributeValue, Kind, Scalar
from dovetail.errors import ExpressionInvalid

ANY_DRIVER = "*"
"""The driver of a rule that stands for every driver without a rule of its own that applies."""

SHIPPED = "shipped"
"""The origin of a mapping that is built in."""

ENVIRONMENT = Environment(consumable_capacity=True, list_type_attributes=True, own=True)
"""What expressions of mappings may use: all that a DRA selector may, and the device's name and pool."""


class MissingCause(enum.StrEnum):
    """Why a device lacks a derived attribute."""

    NO_RULE = "NoRule"
    """No rule of the mapping applies to the device."""
    NOT_PUBLISHED = "NotPublished"
    """A rule applies, and the driver publishes nothing that it could read."""
    UNKNOWN = "Unknown"
    """The driver publishes a value that stands for "not known"."""
    FAILED = "Failed"
    """The rule fails on the device, or the mapping does not compile."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A device without the attribute: it never counts as equal to another one, missing or not (R-A8).

    `detail` says why in words that need no other words around them.
    """

    cause: MissingCause
    detail: str


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """An expression of a mapping that does not compile. `rule` counts from 0."""

    rule: int
    driver: str
    field: Literal["when", "expression"]
    error: ExpressionInvalid

    @property
    def message(self) -> str:
        """Which expression, and what is wrong with it."""
        return f"rule {self.rule + 1} ({self.driver}), {self.field}: {self.error}"


@dataclass(frozen=True, slots=True, eq=False)
class CompiledRule:
    """One rule, ready to be applied; `number` counts from 1, as messages do."""

    number: int
    driver: str
    when: Program | None
    expression: Program

    def applies(self, device: DeviceView, memory: Memory, budget: Budget | None) -> bool | Failure:
        """Whether the rule is the one for this device, given that its driver fits."""
        return True if self.when is None else memory.matches(self.when, device, budget)


@dataclass(frozen=True, slots=True, eq=False)
class CompiledMapping:
    """One attribute and how each device gets it.

    A mapping with problems exists all the same: it decides, and no device gets a value (design, section 3).
    `origin` is the name of the DerivedAttribute object, or `shipped`.
    """

    attribute: str
    on_error: Literal["Exclude", "Fail"]
    origin: str
    problems: tuple[RuleProblem, ...]
    unknown: tuple[UnknownValue, ...] = ()
    rules: tuple[CompiledRule, ...] = ()
    _rules_by_driver: dict[str, tuple[CompiledRule, ...]] = field(default_factory=dict, repr=False)

    @property
    def ready(self) -> bool:
        """Whether every expression compiles."""
        return not self.problems

    @property
    def drivers(self) -> frozenset[str]:
        """The drivers that rules name; `*` where a rule stands for the others."""
        return frozenset(rule.driver for rule in self.rules)

    def derive(
        self, device: DeviceView, memory: Memory, budget: Budget | None = None
    ) -> AttributeValue | Missing:
        """The value of the device, or why it has none. A spent budget raises `BudgetSpent`.

        The first rule whose driver and `when` apply decides; no later rule is asked.
        """
        rule = self.rule_for(device, memory, budget)
        return rule if isinstance(rule, Missing) else self._value(rule, device, memory, budget)

    def rule_for(
        self, device: DeviceView, memory: Memory, budget: Budget | None = None
    ) -> CompiledRule | Missing:
        """The rule that decides for the device, or why none does. A spent budget raises `BudgetSpent`."""
        if self.problems:
            return Missing(MissingCause.FAILED, self.problems[0].message)
        for rule in self._rules_for(device.key.driver):
            match rule.applies(device, memory, budget):
                case Failure() as failure:
                    return _failed(rule, "when", failure)
                case True:
                    return rule
                case _:
                    continue
        return Missing(MissingCause.NO_RULE, f"no rule applies to driver {device.key.driver}")

    def _rules_for(self, driver: str) -> tuple[CompiledRule, ...]:
        known = self._rules_by_driver.get(driver)
        if known is None:
            known = tuple(rule for rule in self.rules if rule.driver in (driver, ANY_DRIVER))
            self._rules_by_driver[driver] = known
        return known

    def _value(
        self, rule: CompiledRule, device: DeviceView, memory: Memory, budget: Budget | None
    ) -> AttributeValue | Missing:
        match memory.derive(rule.expression, device, budget):
            case Failure() as failure:
                return _failed(rule, "expression", failure)
            case None:
                return Missing(MissingCause.NOT_PUBLISHED, _not_published(rule))
            case AttributeValue() as value:
                return _known(value, self.unknown)
            case impossible:
                assert_never(impossible)


def compile_mapping(mapping: DerivedAttribute, origin: str | None = None) -> CompiledMapping:
    """Compile all rules. Never raises for a broken expression: the mapping then has `problems`."""
    rules: list[CompiledRule] = []
    problems: list[RuleProblem] = []
    for index, rule in enumerate(mapping.spec.rules):
        compiled = _compile_rule(index, rule)
        if isinstance(compiled, CompiledRule):
            rules.append(compiled)
        else:
            problems.extend(compiled)
    return CompiledMapping(
        attribute=mapping.spec.attribute,
        on_error=mapping.spec.on_error,
        origin=origin or mapping.metadata.name,
        problems=tuple(problems),
        unknown=mapping.spec.unknown,
        rules=tuple(rules),
    )


def _compile_rule(index: int, rule: Rule) -> CompiledRule | tuple[RuleProblem, ...]:
    problems: list[RuleProblem] = []
    when = expression = None
    if rule.when is not None:
        try:
            when = compile_selector(rule.when, ENVIRONMENT)
        except ExpressionInvalid as error:
            problems.append(RuleProblem(index, rule.driver, "when", error))
    try:
        expression = compile_attribute(rule.expression, ENVIRONMENT)
    except ExpressionInvalid as error:
        problems.append(RuleProblem(index, rule.driver, "expression", error))
    if problems or expression is None:
        return tuple(problems)
    return CompiledRule(index + 1, rule.driver, when, expression)


def _failed(rule: CompiledRule, where: Literal["when", "expression"], failure: Failure) -> Missing:
    reason = failure.message
    if failure.kind is FailureKind.MISSING and failure.domain:
        kind = "attribute" if failure.of == "attributes" else "capacity"
        reason = f"the device has no {kind} {failure.domain}/{failure.id}"
    return Missing(MissingCause.FAILED, f"rule {rule.number} ({rule.driver}), {where}: {reason}")


def _not_published(rule: CompiledRule) -> str:
    # What else an expression reads (the name, a capacity) has a colon, and is always published.
    names = sorted(name for name in rule.expression.reads or () if ":" not in name)
    if not names:
        return f"rule {rule.number} ({rule.driver}) gives no value"
    return f"{names[0]} is not published" if len(names) == 1 else f"none of {', '.join(names)} is published"


def _known(value: AttributeValue, unknown: tuple[UnknownValue, ...]) -> AttributeValue | Missing:
    """The value without what stands for "not known": from a list only such elements go (R-A8)."""
    known = tuple(scalar for scalar in value.values if not _is_unknown(scalar, value.kind, unknown))
    if len(known) == len(value.values):
        return value
    if known:
        return AttributeValue(value.kind, known, value.is_list)
    return Missing(MissingCause.UNKNOWN, f"{value.plain!r} stands for unknown")


def _is_unknown(scalar: Scalar, kind: Kind, unknown: tuple[UnknownValue, ...]) -> bool:
    """Types count (R-A7): -1 is not "-1", and 1 is not true; versions are written as strings."""
    match kind:
        case Kind.BOOL:
            same: type = bool
        case Kind.INT:
            same = int
        case Kind.STRING | Kind.VERSION:
            same = str
    return any(type(candidate) is same and candidate == scalar for candidate in unknown)
