"""A claim whose own expressions cost too much is told so, and costs nobody else anything."""

from typing import Any

import pytest

from dovetail.core.attributes import Mappings
from dovetail.core.budget import Budget
from dovetail.core.cel.engine import forget_compiled
from dovetail.core.decisions import Cut, Decision
from dovetail.core.features import Features
from dovetail.core.planner import PlanSettings, plan_pod
from dovetail.core.reasons import Reason
from dovetail.core.sources import Expressions
from tests.cel.test_charges import BOMBS
from tests.cel.test_size import TOWERS
from tests.planner.worlds import claim, decide, devices_spec, hardware, named, pod, pod_in, world_of

COSTLY = "lists.range(10000).map(x, x + 1).size()"


def reason(decision: Decision) -> Reason | None:
    """Why the pod waits."""
    return getattr(decision, "reason", None)


def decision_on(*expressions: str, budget: Budget | None = None) -> Decision:
    """What is decided about a pod whose claim derives an attribute by each of the expressions."""
    rules = [{"name": f"derived/a{index}", "expression": text} for index, text in enumerate(expressions)]
    parameters = {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "ClaimParameters",
        "derivedAttributes": rules,
    }
    config: list[dict[str, Any]] = [{"opaque": {"driver": "dovetail.dev", "parameters": parameters}}]
    spec = devices_spec(match="derived/a0", config=config)
    world = world_of(*hardware("n1"), claim(spec=spec), pod(claims=[named("claim")]))
    if budget is None:
        return decide(world)
    return plan_pod(world, pod_in(world), settings=PlanSettings(), budget=budget)


@pytest.mark.parametrize("name", ["optMap", "optFlatMap", "types of maps", "brackets"])
def test_a_claim_with_a_tower_is_refused_with_the_reason(name: str) -> None:
    """It names the claim's attribute, and says that the expression is too large or too deep."""
    decision = decision_on(TOWERS[name])
    assert reason(decision) is Reason.INVALID_CLAIM
    assert "derived/a0" in str(decision)
    assert "too large" in str(decision) or "nested" in str(decision)


@pytest.mark.parametrize("name", ["flatten", "equality", "membership", "format"])
def test_a_claim_with_a_bomb_is_refused_with_the_reason(name: str) -> None:
    """Before it runs or while it does: it costs too much."""
    decision = decision_on(BOMBS[name])
    assert reason(decision) is Reason.INVALID_CLAIM
    assert "cost" in str(decision)


def test_the_derived_attributes_of_a_claim_share_one_limit() -> None:
    """Each alone may cost what it does; all together are too much, as in Kubernetes."""
    assert reason(decision_on(*["1"] * 32)) is not Reason.INVALID_CLAIM
    decision = decision_on(*[f"{COSTLY} + {number}" for number in range(32)])
    assert reason(decision) is Reason.INVALID_CLAIM
    assert "at worst together" in str(decision)
    assert "1,000,000" in str(decision)


def test_a_budget_that_is_spent_while_a_claim_is_compiled_cuts_the_decision() -> None:
    """It is tried again later, and told as what it is."""
    forget_compiled()
    decision = decision_on("[" + ", ".join(["1"] * 3000) + "].size()", budget=Budget(steps=2000))
    assert isinstance(decision, Cut)


def test_a_large_expression_is_compiled_once_in_a_decision() -> None:
    """It is not kept for others, and yet not compiled anew for every device."""
    expressions = Expressions(Features(), Mappings.none(), Budget.unlimited())
    large = "[" + ", ".join(["1"] * 3000) + "].size() == 1"
    program = expressions.selector(large)
    assert expressions.selector(large) is program
    assert Expressions(Features(), Mappings.none()).selector(large) is not program
