"""Size and depth are checked while the tree is built, and whatever is done with it is bounded."""

import re
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.cel import compile_attribute, compile_selector, parser
from dovetail.core.cel.effort import Effort, TooLarge
from dovetail.core.cel.engine import Program, forget_compiled
from dovetail.core.cel.kinds import INT, MAX_SIZE, Type, map_of
from dovetail.core.cel.macros import expand
from dovetail.core.cel.shelf import Shelf
from dovetail.core.cel.syntax import MAX_NODES, Call, Ident, Node, walk
from dovetail.core.cel.unify import Bindings
from dovetail.errors import ExpressionInvalid
from tests.cel.devices import LISTS, OWN, derive, match


def bound(depth: int, value: str, last: str, first: str = "1") -> str:
    """`cel.bind` so many times within each other; `v` in `value` is the variable before."""
    for level in range(depth, 0, -1):
        inner = re.sub(r"\bv\b", f"v{level - 1}", value)
        last = f"cel.bind(v{level}, {inner}, {last})"
    return f"cel.bind(v0, {first}, {last})"


TOWERS = {
    "optMap": "optional.of(1)" + ".optMap(x, x)" * 40 + ".hasValue()",
    "optFlatMap": "optional.of(1)" + ".optFlatMap(x, optional.of(x))" * 40 + ".hasValue()",
    "optMap around a loop": "optional.of([1].all(x, x > 0))" + ".optMap(x, x)" * 40 + ".hasValue()",
    "optMap in a loop": "[1].exists(y, optional.of(y)" + ".optMap(x, x)" * 40 + ".hasValue())",
    "optMap over pairs": "[1].exists(i, y, optional.of(y)" + ".optMap(x, x)" * 40 + ".hasValue())",
    "optMap over selections": "optional.of({'a': 1})"
    + ".optMap(x, x).?a.optMap(y, {'a': y})" * 20
    + " == ''",
    "types of maps": bound(40, "{v: v}", "true"),
    "types of empty maps": bound(40, "{v: v}", "v40 == v40", "{}"),
    "types joined": bound(12, "{v: v}", "[" + ", ".join(["v12"] * 100) + "] == []"),
    "types of optionals": bound(40, "{optional.of(v): [v]}", "v40 == 1"),
    "brackets": "(" * 300 + "true" + ")" * 300,
    "lists": "[" * 300 + "]" * 300 + " == []",
    "calls": "size(" * 300 + "''" + ")" * 300 + " == 0",
    "sums": " + ".join(["1"] * 300) + " == 300",
    "loops": "[1].map(x, " * 126 + "1" + ")" * 126 + " == []",
}


@pytest.mark.parametrize("name", TOWERS)
def test_a_tower_is_refused_at_once_as_too_large(name: str) -> None:
    """Whatever doubles, or is nested too deeply, is refused in hundredths of a second, and says why."""
    match("true")
    assert min(seconds_to_refuse(TOWERS[name]) for _ in range(5)) < 0.05


def seconds_to_refuse(expression: str) -> float:
    """CPU time until the expression is refused, and compiled it is not."""
    forget_compiled()
    started = time.process_time()
    with pytest.raises(ExpressionInvalid, match=r"too large|nested"):
        compile_selector(expression, LISTS)
    return time.process_time() - started


def test_a_refused_tower_takes_little_memory() -> None:
    """All towers together fit into the memory that one process has anyway, and some megabytes more."""
    program = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
        "from tests.cel.test_size import TOWERS, refused, match\n"
        "match('true')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert all(map(refused, TOWERS.values()))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) < 20_000


def refused(expression: str) -> bool:
    """Whether the expression does not compile."""
    try:
        compile_selector(expression, LISTS)
    except ExpressionInvalid:
        return True
    return False


def test_a_target_that_stands_twice_is_one_node() -> None:
    """`optMap` reads its target twice, and makes no copy of it."""
    target = Ident("a")
    tree = expand(Call("optMap", target, [Ident("x"), Ident("x")]))
    assert sum(node is target for node in walk(tree)) == 2


def repeated(times: int, change: Callable[[Any], Any], start: Any) -> Any:
    """The start, changed so many times."""
    for _ in range(times):
        start = change(start)
    return start


def doubled_node(node: Node) -> Node:
    """A call with the node as both arguments."""
    return Call("f", None, [node, node])


def test_a_part_that_would_be_too_large_is_never_made() -> None:
    """The parts are counted as often as they are used."""
    assert repeated(13, doubled_node, Ident("a")).size == (1 << 14) - 1 < MAX_NODES
    with pytest.raises(TooLarge, match="parts"):
        repeated(14, doubled_node, Ident("a"))


def test_the_longest_expression_is_not_too_large() -> None:
    """What the API server takes compiles, as long as no macro repeats its target."""
    calls = "[" + ",".join(["[1].all(x,x>0)"] * 670) + "].size()"
    assert len(calls) > 10_000
    assert derive(calls) == 670


def test_a_short_tower_gives_its_value() -> None:
    """Ten links are no attack."""
    assert derive("optional.of(1)" + ".optMap(x, x + 1)" * 10 + ".value()") == 11


def test_a_shared_target_is_checked_with_the_variables_that_it_sees() -> None:
    """A loop inside the target has its own variables in both places."""
    expression = "[3, 4].map(x, optional.of([x].map(x, x + 1)[0]).optMap(x, x * 2).value())"
    assert derive(expression) == [8, 10]


def doubled_type(kind: Type) -> Type:
    """Maps whose keys and values are of this type."""
    return map_of(kind, kind)


def test_a_type_that_would_be_too_large_is_never_made() -> None:
    """Types double as values do."""
    assert repeated(8, doubled_type, INT).size == 511 < MAX_SIZE
    with pytest.raises(TooLarge, match="type"):
        repeated(9, doubled_type, INT)


def test_comparing_types_takes_steps() -> None:
    """Type variables may stand for each other in chains that no size tells."""
    bindings = Bindings(Effort())
    first, *others = [bindings.fresh() for _ in range(40)]
    for variable, other in pairwise((first, *others)):
        assert bindings.accepts(variable, doubled_type(other))
    with pytest.raises(TooLarge):
        bindings.resolve(first)


def test_binding_a_type_variable_takes_steps() -> None:
    """So does looking whether a variable would stand for a part of itself."""
    bindings = Bindings(Effort(steps=10_000))
    last, *others = [bindings.fresh() for _ in range(40)]
    with pytest.raises(TooLarge, match="steps"):
        all(bindings.accepts(other, doubled_type(before)) for before, other in pairwise((last, *others)))


def test_types_that_do_not_fit_leave_no_trace() -> None:
    """Type variables are as they were before the attempt."""
    bindings = Bindings(Effort())
    variable = bindings.fresh()
    assert not bindings.accept_all([variable, INT], [INT, map_of(INT, INT)])
    assert bindings.resolve(variable) == variable


@pytest.mark.parametrize("expression", ['r"""' + "\r" * 5000, "r'''" + "\r" * 60, 'b"""' + "\\" * 3000])
def test_a_string_that_does_not_end_is_found_at_once(expression: str) -> None:
    """Reading a character in two ways would take 2^n steps for n of them, and could not be interrupted."""
    started = time.process_time()
    with pytest.raises(ExpressionInvalid):
        compile_selector(expression, LISTS)
    assert time.process_time() - started < 1


def test_half_a_character_is_no_text() -> None:
    """JSON can write what UTF-8 cannot."""
    with pytest.raises(ExpressionInvalid, match="half a character"):
        compile_selector("device.driver == '\ud800'", LISTS)


@pytest.mark.parametrize("expression", ["a" * 9000, "device." + "a" * 9000, '"' + "a" * 9000 + '" 1'])
def test_an_error_repeats_only_the_beginning_of_a_long_name(expression: str) -> None:
    """A message ends in conditions and Events."""
    with pytest.raises(ExpressionInvalid) as raised:
        compile_selector(expression, LISTS)
    assert len(str(raised.value)) < 500


def test_an_error_shows_only_the_beginning_of_a_large_type() -> None:
    """Likewise for types."""
    with pytest.raises(ExpressionInvalid, match=r"no matching overload.*…") as raised:
        compile_selector(bound(8, "{v: v}", "v8 + v8 == 1"), LISTS)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("compiler", [compile_selector, compile_attribute])
def test_compiling_is_taken_from_the_budget(compiler: Callable[..., Program]) -> None:
    """A miss costs the decision what it takes; what is kept costs nothing."""
    forget_compiled()
    expression = "[" + ", ".join(["true"] * 500) + "][0]"
    with pytest.raises(BudgetSpent):
        compiler(expression, OWN, Budget(steps=1000))
    budget = Budget.unlimited()
    compiler(expression, OWN, budget)
    assert budget.spent > 2000
    spent = budget.spent
    compiler(expression, OWN, budget)
    assert budget.spent == spent


@pytest.mark.parametrize("step", range(0, 3000, 250))
def test_a_spent_budget_ends_compiling_wherever_it_is(step: int) -> None:
    """Every pass asks for the time."""
    forget_compiled()
    expression = "[" + ", ".join(["true"] * 500) + "][0]"
    with pytest.raises(BudgetSpent):
        compile_selector(expression, OWN, Budget(steps=step))


def test_parsing_asks_for_the_time_between_tokens() -> None:
    """The text is not read at one go."""
    budget = Budget(steps=1 << 40, is_over=lambda: True)
    with pytest.raises(BudgetSpent):
        parser.parse("[" + ", ".join(["1"] * 3000) + "]", Effort(budget))
    assert budget.spent < 1000


def test_an_expression_that_was_refused_is_remembered() -> None:
    """It is refused again without a step, in the same words."""
    forget_compiled()
    reasons = []
    for budget in (Budget.unlimited(), Budget(steps=0)):
        with pytest.raises(ExpressionInvalid) as raised:
            compile_selector(TOWERS["optMap"], LISTS, budget)
        reasons.append(str(raised.value))
    assert reasons[0] == reasons[1]


def test_a_flood_of_new_values_displaces_none_that_is_in_use() -> None:
    """Whoever brings many new expressions displaces other new ones."""
    shelf: Shelf[int, str] = Shelf(1000)
    shelf.put(-1, "in use", 10)
    assert shelf.get(-1) == "in use"
    for number in range(10_000):
        shelf.put(number, "new", 10)
    assert shelf.get(-1) == "in use"
    assert shelf.weight <= 1000


def test_a_shelf_is_bounded_by_weight() -> None:
    """Also where everything is asked for again; what is very heavy is not kept at all."""
    shelf: Shelf[int, str] = Shelf(1000)
    for number in range(1000):
        shelf.put(number, "value", 20)
        shelf.get(number)
        assert shelf.weight <= 1000
    assert shelf.get(999) == "value"
    assert shelf.get(0) is None
    shelf.put(-1, "heavy", 21)
    assert shelf.get(-1) is None
