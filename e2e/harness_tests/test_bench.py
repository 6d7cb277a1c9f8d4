"""A bench whose control plane fails says how, and has no results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bench.e2e import Results, completed
from e2e.harness import NotSeen


async def succeed() -> Results:
    """Nothing to measure."""
    return Results()


async def fail() -> Results:
    """Nothing could be measured."""
    raise NotSeen("end of all Pods", 300, "namespace")


async def fail_in_groups() -> Results:
    """As it happens while pods are created and watched: a task group within a task group."""
    async with asyncio.TaskGroup() as outer:
        outer.create_task(_fail_in_group())
    return Results()


async def _fail_in_group() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(fail())


def test_what_was_measured_is_handed_on() -> None:
    """Without trouble there is nothing between."""
    assert completed(succeed()) == Results()


@pytest.mark.parametrize("failing", [fail, fail_in_groups])
def test_a_failure_ends_with_its_sentence(
    failing: Callable[[], Coroutine[Any, Any, Results]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever it came up, the sentence is printed once, without a traceback."""
    assert completed(failing()) is None

    printed = capsys.readouterr().out
    assert printed.count("end of all Pods") == 1
    assert "Traceback" not in printed


def test_another_error_is_not_hidden() -> None:
    """A fault of the bench itself shows where it is."""

    async def fault() -> Results:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        completed(fault())
