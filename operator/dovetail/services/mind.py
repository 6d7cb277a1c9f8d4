"""Decisions beside the event loop: one thread owns the World, and everything else only sends it letters.

The World is never shared.
Changes are posted from the event loop and taken in by the thread, in order, before it answers the next
question; so each decision sees everything that was posted before it, and what it decided is assumed
in the World at once, so that the next decision does not give the same devices away again.
Questions only read, so each may be ended anywhere; changes are taken in whole.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from time import monotonic, thread_time
from typing import Any, TypeVar

import structlog

from dovetail.api.kinds import CLAIM, POD
from dovetail.api.pods import Pod
from dovetail.core.budget import Budget
from dovetail.core.decisions import Cut, Decision, Nothing, Place, Reserve
from dovetail.core.earmarks import Earmark, plan_beside
from dovetail.core.extended_holds import settle
from dovetail.core.features import Features
from dovetail.core.generation import Step, steps_for
from dovetail.core.planner import PlanSettings
from dovetail.core.reasons import Reason
from dovetail.core.relevance import known_of
from dovetail.core.world import Change as Meaning
from dovetail.core.world import Effect, Problem, World
from dovetail.errors import TooCostly
from dovetail.services import claims
from dovetail.services.costs import QUESTION_SECONDS, Limits, Restraint, content_of_claims, content_of_object
from dovetail.services.digests import Digests
from dovetail.services.holdings import claim_names
from dovetail.services.picture import Change, Json, Key
from dovetail.services.threads import WorkThread

__all__ = ["Limits", "Mind", "Verdict"]

log = structlog.get_logger(__name__)

T = TypeVar("T")

DRAIN_AFTER_SECONDS = 0.02
"""Changes come in bursts: the thread is woken once for what arrives within this time."""


LEFT_ALONE = (
    "Deciding about the pod's claims took more time or memory than a decision may: they are left alone for a "
    "while, and tried at once when they change."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision, and the claims it concerns as they were when it was made: writes carry their versions."""

    decision: Decision
    claims: Mapping[Key, Json] = field(default_factory=dict)
    seconds: float = 0.0
    is_early: bool = False
    """Nothing was decided: a claim is being written for another pod, or it is not this pod's turn."""
    is_brief: bool = False
    """The decision was cut because it had less time than one may take."""
    cpu_seconds: float = 0.0
    """What the decision has cost the thread."""


@dataclass(slots=True)
class _Assumed:
    """A claim that is being written: how it will be, and how the API server last showed it."""

    uid: str
    status: Json
    real: Json


class Mind:
    """Asks the World, which lives in a thread of its own, and keeps it true to the picture.

    All methods are called from the event loop.
    """

    def __init__(
        self,
        world: World,
        *,
        plan: PlanSettings,
        limits: Limits,
        now: Callable[[], str],
        clock: Callable[[], float] = monotonic,
        restraint: Restraint | None = None,
    ) -> None:
        """`restraint` ends what runs past its limits, and remembers it."""
        self.earmarks: tuple[Earmark, ...] = ()
        """What is kept for pods that wait: decisions about less urgent ones leave it."""
        self._world = world
        self._plan_settings = plan
        self._limits = limits
        self._now = now
        self._clock = clock
        self._owed: set[Future[Any]] = set()
        """What the thread has been given to do and has not done yet."""
        self._moved = clock()
        """When the thread last took something up, or was given something to do while it had nothing."""
        self._letters: deque[Change | Key] = deque()
        self._assumed: dict[Key, _Assumed] = {}
        self._thread = WorkThread("mind")
        self._restraint = restraint or Restraint()
        self._digests = Digests()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._draining = False
        self._is_closed = False
        self._news = 0
        """Counts, in the thread, what concerns every waiting pod; the loop knows up to `_heard`."""
        self._heard = 0
        self._listener: Callable[[Sequence[Meaning]], None] = lambda _: None
        self._complain: Callable[[Problem, Json], None] = lambda *_: None

    def on_meaning(self, listener: Callable[[Sequence[Meaning]], None]) -> None:
        """Call `listener`, on the event loop, with what changes mean for waiting pods."""
        self._listener = listener

    def on_problem(self, listener: Callable[[Problem, Json], None]) -> None:
        """Call `listener`, on the event loop, with every object that turns out to be malformed."""
        self._complain = listener

    def post(self, letter: Change) -> None:
        """Take in a change soon, and in any case before the next answer."""
        self._letters.append(letter)
        self._drain_soon()

    def withdraw(self, keys: Collection[Key]) -> None:
        """What was assumed of these claims will not come true."""
        self._letters.extend(keys)
        self._drain_soon()

    async def decide(
        self,
        key: Key,
        avoid: Collection[str],
        *,
        first: str = "",
        in_turn: bool = False,
        cpu_seconds: float = inf,
    ) -> Verdict:
        """Decide about a pod, and assume what is going to be written; node `first`, if any, is tried first.

        `cpu_seconds` is what the decision may cost, besides the limits that every decision has.
        With `in_turn` nothing is decided on news that the listener has not heard yet:
        they may be what a more urgent pod waits for.
        """
        heard = self._heard
        return await self._asked(
            lambda: (
                Verdict(Nothing(), is_early=True)
                if in_turn and self._news != heard
                else self._decide(self._world, key, avoid, first, cpu_seconds)
            )
        )

    async def set_features(self, features: Features) -> None:
        """Decide with these gates from now on."""
        await self._asked(lambda: self._world.set_features(features))

    async def missing_claims(self, key: Key) -> tuple[Step, ...]:
        """What has to be made, adopted or reported for the templates of a pod."""
        return await self.ask(lambda world: _steps(world, key))

    async def ask(self, question: Callable[[World], T], *, seconds: float = QUESTION_SECONDS) -> T:
        """Ask the World anything that leaves it as it is; the answer must not keep hold of it.

        Raises `TooCostly` where the answer takes longer than others can be kept waiting.
        """
        return await self._asked(lambda: self._restraint.ask(self._world, question, seconds))

    @property
    def silent_seconds(self) -> float:
        """How long the thread has had something to do and taken nothing up: it hangs, or is gone.

        Zero while it has nothing to do; what waits behind other questions that are answered does not count.
        """
        return self._clock() - self._moved if self._owed else 0.0

    def hurry(self) -> None:
        """The process ends: the question that the thread is busy with is not answered any more."""
        self._restraint.hurry()

    def close(self) -> None:
        """Stop the thread after the question that it is busy with."""
        self._is_closed = True
        self._thread.close()
        self._restraint.close()

    def _drain_soon(self) -> None:
        if not self._draining:
            self._draining = True
            self._loop = asyncio.get_running_loop()
            self._loop.call_later(DRAIN_AFTER_SECONDS, self._drain)

    def _drain(self) -> None:
        self._draining = False
        if not self._is_closed:
            self._give(self._take_in)

    def _give(self, work: Callable[[], T]) -> Future[T]:
        if not self._owed:
            self._moved = self._clock()
        owed = self._thread.submit(work)
        self._owed.add(owed)
        owed.add_done_callback(self._owed.discard)
        return owed

    async def _asked(self, answer: Callable[[], T]) -> T:
        self._loop = asyncio.get_running_loop()
        return await asyncio.wrap_future(self._give(partial(self._answer, answer)))

    def _answer(self, answer: Callable[[], T]) -> T:
        self._take_in()
        return answer()

    def _take_in(self) -> None:
        meanings: list[Meaning] = []
        self._moved = self._clock()
        while self._letters:
            letter = self._letters.popleft()
            try:
                meanings += self._read(letter)
            except Exception:
                # One object that the World cannot digest must not stop the others.
                log.exception("change_not_understood", key=str(getattr(letter, "key", letter)))
            self._moved = self._clock()
        if any(meaning.effect is Effect.EVERYONE for meaning in meanings):
            self._news += 1
        if meanings and self._loop is not None:
            self._loop.call_soon_threadsafe(self._hear, meanings, self._news)

    def _hear(self, meanings: Sequence[Meaning], news: int) -> None:
        """On the event loop: from now on waiting pods come in turn."""
        self._listener(meanings)
        self._heard = news

    def _read(self, letter: Change | Key) -> list[Meaning]:
        if not isinstance(letter, Change):
            return self._unassume(letter)
        if letter.kind is CLAIM and letter.key in self._assumed:
            return self._reconsider(letter)
        return self._show(letter.kind.name, letter.key, letter.after)

    def _show(self, kind: str, key: Key, body: Json | None) -> list[Meaning]:
        before = known_of(self._world, kind, key)
        meaning = self._world.drop(kind, *key) if body is None else self._put(kind, body)
        problem = self._world.problems.get((kind, key))
        if problem is not None and body is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._complain, problem, body)
        return [replace(meaning, before=before)] if meaning is not None else []

    def _put(self, kind: str, body: Json) -> Meaning | None:
        """Take in an object, unless doing so was what ended the process before."""
        with self._restraint.taking_in(content_of_object(kind, body)) as may:
            if may:
                return self._world.put(kind, body)
        return self._world.refuse(kind, body, "reading it costs too much")

    def _reconsider(self, change: Change) -> list[Meaning]:
        """The API server shows a claim that is being written: believe it once it is further than we are."""
        assumed = self._assumed[change.key]
        if change.after is None or change.after["metadata"].get("uid") != assumed.uid:
            del self._assumed[change.key]
            return self._show(CLAIM.name, change.key, change.after)
        assumed.real = change.after
        if claims.is_allocated(change.after) and claims.consumers(change.after) >= claims.consumers_in(
            assumed.status
        ):
            del self._assumed[change.key]
            return self._show(CLAIM.name, change.key, change.after)
        return self._show(CLAIM.name, change.key, change.after | {"status": assumed.status})

    def _unassume(self, key: Key) -> list[Meaning]:
        assumed = self._assumed.pop(key, None)
        return self._show(CLAIM.name, key, assumed.real) if assumed else []

    def _decide(
        self, world: World, key: Key, avoid: Collection[str], first: str, cpu_seconds: float
    ) -> Verdict:
        raw = world.raw(POD.name, *key)
        if raw is None:
            return Verdict(Nothing())
        if self._is_being_written(raw):
            return Verdict(Nothing(), is_early=True)
        started, began = self._clock(), thread_time()
        # Before, not within: it changes the World, and is never broken off.
        settle(world)
        content = content_of_claims(world, raw, self._digests)
        if self._restraint.rest(content):
            return Verdict(Cut(Reason.COSTS_TOO_MUCH, LEFT_ALONE))
        try:
            decision = self._restraint.decide(
                world, content, self._limits, lambda: self._plan(world, raw, avoid, first, cpu_seconds)
            )
        except TooCostly as error:
            if self._restraint.is_hurried:
                return Verdict(Nothing(), is_early=True)
            log.warning("decision_ended", pod="/".join(key), reason=str(error))
            decision = Cut(Reason.COSTS_TOO_MUCH, LEFT_ALONE)
        used = thread_time() - began
        is_brief = isinstance(decision, Cut) and used > cpu_seconds
        if not is_brief:
            self._restraint.learn(content, decision)
        planned_on = self._assume(world, raw, decision)
        return Verdict(decision, planned_on, self._clock() - started, is_brief=is_brief, cpu_seconds=used)

    def _plan(
        self, world: World, raw: Mapping[str, Any], avoid: Collection[str], first: str, cpu_seconds: float
    ) -> Decision:
        started, began = self._clock(), thread_time()
        budget = Budget(
            self._limits.steps,
            is_over=lambda: (
                self._is_closed
                or thread_time() - began > cpu_seconds
                or self._clock() - started > self._limits.seconds
            ),
        )
        pod = Pod.parse(raw)
        if first:
            status = pod.status.model_copy(update={"nominated_node_name": first})
            pod = pod.model_copy(update={"status": status})
        return plan_beside(
            world, pod, self.earmarks, settings=self._plan_settings, budget=budget, avoid=avoid
        )

    def _is_being_written(self, pod: Mapping[str, Any]) -> bool:
        """Whether a claim of the pod is under way for another one: its version will have changed."""
        namespace = pod["metadata"]["namespace"]
        return any((namespace, name) in self._assumed for name in claim_names(pod).values() if name)

    def _assume(self, world: World, pod: Mapping[str, Any], decision: Decision) -> dict[Key, Json]:
        wanted: dict[Key, Mapping[str, Any] | None] = {}
        match decision:
            case Place(grants=grants, reserve=reserve):
                wanted = {grant.claim: grant.allocation.body for grant in grants if grant.ours}
                wanted |= dict.fromkeys(reserve)
            case Reserve(claims=reserve):
                wanted = dict.fromkeys(reserve)
            case _:
                return {}
        planned_on: dict[Key, Json] = {}
        for key, allocation in wanted.items():
            raw = world.raw(CLAIM.name, *key)
            if raw is None:
                continue
            planned_on[key] = dict(raw)
            status = claims.status_with(raw, pod, allocation=allocation, now=self._now())
            self._assumed[key] = _Assumed(raw["metadata"].get("uid", ""), status, dict(raw))
            world.put(CLAIM.name, dict(raw) | {"status": status})
        return planned_on


def _steps(world: World, key: Key) -> tuple[Step, ...]:
    raw = world.raw(POD.name, *key)
    return steps_for(world, Pod.parse(raw)) if raw is not None else ()
