"""How the rules of one mapping give one device its value."""

import itertools
from typing import Any

import pytest

from dovetail.core.attributes import CompiledMapping, Missing, MissingCause, compile_mapping
from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.cel import Memory
from dovetail.core.devices import DeviceView
from dovetail.core.values import AttributeValue, Kind, Scalar
from tests.mappings.worlds import device, mapping, published, rule, value, version

NUMA = "resource.kubernetes.io/numaNode"


def derive(compiled: CompiledMapping, view: DeviceView) -> AttributeValue | Missing:
    return compiled.derive(view, Memory())


def cause_of(answer: AttributeValue | Missing) -> MissingCause:
    assert isinstance(answer, Missing)
    return answer.cause


def test_the_first_rule_that_applies_decides() -> None:
    """A later rule for the same driver is not asked, even where the first one gives no value."""
    compiled = compile_mapping(
        mapping(
            rule("a.example", "dyn([])", when='device.attributes["a.example"].kind == "x"'),
            rule("a.example", "1"),
            rule("*", "2"),
        )
    )

    assert cause_of(derive(compiled, device("a.example", kind="x"))) is MissingCause.NOT_PUBLISHED
    assert derive(compiled, device("a.example", kind="y")) == value(1)


def test_a_rule_for_any_driver_serves_those_without_a_rule_of_their_own() -> None:
    """Driver `*` also serves a named driver whose rules do not apply."""
    compiled = compile_mapping(mapping(rule("a.example", "1", when="false"), rule("*", "2")))

    assert derive(compiled, device("a.example")) == value(2)
    assert derive(compiled, device("b.example")) == value(2)


def test_a_device_that_no_rule_is_for_lacks_the_attribute() -> None:
    """The reason is that there is no rule, and it names the driver."""
    answer = derive(compile_mapping(mapping(rule("a.example", "1"))), device("b.example"))

    assert answer == Missing(MissingCause.NO_RULE, "no rule applies to driver b.example")


def test_a_driver_is_named_exactly() -> None:
    """A driver whose name only begins or ends like that of a rule is another driver."""
    compiled = compile_mapping(mapping(rule("gpu.example", "1")))

    for driver in ("gpu.example.com", "my.gpu.example", "GPU.example"):
        assert cause_of(derive(compiled, device(driver))) is MissingCause.NO_RULE


def test_a_bare_name_lies_in_the_domain_of_its_driver() -> None:
    """A rule finds it there, and a rule that looks under the standard domain finds nothing (R-A5)."""
    gpu = device("gpu.amd.com", numaNode=1)
    own = mapping(rule("gpu.amd.com", 'device.attributes["gpu.amd.com"].numaNode'))
    standard = mapping(rule("gpu.amd.com", 'device.attributes["resource.kubernetes.io"].numaNode'))

    assert derive(compile_mapping(own), gpu) == value(1)
    assert cause_of(derive(compile_mapping(standard), gpu)) is MissingCause.FAILED


def test_two_names_of_one_fact_become_one_attribute() -> None:
    """A GPU and a NIC that publish the same root under two names get equal values (R-A4)."""
    compiled = compile_mapping(
        mapping(
            rule("gpu.intel.com", 'device.attributes["gpu.intel.com"].pciRoot'),
            rule("dra.net", 'device.attributes["resource.kubernetes.io"].pcieRoot'),
        )
    )
    gpu = device("gpu.intel.com", pciRoot="pci0000:80")
    nic = published("dra.net", {"resource.kubernetes.io/pcieRoot": "pci0000:80"})

    assert derive(compiled, gpu) == derive(compiled, nic) == value("pci0000:80")
    assert compiled.origin == "numa"


def test_a_table_puts_a_gpu_with_memory_of_its_own_beside_its_cpu() -> None:
    """The memory-only NUMA node of the GPU becomes the CPU's node by a table in the expression (R-A9)."""
    compiled = compile_mapping(
        mapping(
            rule("gpu.nvidia.com", '{2: 0, 10: 0, 18: 1, 26: 1}[device.attributes["gpu.nvidia.com"].numa]'),
            rule("dra.net", 'device.attributes["dra.net"].numaNode'),
        )
    )

    assert derive(compiled, device("gpu.nvidia.com", numa=2)) == derive(
        compiled, device("dra.net", numaNode=0)
    )
    assert derive(compiled, device("gpu.nvidia.com", numa=26)) == derive(
        compiled, device("dra.net", numaNode=1)
    )
    assert cause_of(derive(compiled, device("gpu.nvidia.com", numa=3))) is MissingCause.FAILED


def test_lists_stay_lists() -> None:
    """All elements are kept in their order, so that any of them can match (R-A6)."""
    compiled = compile_mapping(mapping(rule("*", 'device.attributes["resource.kubernetes.io"].numaNode')))

    nic = derive(compiled, published("dra.net", {NUMA: [6, 4, 5, 7]}))

    assert nic == AttributeValue(Kind.INT, (6, 4, 5, 7), is_list=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [(True, 1), ("1", 1), ("true", True), (version("1.0.0"), "1.0.0"), ([1], ["1"])],
    ids=["bool-int", "string-int", "string-bool", "version-string", "ints-strings"],
)
def test_values_of_different_types_are_never_equal(one: Any, other: Any) -> None:
    """A bool is no int, "1" is not 1, and version 1.0.0 is not the string "1.0.0" (R-A7)."""
    compiled = compile_mapping(mapping(rule("a.example", 'device.attributes["a.example"].x')))

    first, second = (
        derive(compiled, device("a.example", x=one)),
        derive(compiled, device("a.example", x=other)),
    )

    assert first == value(one)
    assert second == value(other)
    assert first != second


@pytest.mark.parametrize("unknown", [-1, "", True])
def test_an_unknown_value_is_no_value(unknown: Any) -> None:
    """What the driver says instead of "not known" never becomes a value that could match (R-A8)."""
    compiled = compile_mapping(
        mapping(rule("a.example", 'device.attributes["a.example"].x'), unknown=[-1, "", True])
    )

    answer = derive(compiled, device("a.example", x=unknown))

    assert cause_of(answer) is MissingCause.UNKNOWN
    assert repr(unknown) in answer.detail if isinstance(answer, Missing) else False


def test_unknown_values_are_compared_with_their_type() -> None:
    """An unknown 1 leaves true and "1" alone, and the other way round (R-A7)."""
    expression = rule("a.example", 'device.attributes["a.example"].x')
    values: list[Scalar] = [1, True, "1"]
    for unknown, known in itertools.permutations(values, 2):
        compiled = compile_mapping(mapping(expression, unknown=[unknown]))

        assert derive(compiled, device("a.example", x=known)) == value(known)
        assert cause_of(derive(compiled, device("a.example", x=unknown))) is MissingCause.UNKNOWN


def test_a_changed_type_of_an_unknown_value_is_a_change() -> None:
    """An object that says true where it said 1 is not the same object, though Python calls them equal."""
    one, true = mapping(rule("*", "1"), unknown=[1]), mapping(rule("*", "1"), unknown=[True])

    assert one != true
    assert one == mapping(rule("*", "1"), unknown=[1])


def test_an_unknown_version_is_written_as_a_string() -> None:
    """A manifest has no versions, so a string stands for the version of the same letters."""
    compiled = compile_mapping(
        mapping(rule("a.example", 'device.attributes["a.example"].x'), unknown=["0.0.0"])
    )

    assert cause_of(derive(compiled, device("a.example", x=version("0.0.0")))) is MissingCause.UNKNOWN


def test_unknown_elements_leave_a_list() -> None:
    """A list keeps what is known; a list of nothing else is unknown as a whole."""
    compiled = compile_mapping(mapping(rule("a.example", 'device.attributes["a.example"].x'), unknown=[-1]))

    assert derive(compiled, device("a.example", x=[0, -1, 2])) == value([0, 2])
    assert derive(compiled, device("a.example", x=[0, -1])) == value([0])
    assert cause_of(derive(compiled, device("a.example", x=[-1, -1]))) is MissingCause.UNKNOWN


def test_a_guarded_attribute_that_is_absent_is_not_published() -> None:
    """An expression that checks first and gives an empty list says: nothing to read here (R-A8)."""
    guarded = 'has(device.attributes["a.example"].x) ? device.attributes["a.example"].x : []'
    compiled = compile_mapping(mapping(rule("a.example", guarded)))

    assert derive(compiled, device("a.example", x=3)) == value(3)
    assert cause_of(derive(compiled, device("a.example"))) is MissingCause.NOT_PUBLISHED


def test_what_is_not_published_is_named() -> None:
    """All attributes that the rule could read, so that nobody has to read the expression."""
    one = rule("a.example", 'has(device.attributes["a.example"].x) ? device.attributes["a.example"].x : []')
    none = rule("a.example", 'device.name == "x" ? dyn(1) : dyn([])')
    read_y = 'has(device.attributes["y.example"].y) ? device.attributes["y.example"].y : '

    def detail(*rules: dict[str, str]) -> str:
        answer = derive(compile_mapping(mapping(*rules)), device("a.example"))
        assert cause_of(answer) is MissingCause.NOT_PUBLISHED
        return answer.detail if isinstance(answer, Missing) else ""

    assert detail(one) == "a.example/x is not published"
    assert detail(none) == "rule 1 (a.example) gives no value"
    both = one | {"expression": read_y + one["expression"]}
    assert detail(both) == "none of a.example/x, y.example/y is published"


def test_a_key_that_a_table_lacks_is_not_taken_for_an_attribute() -> None:
    """The device has what the expression reads; the table is what lacks something."""
    compiled = compile_mapping(mapping(rule("a.example", '{2: 0}[device.attributes["a.example"].x]')))

    answer = derive(compiled, device("a.example", x=3))

    assert answer == Missing(MissingCause.FAILED, "rule 1 (a.example), expression: no such key: 3")


def test_an_unguarded_attribute_that_is_absent_is_a_failure_that_names_it() -> None:
    """Only the device that lacks it fails, in every order of visits; the reason names the field (R-C1)."""
    compiled = compile_mapping(mapping(rule("a.example", 'device.attributes["a.example"].numa')))
    devices = [device("a.example", f"dev-{n}", numa=n % 2) for n in range(15)] + [
        device("a.example", "dev-15")
    ]

    for order in (devices, devices[::-1]):
        memory = Memory()
        answers = {view.key.device: compiled.derive(view, memory) for view in order}
        failed = {name: answer for name, answer in answers.items() if isinstance(answer, Missing)}

        assert list(failed) == ["dev-15"]
        assert failed["dev-15"].cause is MissingCause.FAILED
        assert "numa" in failed["dev-15"].detail
        assert "rule 1 (a.example), expression" in failed["dev-15"].detail


def test_a_condition_that_fails_is_a_failure_too() -> None:
    """When `when` cannot be decided, no later rule is taken in its place."""
    compiled = compile_mapping(
        mapping(rule("a.example", "1", when='device.attributes["a.example"].kind == "x"'), rule("*", "2"))
    )

    answer = derive(compiled, device("a.example"))

    assert cause_of(answer) is MissingCause.FAILED
    assert isinstance(answer, Missing)
    assert "rule 1 (a.example), when" in answer.detail


@pytest.mark.parametrize(
    ("expression", "type_name"),
    [('dyn({"a": 1})', "map"), ("dyn(1.5)", "double"), ("dyn(null)", "null"), ('dyn([1, "a"])', "")],
)
def test_a_result_of_another_type_is_a_failure_that_names_the_type(expression: str, type_name: str) -> None:
    """A map, a double, null and a mixed list are no attribute values (R-C6)."""
    answer = derive(compile_mapping(mapping(rule("a.example", expression))), device("a.example"))

    assert cause_of(answer) is MissingCause.FAILED
    assert isinstance(answer, Missing)
    assert type_name in answer.detail


def test_name_and_pool_are_there_for_expressions() -> None:
    """Some drivers put the place only into the name."""
    compiled = compile_mapping(mapping(rule("a.example", 'device.pool + "/" + device.name')))

    assert derive(compiled, device("a.example", "vf-3", pool="node-7")) == value("node-7/vf-3")


def test_devices_that_differ_only_by_name_differ_where_the_name_is_read() -> None:
    """One memory for both never gives one device the value of the other."""
    compiled = compile_mapping(mapping(rule("a.example", "device.name")))
    memory = Memory()

    assert compiled.derive(device("a.example", "one"), memory) == value("one")
    assert compiled.derive(device("a.example", "two"), memory) == value("two")


def test_a_mapping_that_does_not_compile_exists_and_decides() -> None:
    """Every device fails, whichever rule is broken, and the reason has rule, place and cause."""
    compiled = compile_mapping(
        mapping(rule("a.example", "1"), rule("b.example", "1 +", when="device.driver =="))
    )

    assert not compiled.ready
    assert [(problem.rule, problem.field) for problem in compiled.problems] == [
        (1, "when"),
        (1, "expression"),
    ]
    for driver in ("a.example", "b.example", "c.example"):
        answer = derive(compiled, device(driver))
        assert cause_of(answer) is MissingCause.FAILED
        assert isinstance(answer, Missing)
        assert answer.detail.startswith("rule 2 (b.example), when: expression does not compile")


def test_a_problem_tells_line_and_column() -> None:
    """A person finds the place in an expression of several lines."""
    compiled = compile_mapping(mapping(rule("a.example", "1 +\n  2 + )")))

    error = compiled.problems[0].error

    assert error.line == 2
    assert error.column >= 1


def test_a_spent_budget_ends_the_work() -> None:
    """An expression of a mapping cannot outlast the budget of a decision."""
    compiled = compile_mapping(mapping(rule("a.example", "[1,2,3].map(x, [1,2,3].map(y, x * y)[0])[0]")))

    with pytest.raises(BudgetSpent):
        compiled.derive(device("a.example"), Memory(), Budget(steps=0))
