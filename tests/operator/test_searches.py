"""Searches that do not end quickly: whose turn it is, and how long the others have."""

import asyncio
from dataclasses import dataclass, field
from math import inf

import pytest

from dovetail.core.allowance import BRIEF_SECONDS
from dovetail.services.picture import Key
from dovetail.services.searches import (
    CUT_PAUSE_SECONDS,
    LONGEST_CUT_PAUSE_SECONDS,
    REST,
    TURN_SECONDS,
    Searches,
)
from dovetail.services.turns import AT_ONCE, Turns
from dovetail.services.waiting import BURST, CROWD, Rank, Waiting

A, B, C = ("a", "1"), ("a", "2"), ("b", "1")


def by_name(key: Key) -> Rank:
    """All pods are alike but for their names."""
    return (False, 0, 0, 0, "", *key)


@dataclass
class Stand:
    """Searches on a clock that stands still until a test moves it; it needs a running loop."""

    now: float = 1000.0
    searches: Searches = field(init=False)

    def __post_init__(self) -> None:
        self.searches = Searches(clock=lambda: self.now, rank=by_name, mark=lambda _: None)

    def cut(self, key: Key, seconds: float = 2.0, state: object = 1) -> None:
        """A brief search, then a long one, both in vain; the second waits for nobody."""
        assert self.searches.may_take(key, state) == BRIEF_SECONDS
        self.searches.was_brief(key, state)
        while not self.searches.may_take(key, state):
            self.now += 1
        self.searches.was_cut(key, state, seconds)

    def wait_for(self, key: Key, most: float) -> float:
        """The seconds until the pod may search again."""
        began = self.now
        while not self.searches.may_take(key, 1):
            self.now += 0.25
            assert self.now - began <= most
        return self.now - began


async def test_searches_that_are_cut_have_a_tenth_of_the_time() -> None:
    """Twenty pods of two namespaces search for two seconds each, whenever they may."""
    stand = Stand()
    keys = [(namespace, str(number)) for namespace in "ab" for number in range(10)]
    for key in keys:
        stand.searches.was_brief(key, 1)
    began, searched = stand.now, 0.0

    while stand.now - began < 1000:
        turn = next((key for key in keys if stand.searches.may_take(key, 1) == inf), None)
        stand.now += 2.0 if turn else 0.5
        if turn:
            stand.searches.was_cut(turn, 1, 2.0)
            searched += 2.0

    assert 0.05 <= searched / 1000 <= 1 / (1 + REST) + 0.01


async def test_turns_go_to_the_namespace_that_has_used_least() -> None:
    """Ten pods of one namespace do not keep the one of another from its turn."""
    stand = Stand()
    for key in (A, B, *(("a", str(number)) for number in range(3, 11))):
        stand.searches.was_brief(key, 1)
    assert stand.searches.may_take(A, 1) == inf
    stand.searches.was_brief(C, 1)
    stand.searches.was_cut(A, 1, 2.0)
    stand.now += REST * 2.0

    assert not stand.searches.may_take(B, 1)
    assert stand.searches.may_take(C, 1) == inf


@pytest.mark.parametrize("namespaces", [1, 100])
async def test_pods_that_are_made_anew_keep_no_other_from_its_turn(namespaces: int) -> None:
    """They go when they have had their turn, and others come, of the same namespace or of new ones."""
    stand = Stand()
    waiting = ("z", "1")
    if namespaces == 1:
        stand.cut(waiting)
    else:
        stand.searches.was_brief(waiting, 1)

    for number in range(20):
        fresh = (f"a{number % namespaces}", str(number))
        stand.searches.was_brief(fresh, 1)
        while not (turn := next((key for key in (fresh, waiting) if stand.searches.may_take(key, 1)), None)):
            stand.now += 1.0
        if turn == waiting:
            return
        stand.searches.was_cut(fresh, 1, 2.0)
        stand.searches.forget(fresh)
        stand.now += 1.0

    pytest.fail("the pod that waits never had its turn")


async def test_marks_do_not_shorten_the_pause_of_a_pod_that_was_cut() -> None:
    """Whoever marks it: until its time has come it may not search."""
    stand = Stand()
    stand.cut(A, seconds=0.01)

    allowed = [stand.searches.may_take(A, 1) for _ in range(100)]
    waited = stand.wait_for(A, most=CUT_PAUSE_SECONDS)

    assert allowed == [0.0] * 100
    assert waited == CUT_PAUSE_SECONDS


async def test_pauses_double_up_to_a_limit() -> None:
    """A search that never ends is tried every five minutes in the end."""
    stand = Stand()
    stand.cut(A, seconds=0.0)
    pauses = []

    for _ in range(9):
        pauses.append(stand.wait_for(A, most=LONGEST_CUT_PAUSE_SECONDS))
        stand.searches.was_cut(A, 1, 0.0)

    assert pauses[:3] == [CUT_PAUSE_SECONDS, 2 * CUT_PAUSE_SECONDS, 4 * CUT_PAUSE_SECONDS]
    assert pauses[-1] == LONGEST_CUT_PAUSE_SECONDS


async def test_what_the_pod_could_use_brings_it_back_at_a_bounded_rate() -> None:
    """A flood of such changes gives a search of two seconds no more than a tenth of the time."""
    stand = Stand()
    stand.cut(A)
    for _ in range(8):
        stand.wait_for(A, most=LONGEST_CUT_PAUSE_SECONDS)
        stand.searches.was_cut(A, 1, 2.0)
    began, searched = stand.now, 0

    while stand.now - began < 500:
        stand.searches.hear([A])
        if stand.searches.may_take(A, 1):
            stand.searches.was_cut(A, 1, 2.0)
            searched += 1
        stand.now += 0.5

    assert 20 <= searched <= 500 / (REST * 2.0) + 1


async def test_a_pod_with_other_claims_is_another_search() -> None:
    """It is tried at once, briefly, and what was is forgotten."""
    stand = Stand()
    stand.cut(A)

    assert stand.searches.may_take(A, 2) == BRIEF_SECONDS


async def test_a_turn_that_is_not_used_goes_to_another() -> None:
    """A pod that cannot take its turn keeps nobody waiting for long."""
    stand = Stand()
    stand.searches.was_brief(A, 1)
    stand.searches.was_brief(C, 1)
    assert not stand.searches.may_take(C, 1)

    stand.now += TURN_SECONDS

    assert stand.searches.may_take(C, 1) == inf
    assert list(stand.searches.cut) == [C]


@pytest.mark.parametrize("end", ["forget", "not made", "answer"])
async def test_a_search_that_ends_otherwise_leaves_the_turn_to_others(end: str) -> None:
    """The pod is deleted, is decided about later, or gets its answer while its turn lasts."""
    stand = Stand()
    stand.searches.was_brief(A, 1)
    assert stand.searches.may_take(A, 1) == inf
    stand.searches.was_brief(C, 1)

    if end == "forget":
        stand.searches.forget(A)
    if end in ("forget", "not made"):
        stand.searches.was_not_made(A)
    else:
        stand.searches.was_answered(A, 1.0)

    assert stand.wait_for(C, most=TURN_SECONDS) <= TURN_SECONDS


async def test_the_first_in_rank_has_the_next_turn() -> None:
    """Whoever asked first."""
    turns, order = Turns(by_name), []
    gate = asyncio.Event()

    async def decide(key: Key) -> None:
        async with turns.turn(key):
            order.append(key)
            await gate.wait()

    busy = [asyncio.create_task(decide(("z", str(number)))) for number in range(AT_ONCE)]
    await asyncio.sleep(0)
    later = [asyncio.create_task(decide(key)) for key in (C, B, A)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*busy, *later)

    assert order[AT_ONCE:] == [A, B, C]


async def test_who_gives_up_waiting_for_a_turn_blocks_nobody() -> None:
    """A task that is cancelled, waiting or with its turn, leaves the turn to the others."""
    turns = Turns(by_name)
    gate = asyncio.Event()

    async def decide(key: Key) -> None:
        async with turns.turn(key):
            await gate.wait()

    tasks = [asyncio.create_task(decide(("a", str(number)))) for number in range(AT_ONCE + 3)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    async with asyncio.timeout(1), turns.turn(A), turns.turn(B):
        pass


async def test_one_namespace_never_has_all_workers() -> None:
    """However many of its pods wait long, others find a worker."""
    workers = 48
    queue = Waiting(lambda key: (0, "", *key), workers=workers)
    for number in range(100):
        queue.mark(("a", str(number)))
    busy = [await queue.next() for _ in range(CROWD * workers // (CROWD + 1))]
    refused = asyncio.create_task(queue.next())
    await asyncio.sleep(0.01)
    is_refused = not refused.done()

    queue.mark(C)
    first = await asyncio.wait_for(refused, 1)
    for key in busy[:3]:
        queue.done(key)

    assert is_refused
    assert first == C
    assert (await asyncio.wait_for(queue.next(), 1))[0] == "a"


async def test_news_that_keeps_coming_makes_nobody_wait_for_ever() -> None:
    """A more urgent pod that is busy for long is waited for once, not once for each change."""
    queue = Waiting(lambda key: (0, "", *key))
    queue.mark(A)
    await queue.next()
    queue.mark(B)
    waiting = asyncio.create_task(queue.next())

    async with asyncio.timeout(BURST):
        while not waiting.done():
            queue.mark_in_turn([A])
            await asyncio.sleep(0.05)

    assert await waiting == B
