"""The embedded API server answers as kube-apiserver 1.37.2 does."""

import asyncio
import functools
import json
from typing import Any

import aiohttp
import pytest

from dovetail.embedded import EmbeddedCluster
from tests.embedded.conversation import CONVERSATION, converse
from tests.embedded.record import RECORDED

STEPS = [*(step.name for step in CONVERSATION), "watch"]


@functools.cache
def recorded() -> dict[str, Any]:
    """What the real server answered."""
    answers: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return answers


@functools.cache
def heard() -> dict[str, Any]:
    """What the embedded server answers."""

    async def talk() -> dict[str, Any]:
        async with EmbeddedCluster() as cluster, aiohttp.ClientSession() as session:
            return await converse(session, cluster.url)

    return asyncio.run(talk())


@pytest.mark.parametrize("step", STEPS)
def test_answers_as_the_real_server(step: str) -> None:
    """Status, reason, wrong fields and the parts of the object that count are those of the real server."""
    assert heard()[step] == recorded()[step]


def test_the_record_is_complete() -> None:
    """The record holds an answer to every step, and to no other."""
    assert sorted(recorded()) == sorted(STEPS)
