"""Work by key: order, one at a time per key, no mark lost, no hot loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from dovetail.errors import Conflict, NotLeading, Throttled, Unavailable
from dovetail.services.desk import Desk
from dovetail.services.metrics import Metrics
from dovetail.services.picture import Key
from dovetail.services.waiting import BURST, Pacer, Waiting

A, B, C = ("default", "a"), ("default", "b"), ("default", "c")


@asynccontextmanager
async def desk(serve: Callable[[Key], Awaitable[None]], *, workers: int = 1) -> AsyncIterator[Desk]:
    """A desk that works while the block lasts; keys are served in the order of their names."""
    made = Desk("pod", serve=serve, urgency=lambda key: (0, "", *key), workers=workers, metrics=Metrics())
    made.open()
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()
    await made.finish(1)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for is not always an event
            await asyncio.sleep(0)


async def test_the_most_urgent_key_comes_first() -> None:
    """Whatever the order of the marks."""
    served: list[Key] = []

    async def serve(key: Key) -> None:
        served.append(key)

    async with desk(serve) as work:
        work.open(is_open=False)
        for key in (C, A, B):
            work.queue.mark(key)
        work.open()
        await until(lambda: len(served) == 3)

    assert served[-2:] == [B, C] or served == [A, B, C]


async def test_a_key_is_never_served_twice_at_a_time_and_no_mark_is_lost() -> None:
    """Marks that come while a key is served bring it back once."""
    gate = asyncio.Event()
    served: list[Key] = []
    together = 0

    async def serve(key: Key) -> None:
        nonlocal together
        together += 1
        assert together == 1
        served.append(key)
        await gate.wait()
        together -= 1

    async with desk(serve, workers=4) as work:
        work.queue.mark(A)
        await until(lambda: len(served) == 1)
        work.queue.mark(A)
        work.queue.mark(A)
        gate.set()
        await until(lambda: len(served) == 2 and work.queue.is_idle)

    assert served == [A, A]


@pytest.mark.parametrize(
    "error", [Conflict("put", "changed", 409), Unavailable("put", "no answer"), ValueError("a fault of ours")]
)
async def test_a_failure_comes_back_later_and_harms_no_other(error: Exception) -> None:
    """Another key is served meanwhile; the failed one returns by itself."""
    served: list[Key] = []

    async def serve(key: Key) -> None:
        served.append(key)
        if served == [A]:
            raise error

    async with desk(serve) as work:
        work.queue.mark(A)
        work.queue.mark(B)
        await until(lambda: len(served) == 3)

    assert served == [A, B, A]


async def test_marks_do_not_shorten_the_pause_after_a_failure() -> None:
    """What everybody else does is no reason to try again at once."""
    served: list[Key] = []

    async def serve(key: Key) -> None:
        served.append(key)
        raise Throttled("put", "patience", 30)

    async with desk(serve) as work:
        work.queue.mark(A)
        await until(lambda: bool(served) and work.queue.is_idle)
        work.queue.mark(A)
        work.queue.mark_later(A, 0)
        await asyncio.sleep(0.05)

    assert served == [A]


async def test_a_key_comes_back_when_the_lease_was_renewed_late() -> None:
    """The deadline passed between two writes, and no turn followed that would look at everything anew."""
    served: list[Key] = []

    async def serve(key: Key) -> None:
        served.append(key)
        if len(served) == 1:
            raise NotLeading

    async with desk(serve) as work:
        work.queue.mark(A)
        await until(lambda: len(served) == 2 and work.queue.is_idle)

    assert served == [A, A]


async def test_a_stopping_desk_finishes_what_is_under_way() -> None:
    """And takes up nothing new."""
    release = asyncio.Event()
    finished: list[Key] = []

    async def serve(key: Key) -> None:
        await release.wait()
        finished.append(key)

    async with desk(serve) as work:
        work.queue.mark(A)
        await until(lambda: not len(work.queue))
        stopping = asyncio.create_task(work.finish(5))
        await asyncio.sleep(0)
        work.queue.mark(B)
        release.set()
        await stopping

    assert finished == [A]


async def test_an_earlier_timer_wins() -> None:
    """A pod that has to be looked at in an hour and in a moment is looked at in a moment."""
    queue = Waiting(lambda key: (0, "", *key))
    queue.mark_later(A, 3600)

    queue.mark_later(A, 0.01)

    assert await asyncio.wait_for(queue.next(), 1) == A
    queue.forget(A)


async def test_one_look_is_enough_for_the_marks_of_a_patient_pod() -> None:
    """It comes when the patience is over, however often the pod is marked meanwhile; others come at once."""
    queue = Waiting(lambda key: (0, "", *key), patience=lambda key: 0.05 if key == A else 0.0)
    for _ in range(100):
        queue.mark(A)
    queue.mark(B)

    order = [await asyncio.wait_for(queue.next(), 1) for _ in range(2)]
    queue.done(A)

    assert order == [B, A]
    assert not len(queue)


async def test_patience_that_is_lost_is_not_waited_for() -> None:
    """A pod that had everything, and lacks something now, is looked at now."""
    patience = {A: 3600.0}
    queue = Waiting(lambda key: (0, "", *key), patience=lambda key: patience.get(key, 0.0))
    queue.mark(A)

    patience.clear()
    queue.mark(A)

    assert await asyncio.wait_for(queue.next(), 1) == A
    queue.forget(A)


def test_a_pacer_lets_a_burst_pass_and_then_one_at_a_time() -> None:
    """After the burst each pass waits for the pause; a quiet time earns the burst anew."""
    now = 0.0
    pacer = Pacer(lambda: now)

    burst = [pacer.delay(A) for _ in range(BURST)]
    slowed = pacer.delay(A)
    now = 100.0
    rested = pacer.delay(A)

    assert burst == [0.0] * BURST
    assert 0 < slowed <= 1
    assert rested == 0.0


async def test_a_busy_pod_that_is_more_urgent_goes_first() -> None:
    """Something appears that two pods wait for while the more urgent one is being worked on."""
    queue = Waiting(lambda key: (0, "", *key))
    queue.mark(A)
    busy = await queue.next()

    queue.mark_in_turn([A, B])
    waiting = asyncio.create_task(queue.next())
    await asyncio.sleep(0.01)
    was_waiting = not waiting.done()
    queue.done(busy)

    assert was_waiting
    assert await asyncio.wait_for(waiting, 1) == A


async def test_a_busy_pod_is_not_waited_for_by_more_urgent_ones() -> None:
    """Nor by anybody when the marks are no turn."""
    queue = Waiting(lambda key: (0, "", *key))
    queue.mark(B)
    await queue.next()

    queue.mark_in_turn([A, B])

    assert await asyncio.wait_for(queue.next(), 0.5) == A
