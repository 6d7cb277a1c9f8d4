"""CEL expressions as the API server judges them before it stores them."""

from dataclasses import dataclass
from typing import Final

from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.cel import Environment, Program, compile_attribute, compile_selector
from dovetail.core.features import Features
from dovetail.core.validation.faults import Fault, Faults, size, too_long
from dovetail.errors import ExpressionInvalid

LONGEST: Final = 10 * 1024
MOST_STEPS: Final = 10_000_000
"""So much may be done to compile one expression: far more than any that is taken needs."""

MOST_COST: Final = 1_000_000
"""So much may an expression cost at worst, and all derived attributes of a claim together."""


@dataclass(frozen=True, slots=True)
class Rules:
    """By which rules an object is judged."""

    features: Features

    @property
    def environment(self) -> Environment:
        """What expressions can refer to."""
        return Environment(
            consumable_capacity=self.features.consumable_capacity,
            list_type_attributes=self.features.list_type_attributes,
        )


def expression(text: str, at: str, rules: Rules, *, derived: bool = False) -> Faults:
    """A selector, or the expression of a derived attribute."""
    if size(text) > LONGEST:
        yield too_long(at, LONGEST)
        return
    try:
        cost = _compiled(text, rules, derived=derived).estimate
    except ExpressionInvalid as error:
        yield Fault(at, str(error))
    except BudgetSpent:
        yield Fault(at, "it is too complex to be compiled")
    else:
        if cost > MOST_COST:
            yield Fault(at, f"it is too complex: it may cost {cost:,}, and {MOST_COST:,} is the most")


def derived_cost(text: str, rules: Rules) -> int:
    """What the expression of a derived attribute may cost at worst; nothing, where it does not compile."""
    try:
        return _compiled(text, rules, derived=True).estimate if size(text) <= LONGEST else 0
    except (ExpressionInvalid, BudgetSpent):
        return 0


def _compiled(text: str, rules: Rules, *, derived: bool) -> Program:
    compiler = compile_attribute if derived else compile_selector
    return compiler(text, rules.environment, Budget(MOST_STEPS))
