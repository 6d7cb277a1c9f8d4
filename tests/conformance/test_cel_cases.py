"""CEL gives the verdicts and values of cel-go, as kube-scheduler 1.37.2 uses it."""

import pytest

from tests.support.cel_cases import CelCase, read_cel_cases


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per case of the folder."""
    cases = list(read_cel_cases(metafunc.config.getoption("--cases")))
    metafunc.parametrize("case", cases, ids=[case.name for case in cases])


def test_the_answer_is_that_of_cel_go(case: CelCase) -> None:
    """The kind of the verdict agrees, and so does the value."""
    answer = case.answer()
    if case.expected["outcome"] == "compiles":
        assert answer["outcome"] != "compileError"
        return
    assert answer == case.expected
