"""CEL gives cel-go's answers in corners that somebody thought of."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cel_cases import CelCase, read_cel_cases

DATA = Path(__file__).parents[1] / "data" / "cel"
CORNERS = json.loads((DATA / "corners.json").read_text())
"""Expressions with cel-go's answer in each of three environments: an attribute, or the kind of the error."""


def cases() -> list[CelCase]:
    """Each expression in each environment."""
    return [
        CelCase(expression[:40], {**CORNERS["device"], **environment, **_case(expression, answer)})
        for expression, answers in CORNERS["expressions"].items()
        for environment, answer in zip(CORNERS["environments"], answers, strict=True)
    ]


def _case(expression: str, answer: Any) -> dict[str, Any]:
    expect = {"outcome": answer} if isinstance(answer, str) else {"outcome": "value", "attribute": answer}
    return {"expression": expression, "derived": True, "expect": expect}


@pytest.mark.parametrize("environment", range(len(CORNERS["environments"])))
def test_corners_have_the_answers_of_cel_go(environment: int) -> None:
    """Syntax, types, macros, libraries and limits agree, in three environments."""
    mine = cases()[environment :: len(CORNERS["environments"])]
    answers = [(case.body["expression"], case.answer(), case.expected) for case in mine]
    assert [answer for answer in answers if answer[1] != answer[2]] == []
    assert len(answers) > 800


@pytest.mark.parametrize("case", list(read_cel_cases(DATA)), ids=lambda case: str(case.body["name"]))
def test_expressions_of_real_drivers_mean_what_they_mean_to_kube_scheduler(case: CelCase) -> None:
    """Expressions of drivers' documentation, of KEP-6080 and of the field cases R-C4 to R-C6 agree."""
    assert case.answer() == case.expected
