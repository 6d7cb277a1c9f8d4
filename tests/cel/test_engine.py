"""Compiling, evaluating and failing: what callers may count on."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.cel import Environment, Failure, FailureKind, compile_attribute, compile_selector, prepared
from dovetail.core.cel.engine import compile_metered
from dovetail.core.cel.meter import LIMIT
from dovetail.core.devices import DeviceView
from dovetail.core.values import AttributeValue, DeviceKey, Kind, Unusable
from dovetail.errors import ExpressionInvalid
from tests.cel.devices import LISTS, OWN, derive, device, match


def test_an_error_tells_line_column_and_text() -> None:
    """Whoever wrote the expression finds the place."""
    with pytest.raises(ExpressionInvalid) as raised:
        compile_selector('device.driver == "d" &&\n  device.attribute["x"].y', LISTS)
    assert (raised.value.line, raised.value.column) == (2, 10)
    assert "undefined field 'attribute'" in raised.value.reason
    assert 'attribute["x"].y' in raised.value.reason


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("device.driver ==", "ends too early"),
        ("device.driver = 1", "'=' does not belong here"),
        ("foo == 1", "undeclared reference to 'foo'"),
        ("device.driver + 1 == 2", "no matching overload"),
        ("device.driver", "must evaluate to bool"),
        ('int("x") == 1', "no int"),
        ('device.driver.matches("[")', "regexp"),
        ('quantity("1Ki") == quantity("1Ki") && "%d".format(["a"]) == ""', "%d does not take string"),
        (f"'{'a' * 10_240}' == device.driver", "longer than 10240 bytes"),
        ("(" * 251 + "true" + ")" * 251, "nested"),
        ("1" * 5000 + " == 1", "invalid int literal"),
    ],
)
def test_a_broken_selector_does_not_compile(expression: str, reason: str) -> None:
    """Syntax, names, types, constants and size are checked before anything runs."""
    with pytest.raises(ExpressionInvalid, match=reason.replace("(", r"\(")):
        compile_selector(expression, LISTS)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [("dyn(1.5)", "double"), ("dyn(null)", "null_type"), ('dyn({"a": 1})', "map"), ("dyn([1.5])", "double")],
)
def test_a_derived_attribute_of_another_type_fails_and_names_the_type(expression: str, kind: str) -> None:
    """Where only the run shows the type, the device's error tells it (R-C6)."""
    failure = derive(expression)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.TYPE
    assert kind in failure.message


def test_a_selector_that_gives_no_bool_fails() -> None:
    """An attribute of another type is no verdict."""
    failure = match('device.attributes["gpu.example.com"].model', device(model="H100"))
    assert isinstance(failure, Failure)
    assert "string" in failure.message


def test_a_missing_attribute_fails_with_its_name() -> None:
    """The failure carries domain and id, for a hint."""
    failure = match('device.attributes["gpu.example.com"].numa == 0')
    assert failure == Failure(
        "no such key: numa", FailureKind.MISSING, "gpu.example.com", "numa", "attributes"
    )


def test_a_missing_capacity_fails_with_its_name() -> None:
    """Likewise for capacities, through a variable too."""
    failure = match('cel.bind(c, device.capacity["gpu.example.com"], c.cores.isGreaterThan(quantity("1")))')
    assert isinstance(failure, Failure)
    assert (failure.of, failure.domain, failure.id) == ("capacity", "gpu.example.com", "cores")


def test_a_device_with_an_unusable_attribute_fails_every_expression() -> None:
    """An attribute without a usable value ends the evaluation, whatever it reads (allocation-rules 2.10)."""
    broken = DeviceView(DeviceKey("d", "p", "n"), {"d/a": Unusable("no known type")})
    failure = match("true", broken)
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.UNUSABLE
    assert "unsupported attribute value" in failure.message


def test_a_version_that_is_none_fails_every_expression() -> None:
    """So does a version that cannot be read."""
    broken = DeviceView(DeviceKey("d", "p", "n"), {"d/v": AttributeValue(Kind.VERSION, ("1.0",))})
    assert isinstance(match("true", broken), Failure)


def test_an_empty_list_derives_nothing() -> None:
    """The device then lacks the attribute."""
    assert derive('device.attributes["no.example.com"].?nothing.orValue([])') is None


def test_name_and_pool_exist_in_our_own_mappings_only() -> None:
    """A selector that reads them does not compile, and cannot get at them by dyn."""
    assert derive('device.name.replace("gpu-", "") + device.pool', device(name="gpu-7"), OWN) == "7pool"
    with pytest.raises(ExpressionInvalid):
        compile_attribute("device.name", LISTS)
    assert isinstance(derive("dyn(device).name"), Failure)


def test_gates_decide_what_exists_unless_the_expression_is_stored() -> None:
    """`allowMultipleAllocations` and `includes` need their gates."""
    plain = Environment(consumable_capacity=False)
    for expression in ("device.allowMultipleAllocations", "[1].includes(1)"):
        with pytest.raises(ExpressionInvalid):
            compile_selector(expression, plain)
        compile_selector(expression, Environment(consumable_capacity=False, stored=True))


def test_the_cost_limit_is_a_failure_at_the_same_place_everywhere() -> None:
    """One unit more than a million is too much."""
    inside = derive("lists.range(110).map(x, lists.range(9000).size()).size()")
    beyond = derive("lists.range(111).map(x, lists.range(9000).size()).size()")
    assert inside == 110
    assert isinstance(beyond, Failure)
    assert beyond.kind is FailureKind.COST


def test_nothing_absorbs_the_cost_limit() -> None:
    """`|| true` does not help."""
    failure = match("lists.range(2000000).size() == 0 || true")
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.COST


def test_a_spent_budget_cuts_the_evaluation() -> None:
    """Time that runs out is no run-time error (R-C8)."""
    program = compile_selector("lists.range(50000).all(x, x >= 0)", LISTS)
    with pytest.raises(BudgetSpent):
        program.matches(device(), Budget(steps=1000))
    assert program.matches(device(), Budget.unlimited()) is True


def test_time_is_asked_for_during_a_long_evaluation() -> None:
    """The caller's clock ends it long before the steps do."""
    program = compile_selector("lists.range(50000).all(x, x >= 0)", LISTS)
    budget = Budget(steps=1 << 40, is_over=lambda: True)
    with pytest.raises(BudgetSpent):
        program.matches(device(), budget)
    assert budget.spent < 1000


def test_a_comparison_that_no_cost_tells_costs_too_much() -> None:
    """Lists within lists can hold more than the cost says: comparing them is a failure (R-C8)."""
    ten, expression = ",".join(["x0"] * 10), "dyn(x7) == dyn(x7)"
    for depth in range(7, 0, -1):
        inner = ten.replace("x0", f"x{depth - 1}")
        expression = f"cel.bind(x{depth}, [{inner}], {expression})"
    failure = match(f"cel.bind(x0, [1], {expression})")
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.COST


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000).map(x, lists.range(1000).map(y, x * y).size()).size() == 0",
        'cel.bind(a, "'
        + "x" * 1000
        + '", cel.bind(b, a + a + a + a + a + a + a + a + a + a, cel.bind(c, b.replace("x", b),'
        ' c.replace("x", c).size() > 0)))',
        'lists.range(999).map(x, "' + "a" * 900 + '".matches("(a*)*b")).size() == 0',
        "lists.range(9223372036854775807).size() == 0",
        '"%.99999999f".format([1.0]) == ""',
        "[" * 120 + "]" * 120 + " == []",
        "!" * 10_000 + "true",
        " || ".join(["false"] * 1_000),
        "device.driver" + ".size()" * 100 + " == 1",
    ],
)
@pytest.mark.timeout(60)
def test_a_hostile_expression_is_refused_or_ends_soon(expression: str) -> None:
    """Huge, deep, quadratic or exponential: an answer, a failure or a refusal, and never more (R-C8)."""
    try:
        verdict = match(expression)
    except ExpressionInvalid:
        return
    assert isinstance(verdict, bool | Failure)


def test_metering_changes_no_answer() -> None:
    """Expressions that are too cheap to count give the same when counted, below the limit."""
    of = device(model="H100", numa=1)
    read = 'device.attributes["gpu.example.com"]'
    expression = f'{read}.model == "H100" && {read}.numa == 1'
    value, cost = compile_metered(expression, LISTS, derived=False).evaluate_with_cost(prepared(of))
    assert value is match(expression, of) is True
    assert 0 < cost < LIMIT


def test_threads_share_a_program() -> None:
    """Eight threads that evaluate the same programs on different devices get no wrong answer."""
    programs = [
        compile_attribute(
            'lists.range(50).map(x, x + device.attributes["gpu.example.com"].numa).sum()', LISTS
        ),
        compile_attribute('cel.bind(n, device.attributes["gpu.example.com"].numa, n + n)', LISTS),
    ]
    start = threading.Barrier(8)

    def work(offset: int) -> list[bool]:
        start.wait()
        found = []
        for numa in range(offset, offset + 100):
            of = device(numa=numa)
            wanted = (sum(range(50)) + 50 * numa, 2 * numa)
            for program, right in zip(programs, wanted, strict=True):
                found.append(program.derive(of) == AttributeValue(Kind.INT, (right,)))
        return found

    with ThreadPoolExecutor(8) as pool:
        assert all(all(found) for found in pool.map(work, range(0, 800, 100)))
