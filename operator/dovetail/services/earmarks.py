"""Keeping devices for pods that need several at once: when it is looked for them, and when it ends."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from time import thread_time

import structlog

from dovetail.api.kinds import POD
from dovetail.core.budget import Budget
from dovetail.core.contest import Candidate, Contest
from dovetail.core.earmarks import Contender, Earmark, choose
from dovetail.core.planner import PlanSettings
from dovetail.core.reasons import Reason
from dovetail.core.terms import Terms
from dovetail.services.avoidance import Avoidance
from dovetail.services.metrics import Metrics
from dovetail.services.mind import Mind
from dovetail.services.notices import Notices
from dovetail.services.picture import Json, Key, Picture
from dovetail.services.tenures import Tenures
from dovetail.services.waiting import Urgency

log = structlog.get_logger(__name__)

FIRST_SECONDS = 0.2
"""So soon after a refusal it is looked for devices to keep."""

AGAIN_SECONDS = 1.0
"""So often what is kept is looked at again."""

MOST = 4
"""For so many pods devices are kept at a time, for one of each namespace."""

CONTENDERS = 8
"""About so many of the pods that wait it is asked at a time; see `Contest`."""

STEPS = 50_000
SECONDS = 0.02
"""What one look may cost for one pod."""

HELD = "DevicesHeld"


def _budget() -> Budget:
    began = thread_time()
    return Budget(STEPS, is_over=lambda: thread_time() - began > SECONDS)


class Earmarks:
    """Tells the mind what is kept for whom. It belongs to the event loop."""

    def __init__(
        self,
        *,
        mind: Mind,
        picture: Picture,
        avoidance: Avoidance,
        notices: Notices,
        metrics: Metrics,
        plan: PlanSettings,
        seconds: float,
        waiting: Callable[[], Mapping[Key, str]],
        urgency: Callable[[Key], Urgency],
        mark: Callable[[Iterable[Key]], None],
        clock: Callable[[], float],
    ) -> None:
        self._mind = mind
        self._picture = picture
        self._avoidance = avoidance
        self._notices = notices
        self._metrics = metrics
        self._plan = plan
        self._seconds = seconds
        self._waiting = waiting
        self._urgency = urgency
        self._mark = mark
        self._clock = clock
        self._terms = Terms(seconds)
        self._tenures = Tenures(self._terms, picture)
        self._contest = Contest()
        self._held: dict[Key, Earmark] = {}
        self._news: set[Key] = set()
        """The pods that were refused since they were asked about last."""
        self._woken = asyncio.Event()
        self._look: asyncio.Task[None] | None = None

    def consider(self, key: Key) -> None:
        """A pod has been refused: something may be kept for it."""
        if self._seconds <= 0:
            return
        self._news.add(key)
        self._woken.set()
        if self._look is None:
            self._look = asyncio.create_task(self._look_on(), name="earmarks")

    async def finish(self) -> None:
        """Look no more."""
        self._seconds = 0
        if self._look is not None:
            self._look.cancel()
            await asyncio.gather(self._look, return_exceptions=True)

    async def _look_on(self) -> None:
        """Look as long as something is held, somebody asks for it, or may get it after a rest."""
        await asyncio.sleep(FIRST_SECONDS)
        while True:
            try:
                await self._look_once()
            except Exception:
                # A fault of ours must not keep devices from everybody.
                log.exception("earmarks_not_chosen")
                self._keep(())
            if self._news or self._held or self._tenures.are_open:
                await asyncio.sleep(AGAIN_SECONDS)
            elif not await self._rest():
                break
        self._look = None

    async def _rest(self) -> bool:
        """Wait until a pod is refused, or a rest is over, which concerns all; whether there is one."""
        seconds = self._terms.seconds_left(self._clock())
        if seconds is None or not self._lacking():
            return False
        self._woken.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
            await asyncio.sleep(FIRST_SECONDS)
        except TimeoutError:
            self._news |= self._lacking()
        return True

    def _lacking(self) -> set[Key]:
        """The pods for which there are no devices."""
        return {key for key, why in self._waiting().items() if why == Reason.NOTHING_FITS}

    async def _look_once(self) -> None:
        self._end_terms()
        waiting = self._candidates()
        self._news &= {each.pod for each in waiting}
        asked = self._contest.pick(waiting, CONTENDERS, self._clock())
        self._news.difference_update(each.pod for each in asked)
        chosen: tuple[Earmark, ...] = ()
        try:
            if asked:
                chosen = await self._choose([self._contender(each) for each in asked])
        finally:
            self._contest.tried(asked, {each.uid for each in chosen}, self._clock())
        self._keep(chosen)

    async def _choose(self, contenders: list[Contender]) -> tuple[Earmark, ...]:
        return await self._mind.ask(
            lambda world: choose(world, contenders, settings=self._plan, budget=_budget, most=MOST, of_each=1)
        )

    def _candidates(self) -> list[Candidate]:
        """The pods for which something may be kept now."""
        found = (self._candidate(key) for key in self._lacking())
        return [each for each in found if each is not None]

    def _candidate(self, key: Key) -> Candidate | None:
        pod = self._picture.find(POD, key)
        if pod is None:
            return None
        now, uid, rank = self._clock(), pod["metadata"]["uid"], self._urgency(key)
        held = self._held.get(key)
        is_held_for = held is not None and held.uid == uid
        if self._terms.rests(uid, now) or not (
            is_held_for or self._terms.may_hold(uid, key[0], -rank[0], now)
        ):
            return None
        return Candidate(key, uid, rank, self._terms.owed(key[0], now), is_held_for, key in self._news)

    def _contender(self, each: Candidate) -> Contender:
        now, priority = self._clock(), -each.rank[0]
        held = self._held.get(each.pod) if each.is_held_for else None
        nodes = self._terms.spent_nodes(priority, now) | self._tenures.nodes(priority, each.uid)
        if held is not None:
            # What others owe ends nothing that is kept already.
            nodes -= {held.node}
        return Contender(
            each.pod,
            each.uid,
            held,
            self._avoidance.nodes(each.pod) | nodes,
            self._terms.spent_pools(priority, now) | self._tenures.pools(priority, each.uid),
            each.owed,
        )

    def _end_terms(self) -> None:
        """End what has lasted long enough, and see what became of those for which nothing is kept now."""
        now = self._clock()
        going_on: list[Earmark] = []
        for key, held in self._held.items():
            if self._terms.left(held.uid, now) <= 0:
                self._tenures.end(held.uid, now)
                log.info("hold_ended", holder="/".join(key), node=held.node)
            elif (pod := self._picture.find(POD, key)) is not None and pod["metadata"]["uid"] == held.uid:
                going_on.append(held)
        # Before anybody is chosen: who comes after it is to find it charged.
        self._tenures.follow(going_on, now)
        self._tenures.settle(now)

    def _keep(self, chosen: Iterable[Earmark]) -> None:
        """Let decisions see what is kept from now on; who need not wait for it any longer is looked at."""
        now = self._clock()
        before, self._held = self._held, {each.pod: each for each in chosen}
        self._tenures.follow(self._held.values(), now)
        for key, held in self._held.items():
            # Where one claim has all that the pod waits for, there is nothing to tell.
            if (
                key not in before
                and len(held.waits_for) > 1
                and (pod := self._picture.find(POD, key)) is not None
            ):
                self._tell(pod, held)
        self._mind.earmarks = tuple(self._held.values())
        self._metrics.held_pods.set(len(self._held))
        if any(self._held.get(key) != held for key, held in before.items()):
            waiting = self._waiting()
            self._mark([key for key, reason in waiting.items() if reason == Reason.HELD_FOR_ANOTHER])

    def _tell(self, pod: Json, held: Earmark) -> None:
        log.info("devices_held", holder="/".join(held.pod), node=held.node, devices=len(held.devices))
        self._notices.say(
            pod,
            "Normal",
            HELD,
            f"{len(held.devices)} devices of node {held.node} are held for the pod, for {self._seconds:g} "
            "seconds at most: less urgent pods do not get them",
        )
