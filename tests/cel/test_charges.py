"""Every step of an evaluation that takes time or memory is taken from the budget."""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.cel import Failure, FailureKind, Memory, compile_attribute, compile_selector
from dovetail.core.cel.engine import MAX_DERIVED, UNFORESEEN, compile_metered
from dovetail.core.cel.environment import scope
from dovetail.core.cel.equality import equal
from dovetail.core.cel.library.regexes import KEPT, MAX_PATTERN, compile_pattern
from dovetail.core.cel.messages import build
from dovetail.core.cel.meter import MAX_BYTES, MAX_READ, MAX_SIZE, MAX_WORK, Meter
from dovetail.core.cel.signatures import Dispatch, Overload
from dovetail.core.cel.times import Duration, Timestamp
from dovetail.core.cel.values import Aborted, CelMap, CostExceeded, EvalError, Growing, Optional, Uint
from dovetail.core.semver import Semver
from tests.cel.devices import LISTS, OWN, derive, device
from tests.cel.test_size import bound

NESTED = bound(40, "[v, v]", "{}", "[]")
"""A list of two lists of two lists … forty deep: 2^40 lists, of which forty exist."""


def nested(depth: int = 40) -> list[Any]:
    """The same as a value."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value, value]
    return value


def metered(name: str, *values: Any) -> Meter:
    """What applying a function to values takes."""
    meter = Meter()
    with suppress(EvalError):
        Dispatch(name, scope(OWN).functions[name].overloads).apply(meter, values)
    return meter


LONG = "a1-.:/b?" * 1000
NUMBERS = list(range(8000))

FAMILIES: list[tuple[str, tuple[Any, ...]]] = [
    ("_+_", (LONG, LONG)),
    ("_+_", (LONG.encode(), LONG.encode())),
    ("_+_", (NUMBERS, NUMBERS)),
    ("_+_", (Growing(NUMBERS), NUMBERS)),
    ("@in", (-1, NUMBERS)),
    ("indexOf", (NUMBERS, -1)),
    ("lastIndexOf", (NUMBERS, -1)),
    ("includes", (NUMBERS, -1)),
    ("isSorted", (NUMBERS,)),
    ("max", (NUMBERS,)),
    ("min", (NUMBERS,)),
    ("sum", (NUMBERS,)),
    ("slice", (NUMBERS, 0, 8000)),
    ("flatten", ([NUMBERS],)),
    ("sort", (NUMBERS,)),
    ("@sortByAssociatedKeys", (NUMBERS, NUMBERS)),
    ("distinct", (NUMBERS[:100],)),
    ("lists.range", (8000,)),
    ("reverse", (NUMBERS,)),
    ("sets.contains", (NUMBERS, [-1])),
    ("sets.equivalent", (NUMBERS, NUMBERS[:3])),
    ("sets.intersects", ([-1], NUMBERS)),
    ("cel.@mapInsert", (CelMap(), CelMap((number, 1) for number in NUMBERS))),
    ("replace", (LONG, "a", "bb")),
    ("split", (LONG, "a")),
    ("join", ([LONG, LONG],)),
    ("format", ("%s", [NUMBERS])),
    ("format", ("%s", [[LONG]])),
    ("format", ("%x", [LONG])),
    ("format", ("%.9999f", [1.5])),
    ("format", ("%d" * 1000, NUMBERS)),
    ("strings.quote", (LONG,)),
    ("matches", (LONG, "(a|b)+c")),
    ("find", (LONG, "b+")),
    ("findAll", (LONG, "b")),
    ("string", (LONG.encode(),)),
    ("bytes", (LONG,)),
    ("double", ("1" * 8000,)),
    ("duration", ("1h" * 4000,)),
    ("timestamp", (LONG,)),
    ("quantity", ("1" * 8000,)),
    ("isQuantity", ("1" * 8000,)),
    ("semver", (f"1.0.0-{LONG}",)),
    ("isSemver", (LONG,)),
    ("isLessThan", (Semver(1, 0, 0, ("a",) * 8000), Semver(1, 0, 0, ("a",) * 8000))),
    ("compareTo", (Semver(1, 0, 0, ("a",) * 8000), Semver(1, 0, 0, ("a",) * 8000))),
    ("ip", (LONG,)),
    ("isIP", (LONG,)),
    ("ip.isCanonical", (LONG,)),
    ("cidr", (LONG,)),
    ("isCIDR", (LONG,)),
    ("url", (LONG,)),
    ("isURL", (LONG,)),
    ("optional.unwrap", ([Optional(1)] * 8000,)),
    ("unwrapOpt", ([Optional(1)] * 8000,)),
]


@pytest.mark.parametrize(("name", "values"), FAMILIES)
def test_a_function_pays_for_what_it_goes_through_or_builds(name: str, values: tuple[Any, ...]) -> None:
    """Eight thousand characters or elements are steps by the dozen, or tens of thousands of bytes."""
    meter = metered(name, *values)
    assert meter.work >= 32 or meter.built >= 8000


CHEAP = {
    # Not longer than one pass at the speed of C over a million characters, and cel-go's cost grows with it.
    *("contains", "startsWith", "endsWith", "indexOf", "lastIndexOf", "substring", "trim"),
    *("lowerAscii", "upperAscii", "_<_", "_<=_", "_>_", "_>=_"),
    # As long for a long value as for a short one.
    *("size", "charAt", "first", "last", "optional.of", "optional.ofNonZeroValue", "dyn", "type", "bool"),
    *("int", "uint", "bytes", "string", "format.named", "@in"),
    # The name of a zone is short.
    *(f"get{part}" for part in ("FullYear", "Month", "DayOfYear", "DayOfMonth", "Date", "DayOfWeek")),
    *(f"get{part}" for part in ("Hours", "Minutes", "Seconds", "Milliseconds")),
    # Planned without a function.
    *("_==_", "_!=_", "_[_]", "_[?_]", "_?._", "_?_:_", "or", "orValue"),
    # Parts of addresses, and sums of numbers.
    *("containsIP", "containsCIDR", "value", "hasValue"),
}


def unpaid() -> Iterator[Overload]:
    """Every form of a function that takes a text, bytes, a list, a map or anything, and pays for nothing."""
    for function in scope(OWN).functions.values():
        for overload in function.overloads:
            kinds = {param.kind for param in overload.params}
            if not overload.spends and kinds & {"string", "bytes", "list", "map", "dyn", "param"}:
                yield overload


def test_every_function_of_large_values_pays_or_is_known_to_be_cheap() -> None:
    """A function that is added later has to say which it is."""
    authorization = {"authorizer", "groupcheck", "resourcecheck", "pathcheck"}
    found = {each.function for each in unpaid() if each.id.partition("_")[0] not in authorization}
    assert found <= CHEAP


LIST_OF_TEXTS = "'a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a'.split(' ')"

BOMBS = {
    "flatten": NESTED.replace("{}", "v40.flatten(60).size()"),
    "equality": NESTED.replace("{}", "v40 == v40"),
    "inequality": NESTED.replace("{}", "v40 != v40"),
    "comparisons": NESTED.replace("{}", "lists.range(1000).all(x, v20 == v20)"),
    "membership": NESTED.replace("{}", "v40 in [v40]"),
    "position": NESTED.replace("{}", "[v40].indexOf(v40)"),
    "last position": NESTED.replace("{}", "[v40].lastIndexOf(v40)"),
    "includes": NESTED.replace("{}", "[v40].includes(v40)"),
    "distinct": NESTED.replace("{}", "[v40, v40].distinct().size()"),
    "sets": NESTED.replace("{}", "sets.equivalent([v40], [v40])"),
    "format": NESTED.replace("{}", "'%s'.format([v40]).size()"),
    "messages": NESTED.replace("{}", "google.protobuf.ListValue{values: v40} == []"),
    "values": NESTED.replace("{}", "google.protobuf.Value{list_value: v40} == []"),
    "maps": bound(40, "{'a': v, 'b': v}", "dyn(v9) == dyn(v9) && v40 == v40", "dyn({})").replace(
        "v40 == v40", "dyn([v40]) == dyn([v40])"
    ),
    "optionals": bound(40, "[optional.of(dyn(v)), optional.of(dyn(v))]", "v40 == v40", "[]"),
    "positions in sums": NESTED.replace("{}", "dyn(v40).sum() == 0"),
    "sums of texts": bound(40, "[dyn(v), dyn({'a': v})]", "dyn(v40).sum() == 0", LIST_OF_TEXTS),
    "positions among texts": bound(
        18, "[[v, v], [v]]", "lists.range(3).map(i, v18.includes(v18)) == []", LIST_OF_TEXTS
    ),
    "greatest of many": bound(20, "[v, v].flatten()", "dyn(v20).max() == 1", "'a'.split('')"),
    "numbers formatted": bound(3, "[v, v]", "'%s'.format([v3]).size()", "lists.range(900000)"),
    "sorted": NESTED.replace("{}", "dyn(v40).isSorted()"),
    "keys": NESTED.replace("{}", "[v40, v40].transformMapEntry(i, x, {x: i}).size()"),
    "lookups": NESTED.replace("{}", "{dyn('a'): 1}[v40] == 1"),
    "strings doubled": bound(40, "v + v", "v40.size()", "'aaaaaaaaaa'"),
    "strings quoted": "'\\\\'.size() + " + "strings.quote(" * 60 + "'\\\\'" + ")" * 60 + ".size()",
    "strings replaced": bound(40, "v.replace('a', 'aaaaaaaaaa')", "v40.size()", "'aaaaaaaaaa'"),
    "strings joined": bound(40, "[v, v].join()", "v40.size()", "'aaaaaaaaaa'"),
    "strings formatted": bound(40, "'%s%s'.format([v, v])", "v40.size()", "'aaaaaaaaaa'"),
    "bytes doubled": bound(40, "v + v", "v40.size()", "b'aaaaaaaaaa'"),
    "bytes as JSON": bound(
        60, "bytes(string(google.protobuf.Value{string_value: string(v)})) + v", "v60.size()", "b'aa'"
    ),
    "lists doubled": bound(40, "v + v", "v40.size()", "[1, 2]"),
    "a list that grows": "cel.bind(x, [], (x + [1]).size() + " + "(x + x).size() + " * 60 + "x.size())",
    "texts split": bound(16, "v + v", "v16.split('').size() + v16.split('').size()", "'\u20ac\u20ac\u20ac'"),
    "texts split often": "lists.range(9000).map(i, 'a'.replace('a', '"
    + "bbbb" * 100
    + "').split('')).size()",
    "ranges": "lists.range(90).map(x, lists.range(9000)).size()",
    "matches": bound(13, "v + v", "v13.matches('(?:a|b|ab){900}c')", "'abbabaab'"),
    "many matches": bound(13, "v + v", "v13.findAll('a|a.*c').size()", "'aaaaaaaa'"),
    "many patterns": "lists.range(9000).exists(x, 'a'.matches('\\\\pL{9}' + string(x)))",
    "long pattern": bound(13, "v + v", "'a'.matches(v13)", "'aaaaaaaa'"),
    "quantities": bound(13, "v + v", "isQuantity(v13)", "'11111111'"),
    "versions": bound(13, "v + v", "isSemver('1.0.0-' + v13)", "'1.1.1.1.'"),
    "addresses": bound(13, "v + v", "isURL('/' + v13)", "'%41%41%4'"),
    "query": bound(10, "v + v", "lists.range(5000).map(x, url('/?' + v10).getQuery()).size()", "'a=1&b=2&'"),
    "last of text": bound(16, "v + v", "v16.lastIndexOf('b' + v15)", "'aaaaaaaaaaa'"),
    "precision": "lists.range(9000).map(x, '%.99999f'.format([1.5])).size()",
    "optMap": "lists.range(9000).all(x, optional.of(x)" + ".optMap(y, y)" * 10 + ".hasValue())",
    "zones": "lists.range(200000).all(x, timestamp(x).getHours('Europe/Berlin') >= 0)",
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.timeout(60)
def test_a_bomb_ends_within_the_budget(name: str) -> None:
    """Whatever it blows up: the decision's seconds end it, with an answer or without."""
    program = compile_attribute(BOMBS[name], LISTS)
    end = time.process_time() + 0.2
    budget = Budget(steps=1 << 60, is_over=lambda: time.process_time() > end)
    try:
        found = program.derive(device(), budget)
    except BudgetSpent:
        found = None
    assert time.process_time() < end + 0.3
    assert not isinstance(found, Failure) or UNFORESEEN not in found.message


@pytest.mark.parametrize(
    "name", [name for name in BOMBS if name not in {"optMap", "zones", "ranges", "maps", "lookups", "keys"}]
)
@pytest.mark.timeout(60)
def test_a_bomb_costs_too_much_whatever_the_clock_says(name: str) -> None:
    """Without any budget it ends all the same, with the same answer everywhere; or it is none."""
    found = derive(BOMBS[name])
    if isinstance(found, Failure):
        assert found.kind in (FailureKind.COST, FailureKind.TYPE, FailureKind.OTHER)
        assert UNFORESEEN not in found.message


@pytest.mark.parametrize(
    "name",
    ["flatten", "equality", "comparisons", "membership", "distinct", "sets", "format", "messages",
     "strings doubled", "strings quoted", "lists doubled", "a list that grows", "matches", "long pattern"],
)  # fmt: skip
def test_the_answer_to_a_bomb_is_that_it_costs_too_much(name: str) -> None:
    """It is told as what it is."""
    found = derive(BOMBS[name])
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.COST
    assert len(found.message) < 400


def test_deep_equality_is_counted_in_what_the_meter_has_left() -> None:
    """All comparisons of an evaluation share one allowance."""
    meter = Meter()
    small = nested(10)
    assert equal(small, small, meter) is True
    each = meter.work
    assert each > 1000
    for _ in range(MAX_WORK // each - 1):
        equal(small, small, meter)
    with pytest.raises(CostExceeded):
        equal(small, small, meter)


def test_building_a_message_is_counted() -> None:
    """JSON is a copy of everything inside."""
    with pytest.raises(CostExceeded):
        build("google.protobuf.ListValue", {"values": nested()}, Meter())


def test_a_budget_is_told_of_work_and_cost() -> None:
    """One evaluation's steps are steps of the decision."""
    for expression in ("lists.range(5000).all(x, x >= 0)", "[1, 2, 3] == [1, 2, 4]"):
        budget = Budget.unlimited()
        compile_selector(expression, LISTS).matches(device(), budget)
        assert budget.spent > 0
        with pytest.raises(BudgetSpent):
            compile_selector(expression, LISTS).matches(device(), Budget(steps=0))


@pytest.mark.parametrize(
    ("spend", "reason"),
    [
        (lambda meter: meter.spend(MAX_WORK + 1), "steps"),
        (lambda meter: meter.build(MAX_SIZE + 1), "parts"),
        (lambda meter: [meter.build(MAX_SIZE, 40) for _ in range(2)], "bytes"),
        (lambda meter: [meter.holding("a" * 1_000_000) for _ in range(51)], "bytes"),
        (lambda meter: meter.read("a" * (MAX_READ + 1)), "characters"),
        (lambda meter: meter.charge(1_000_001), "cost limit"),
    ],
)
def test_each_limit_of_the_meter_holds_alone(spend: Any, reason: str) -> None:
    """Steps, the size of a value, bytes built, texts read, and cel-go's cost."""
    with pytest.raises(CostExceeded, match=reason):
        spend(Meter())
    assert MAX_BYTES <= 50_000_000


def test_patterns_are_bounded_in_size_and_number() -> None:
    """A pattern is paid for when it is compiled, refused where it is long, and few are kept."""
    meter = Meter()
    for number in range(4 * KEPT):
        compile_pattern(f"a{number}b+", meter)
    assert meter.work >= 4 * KEPT * 10
    with pytest.raises(CostExceeded):
        compile_pattern("a" * (MAX_PATTERN + 1), meter)
    with pytest.raises(EvalError, match="too large"):
        compile_pattern("\\pL{900}", meter)


def test_finding_all_is_linear() -> None:
    """64 KB of matches are found in a second, not in half a minute."""
    started = time.process_time()
    meter = Meter()
    found = Dispatch("findAll", scope(OWN).functions["findAll"].overloads).apply(meter, ("a" * 65_536, "a"))
    assert len(found) == 65_536
    assert time.process_time() - started < 2
    assert meter.work >= 65_536


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [
        ("äbäb", "b", ["b", "b"]),
        ("äöü", "", ["", "", "", ""]),
        ("aäa", "ä*", ["", "ä", ""]),
        ("€uro €", "€", ["€", "€"]),
    ],
)
def test_finding_all_counts_characters_not_bytes(text: str, pattern: str, found: list[str]) -> None:
    """As Go does, in UTF-8."""
    assert derive(f"'{text}'.findAll('{pattern}')") == found


@pytest.mark.parametrize(
    ("text", "part"), [("abcabc", "bc"), ("aaa", "a"), ("abc", "x"), ("", "a"), ("ab", "")]
)
def test_the_last_place_is_found_in_either_way(text: str, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searching a reversed text gives what searching backwards gives."""
    expression = f"'{text}'.lastIndexOf('{part}')"
    plain = derive(expression)
    monkeypatch.setattr("dovetail.core.cel.library.strings.QUADRATIC", 0)
    assert derive(expression) == plain == text.rfind(part)


def test_a_large_derived_attribute_is_none() -> None:
    """It would be kept, and compared, for every device."""
    assert derive(f"lists.range({MAX_DERIVED})") is not None
    for expression in (f"lists.range({MAX_DERIVED + 1})", bound(12, "v + v", "v12", "'aaaaaaaaaa'")):
        found = derive(expression)
        assert isinstance(found, Failure)
        assert found.kind is FailureKind.COST


def test_large_results_count_as_many_in_the_memory() -> None:
    """The memory is bounded by what it holds, not by how many things it holds."""
    memory = Memory(size=1_500)
    program = compile_attribute("lists.range(1000).map(x, device.attributes['gpu.example.com'].numa)", LISTS)
    assert memory.derive(program, device(numa=1)) is not None
    memory.derive(program, device(numa=1))
    assert memory.hits == 1
    for numa in range(2, 30):
        memory.derive(program, device(numa=numa))
    memory.derive(program, device(numa=1))
    assert memory.hits == 1


@pytest.mark.parametrize(
    "expression",
    [
        "{optional.of([1]): 1}.size()",
        "{dyn([1]): 1, dyn({}): 2, dyn(optional.none()): 3, dyn(url('/a')): 4, dyn(quantity('1')): 5}.size()",
        "dyn(optional.of([1])) in {1: 1}",
    ],
)
def test_any_value_may_be_a_key(expression: str) -> None:
    """Whatever Python thinks of it."""
    assert not isinstance(derive(expression), Failure)


def test_what_nobody_foresaw_concerns_one_expression() -> None:
    """An error of ours is a failure of this evaluation, with its name."""
    program = compile_metered("device.driver == 'd'", LISTS, derived=False)

    def broken(_: Any) -> Any:
        raise TypeError("no")

    object.__setattr__(program, "run", broken)
    failure = program.matches(device())
    assert isinstance(failure, Failure)
    assert failure.message == f"{UNFORESEEN}: TypeError"


@pytest.mark.parametrize(
    "expression",
    [
        "int(v)",
        "double(v) == 1.0",
        "quantity(v) == quantity(v)",
        "semver(v)",
        "duration(v) == duration(v)",
        "string(ip(v))",
        "cidr(v).prefixLength()",
        "{'a': 1}[v]",
        "[v, v].transformMapEntry(i, x, {x: i}).size()",
        "device.attributes['gpu.example.com'][v]",
    ],
)
def test_an_error_shows_only_the_beginning_of_a_long_text(expression: str) -> None:
    """A message ends in conditions and Events."""
    failure = derive(f"cel.bind(v, '{'x' * 5000}' + device.driver, {expression})")
    assert isinstance(failure, Failure)
    assert len(failure.message) < 400
    assert len(failure.id) < 400


def test_the_types_of_times_are_no_exception() -> None:
    """Plain values are compared without a step."""
    meter = Meter()
    for first in (1, Uint(1), 1.5, "a", b"a", True, Duration(1), Timestamp(1), None):
        equal(first, first, meter)
    assert meter.work == 0
    assert issubclass(CostExceeded, Aborted)
