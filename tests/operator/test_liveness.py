"""/healthz tells progress, not the process: an operator whose decisions stand still is not alive."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import aiohttp
import pytest

from dovetail.core.features import Features
from dovetail.core.planner import PlanSettings
from dovetail.core.world import World
from dovetail.embedded import EmbeddedCluster
from dovetail.services.health import Health, serve_health
from dovetail.services.metrics import Metrics
from dovetail.services.mind import Limits, Mind
from tests.operator.conftest import OperatorStarter


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


class Blocking:
    """A question that the thread does not come back from until the test lets it."""

    def __init__(self) -> None:
        self.taken_up = threading.Event()
        self._released = threading.Event()

    def __call__(self, _: World) -> None:
        """Hang."""
        self.taken_up.set()
        self._released.wait()

    @contextmanager
    def released_at_the_end(self) -> Iterator[None]:
        """No test leaves a thread behind, whatever becomes of it."""
        try:
            yield
        finally:
            self._released.set()


def made_mind(clock: Clock) -> Mind:
    """A mind with an empty world."""
    return Mind(World(Features()), plan=PlanSettings(), limits=Limits(1000, 1.0), now=lambda: "", clock=clock)


async def get(address: str, path: str) -> tuple[int, str]:
    """Status and words of an endpoint."""
    async with aiohttp.ClientSession(f"http://{address}") as session, session.get(path) as answer:
        return answer.status, await answer.text()


@asynccontextmanager
async def served(health: Health, port: int) -> AsyncIterator[str]:
    """The address at which the endpoints answer."""
    address = f"127.0.0.1:{port}"
    runner = await serve_health(address, health, Metrics())
    assert runner is not None
    yield address
    await runner.cleanup()


@pytest.fixture
def clock() -> Clock:
    """The time that the test decides."""
    return Clock()


async def test_a_decision_that_hangs_is_no_life(clock: Clock, unused_tcp_port: int) -> None:
    """/healthz is 503 when the thread has been busy with one question for over a minute, and says so."""
    mind, blocking = made_mind(clock), Blocking()
    health = Health(stalled_after_seconds=300, mind_silence=lambda: mind.silent_seconds)
    async with served(health, unused_tcp_port) as address:
        with blocking.released_at_the_end():
            question = asyncio.create_task(mind.ask(blocking))
            await asyncio.to_thread(blocking.taken_up.wait)
            clock.now += 60
            in_time = await get(address, "/healthz")
            clock.now += 1
            late = await get(address, "/healthz")
        await question
        again = await get(address, "/healthz")
    mind.close()

    assert in_time == (200, "ok\n")
    assert late == (503, "decisions stand still: their thread has not moved for 61 seconds\n")
    assert again == (200, "ok\n")


async def test_a_thread_without_questions_may_be_silent(clock: Clock) -> None:
    """Nothing to do for an hour is no stall, and the question that comes then is not late."""
    mind, blocking = made_mind(clock), Blocking()
    clock.now += 3600
    assert mind.silent_seconds == 0

    with blocking.released_at_the_end():
        question = asyncio.create_task(mind.ask(blocking))
        await asyncio.to_thread(blocking.taken_up.wait)
        assert mind.silent_seconds == 0
    await question
    mind.close()


async def test_a_queue_that_moves_is_no_stall(clock: Clock) -> None:
    """A question that waited a minute behind others is not what hangs: each one taken up is progress."""
    mind, first, second = made_mind(clock), Blocking(), Blocking()
    with second.released_at_the_end():
        with first.released_at_the_end():
            questions = [asyncio.create_task(mind.ask(blocking)) for blocking in (first, second)]
            await asyncio.to_thread(first.taken_up.wait)
            clock.now += 59
        await asyncio.to_thread(second.taken_up.wait)
        clock.now += 59
        assert mind.silent_seconds == 59
    await asyncio.gather(*questions)
    mind.close()


async def test_a_question_that_nobody_waits_for_still_hangs(clock: Clock) -> None:
    """Who asked may give up; the thread is stuck all the same."""
    mind, blocking = made_mind(clock), Blocking()
    with blocking.released_at_the_end():
        question = asyncio.create_task(mind.ask(blocking))
        await asyncio.to_thread(blocking.taken_up.wait)
        question.cancel()
        await asyncio.gather(question, return_exceptions=True)
        clock.now += 61
        assert mind.silent_seconds == 61
    mind.close()


async def test_lists_that_do_not_come_are_no_life() -> None:
    """The other half of progress: the picture has to be compared with the cluster."""
    health = Health(stalled_after_seconds=0)

    (sentence,) = health.stalls

    assert sentence.startswith("the cluster was last listed completely ")


async def test_the_operator_tells_of_its_own_thread(
    bare: EmbeddedCluster, operator: OperatorStarter, unused_tcp_port: int
) -> None:
    """A question that hangs in the running operator turns its /healthz to 503."""
    address = f"127.0.0.1:{unused_tcp_port}"
    context = await operator(listen=address)
    assert context.operation is not None
    mind, health, blocking = context.operation._parts.mind, context.operation.health, Blocking()
    assert mind._loop is not None
    alive = await get(address, "/healthz")
    with blocking.released_at_the_end():
        question = asyncio.run_coroutine_threadsafe(mind.ask(blocking), mind._loop)
        await asyncio.to_thread(blocking.taken_up.wait)
        health.mind_patience_seconds = 0
        status, words = await get(address, "/healthz")
    await asyncio.wrap_future(question)

    assert alive == (200, "ok\n")
    assert status == 503
    assert words.startswith("decisions stand still")
