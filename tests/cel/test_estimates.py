"""What an expression may cost at worst is estimated as Kubernetes does, and limited for our own as well."""

import json
from pathlib import Path

import pytest

from dovetail.core.cel import COST_LIMIT, compile_attribute, compile_selector
from dovetail.core.cel.estimates import LARGEST, Range, exactly
from dovetail.errors import ExpressionInvalid
from tests.cel.devices import LISTS, OWN

ESTIMATES = json.loads((Path(__file__).parents[1] / "data" / "cel" / "estimates.json").read_text())
"""Expressions with the estimate of cel-go, in the environment of kube-scheduler."""

COSTLY = 'lists.range(100000).exists(x, device.driver.matches("' + "a" * 40 + '"))'


@pytest.mark.parametrize("expression", ESTIMATES)
def test_an_estimate_is_that_of_cel_go(expression: str) -> None:
    """Sizes by the limits of the API, costs by function, sums and products without overflow."""
    assert compile_attribute(expression, LISTS).estimate == ESTIMATES[expression]


@pytest.mark.parametrize("compiler", [compile_selector, compile_attribute])
def test_an_expression_of_ours_that_may_cost_too_much_does_not_compile(compiler: object) -> None:
    """The API server never sees it, so it is refused here, with both numbers."""
    assert callable(compiler)
    with pytest.raises(
        ExpressionInvalid, match=r"may cost 7,\d{3},\d{3} at worst, and 1,000,000 is the limit"
    ):
        compiler(COSTLY, OWN)
    assert compiler(COSTLY, LISTS).estimate > COST_LIMIT


def test_an_estimate_without_end_is_told_in_words() -> None:
    """Twenty digits help nobody."""
    with pytest.raises(ExpressionInvalid, match="may cost more than can be told at worst"):
        compile_attribute("lists.range(device.pool.size()).map(x, lists.range(x)).size()", OWN)


@pytest.mark.parametrize("name", ["name", "pool", "driver"])
def test_names_are_as_long_as_the_api_lets_them_be(name: str) -> None:
    """What only our own expressions see has a size, too."""
    assert compile_attribute(f'device.{name}.matches("a+")', OWN).estimate <= 60


@pytest.mark.parametrize(
    "expression",
    [
        'device.name.split("-").join(":")',
        'device.name.split("-").slice(0, 1).reverse().join(":")',
        'device.name.findAll("[a-z]+").map(x, x + "-").join(":")',
        'cel.bind(parts, device.name.split("-"), parts.join(":") + parts.join(""))',
    ],
)
def test_parts_of_a_text_may_be_joined_by_expressions_of_ours(expression: str) -> None:
    """cel-go does not know how long they are, and so Kubernetes takes no such selector."""
    assert compile_attribute(expression, OWN).estimate < COST_LIMIT
    theirs = compile_attribute(expression.replace("device.name", "device.driver"), LISTS)
    assert theirs.estimate > COST_LIMIT


def test_ranges_do_not_overflow() -> None:
    """The largest number stays the largest."""
    most = Range(1, LARGEST)
    assert (most + most).most == (most * most).most == most.scaled(2.5).most == LARGEST
    assert exactly(11).scaled(0.1) == exactly(2)
    assert exactly(3) | exactly(5) == Range(3, 5)
