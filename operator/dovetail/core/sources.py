"""Where the value of a constraint's attribute comes from (design, section 3).

In this order: a native derived attribute of the request, a derived attribute of the claim's parameters,
a mapping, what the device publishes.
The first source that exists decides for every device.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from dovetail.api.claims import NativeDerivedAttribute
from dovetail.api.mappings import ClaimParameters
from dovetail.core.attributes import CompiledMapping, Mappings, MissingCause
from dovetail.core.budget import Budget
from dovetail.core.cel import (
    COST_LIMIT,
    Environment,
    Failure,
    Memory,
    Program,
    compile_attribute,
    compile_selector,
    shown_cost,
)
from dovetail.core.devices import DeviceView
from dovetail.core.features import Features
from dovetail.core.outcome import RequestInvalid
from dovetail.core.published import OfferedDevice
from dovetail.core.values import AttributeValue, Kind, Scalar, Unusable
from dovetail.errors import ExpressionInvalid

Element = tuple[Kind, Scalar]
"""One value that devices can have in common; values of different types are never equal."""

TOO_COSTLY = (
    f"its derived attributes may cost {{}} at worst together, and {COST_LIMIT:,} is the limit, "
    "as for those of Kubernetes"
)

POOL = "device:pool"
"""How expressions say that they read the name of a device's pool."""


@dataclass(frozen=True, slots=True)
class Value:
    """What a device has of an attribute.

    A `lone` value is a list where lists do not count (allocation-rules 2.10):
    it serves a single device, and equals nothing.
    """

    elements: frozenset[Element]
    given: tuple[Scalar, ...]
    lone: bool = False


@dataclass(frozen=True, slots=True)
class Absent:
    """The device lacks the attribute: no constraint takes it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Broken:
    """The attribute cannot be told, and the claim must not be allocated without it.

    `strict`: not even on other devices, as long as a request could take this one;
    else only where the device is tried, as kube-scheduler does (KEP-6080).
    """

    reason: str
    strict: bool = False


Finding = Value | Absent | Broken


class Source(Protocol):
    """One way to get the values of an attribute.

    Equal sources give equal values.
    """

    @property
    def reads(self) -> frozenset[str] | None:
        """What of a device the value depends on, as `Program.reads` says it."""

    @property
    def strict(self) -> bool:
        """Whether the source can find a device `Broken` in the strict way."""

    def value(self, device: OfferedDevice, pool: str, memory: Memory, budget: Budget) -> Finding:
        """What the device has of the attribute."""


@dataclass(frozen=True, slots=True)
class Published:
    """The attribute as the driver publishes it."""

    attribute: str
    lists: bool
    strict: ClassVar[bool] = False

    @property
    def reads(self) -> frozenset[str]:
        """The attribute."""
        return frozenset((self.attribute,))

    def value(self, device: OfferedDevice, pool: str, memory: Memory, budget: Budget) -> Finding:
        """The published value."""
        found = device.view.attributes.get(self.attribute)
        if found is None:
            return Absent("does not publish it")
        if isinstance(found, Unusable):
            return Absent(found.reason) if self.lists else Value(frozenset(), (), lone=True)
        return _read(found, lists=self.lists)


@dataclass(frozen=True, slots=True)
class Computed:
    """An expression of the claim itself; `lists` says whether lists count, `strict` what `Broken` says."""

    attribute: str
    program: Program | str
    lists: bool
    strict: bool = False

    @property
    def reads(self) -> frozenset[str] | None:
        """What the expression reads."""
        return self.program.reads if isinstance(self.program, Program) else frozenset()

    def value(self, device: OfferedDevice, pool: str, memory: Memory, budget: Budget) -> Finding:
        """What the expression gives; an error ends the attempt, as KEP-6080 has it."""
        if isinstance(self.program, str):
            return Broken(self.program)
        found = memory.derive(self.program, _view(self, device, pool), budget)
        if isinstance(found, Failure):
            return Broken(found.message, self.strict)
        if found is None:
            return Absent("an empty list") if self.lists else Value(frozenset(), (), lone=True)
        return _read(found, lists=self.lists)


@dataclass(frozen=True, slots=True)
class Mapped:
    """A mapping."""

    mapping: CompiledMapping

    @property
    def strict(self) -> bool:
        """Whether a failure on one device ends the attempt, whichever device would be chosen."""
        return self.mapping.on_error == "Fail"

    @property
    def reads(self) -> frozenset[str] | None:
        """What the rules read together, and the attributes that say whether a rule could read anything."""
        programs = [p for rule in self.mapping.rules for p in (rule.when, rule.expression) if p is not None]
        read: frozenset[str] = frozenset()
        for program in programs:
            if program.reads is None:
                return None
            read |= program.reads
        return read

    def value(self, device: OfferedDevice, pool: str, memory: Memory, budget: Budget) -> Finding:
        """What the mapping gives; lists count whatever the gates say."""
        found = self.mapping.derive(_view(self, device, pool), memory, budget)
        if isinstance(found, AttributeValue):
            return _read(found, lists=True)
        if found.cause is MissingCause.FAILED and self.strict:
            return Broken(found.detail, strict=True)
        return Absent(found.detail)


@dataclass(frozen=True, slots=True)
class NativeRules:
    """The derived attributes of a request as KEP-6080 has them."""

    sources: tuple[Computed, ...]

    def find(self, attribute: str) -> Computed | None:
        """The source of an attribute, where there is one."""
        return next((source for source in self.sources if source.attribute == attribute), None)


@dataclass(frozen=True, slots=True)
class _ScopedRule:
    source: Computed
    entry: tuple[str, ...]
    requests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClaimRules:
    """The derived attributes that a claim's parameters bring along."""

    rules: tuple[_ScopedRule, ...]

    def find(self, attribute: str, name: str, parent: str) -> Computed | None:
        """The source of an attribute for a request, or an alternative of `parent`, where there is one."""
        for rule in self.rules:
            if (
                rule.source.attribute == attribute
                and _covers(rule.entry, name, parent)
                and _covers(rule.requests, name, parent)
            ):
                return rule.source
        return None


class Expressions:
    """Compiles the expressions of claims and classes for a set of features, and knows the mappings.

    What has to be compiled is taken from the budget; every method may raise `BudgetSpent`.
    """

    def __init__(self, features: Features, mappings: Mappings, budget: Budget | None = None) -> None:
        self._budget = budget
        self._known: dict[tuple[str, Environment, bool], Program | str] = {}
        self._lists = features.list_type_attributes
        self._mappings = mappings
        self._stored = Environment(features.consumable_capacity, features.list_type_attributes, stored=True)
        self._own = Environment(consumable_capacity=True, list_type_attributes=True, own=True)

    def selector(self, expression: str) -> Program | str:
        """A compiled selector, or what is wrong with it."""
        return self._program(expression, self._stored, derived=False)

    def native(self, given: Iterable[NativeDerivedAttribute]) -> NativeRules:
        """The native derived attributes of a request; one that does not compile fails where it is used."""
        return NativeRules(
            tuple(
                Computed(rule.name, self._program(rule.expression, self._stored, derived=True), self._lists)
                for rule in given
            )
        )

    def of_claim(
        self, claim: str, parameters: Iterable[tuple[tuple[str, ...], ClaimParameters]]
    ) -> ClaimRules:
        """The derived attributes of a claim's parameters. Raises `RequestInvalid`."""
        rules = []
        cost = 0
        for requests, given in parameters:
            for rule in given.derived_attributes:
                program = self._program(rule.expression, self._own, derived=True)
                if isinstance(program, str):
                    raise RequestInvalid(claim, f"derived attribute {rule.name!r}: {program}")
                source = Computed(rule.name, program, lists=True, strict=True)
                cost += program.estimate
                if cost > COST_LIMIT:
                    raise RequestInvalid(claim, TOO_COSTLY.format(shown_cost(cost)))
                rules.append(_ScopedRule(source, requests, rule.requests))
        return ClaimRules(tuple(rules))

    def _program(self, expression: str, environment: Environment, *, derived: bool) -> Program | str:
        """Compiled once for all devices that it is asked about, also where it is too large to be kept."""
        key = expression, environment, derived
        known = self._known.get(key)
        if known is None:
            compiler = compile_attribute if derived else compile_selector
            try:
                known = compiler(expression, environment, self._budget)
            except ExpressionInvalid as error:
                known = str(error)
            self._known[key] = known
        return known

    def is_mapped(self, attribute: str) -> bool:
        """Whether a mapping defines the attribute: claims that constrain it are ours."""
        return self._mappings.find(attribute) is not None

    def source(
        self, attribute: str, native: NativeRules, claim: ClaimRules, name: str, parent: str
    ) -> Source:
        """Where an attribute of a request comes from."""
        own = native.find(attribute) or claim.find(attribute, name, parent)
        if own is not None:
            return own
        mapping = self._mappings.find(attribute)
        return Published(attribute, self._lists) if mapping is None else Mapped(mapping)


def reads_pool(source: Source) -> bool:
    """Whether the name of the pool may matter for the value."""
    return source.reads is None or POOL in source.reads


def _view(source: Source, device: OfferedDevice, pool: str) -> DeviceView:
    return device.view_in(pool) if reads_pool(source) else device.view


def _read(found: AttributeValue, *, lists: bool) -> Value:
    if found.is_list and not lists:
        return Value(frozenset(), found.values, lone=True)
    return Value(frozenset((found.kind, value) for value in found.values), found.values)


def _covers(requests: Sequence[str], name: str, parent: str) -> bool:
    if not requests:
        return True
    return (parent in requests or f"{parent}/{name}" in requests) if parent else name in requests
