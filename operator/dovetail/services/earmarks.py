"""Keeping devices for pods that need several at once: when it is looked for them, and when it ends."""

import asyncio
import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from time import thread_time

import structlog

from dovetail.api.kinds import POD
from dovetail.core.budget import Budget
from dovetail.core.earmarks import Contender, Earmark, choose
from dovetail.core.planner import PlanSettings
from dovetail.core.reasons import Reason
from dovetail.core.terms import Terms
from dovetail.services.avoidance import Avoidance
from dovetail.services.metrics import Metrics
from dovetail.services.mind import Mind
from dovetail.services.notices import Notices
from dovetail.services.picture import Json, Key, Picture
from dovetail.services.waiting import Urgency

log = structlog.get_logger(__name__)

FIRST_SECONDS = 0.2
"""So soon after a refusal it is looked for devices to keep."""

AGAIN_SECONDS = 1.0
"""So often what is kept is looked at again."""

MOST = 4
"""For so many pods devices are kept at a time, for one of each namespace."""

CONTENDERS = 8
"""So many of the most urgent pods that wait are asked about."""

STEPS = 50_000
SECONDS = 0.02
"""What one look may cost for one pod."""

HELD = "DevicesHeld"


def _budget() -> Budget:
    began = thread_time()
    return Budget(STEPS, is_over=lambda: thread_time() - began > SECONDS)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A pod that waits."""

    urgency: Urgency
    key: Key
    uid: str


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
        self._held: dict[Key, Earmark] = {}
        self._is_wanted = False
        self._look: asyncio.Task[None] | None = None

    def consider(self) -> None:
        """A pod has been refused: something may be kept for it."""
        self._is_wanted = True
        if self._seconds > 0 and self._look is None:
            self._look = asyncio.create_task(self._look_on(), name="earmarks")

    async def finish(self) -> None:
        """Look no more."""
        self._seconds = 0
        if self._look is not None:
            self._look.cancel()
            await asyncio.gather(self._look, return_exceptions=True)

    async def _look_on(self) -> None:
        """Look as long as something is kept, or somebody asks for it."""
        await asyncio.sleep(FIRST_SECONDS)
        while self._is_wanted or self._held:
            self._is_wanted = False
            try:
                await self._look_once()
            except Exception:
                # A fault of ours must not keep devices from everybody.
                log.exception("earmarks_not_chosen")
                self._keep(())
            await asyncio.sleep(AGAIN_SECONDS)
        self._look = None

    async def _look_once(self) -> None:
        self._end_terms()
        contenders = [self._contender(each) for each in self._contending()]
        chosen: tuple[Earmark, ...] = ()
        if contenders:
            chosen = await self._mind.ask(
                lambda world: choose(world, contenders, settings=self._plan, budget=_budget, most=MOST)
            )
        self._keep(chosen)

    def _contending(self) -> list[_Waiting]:
        """The most urgent pods for which something may be kept now, one of each namespace."""
        now = self._clock()
        found = (self._about(key) for key, reason in self._waiting().items() if reason == Reason.NOTHING_FITS)
        able = [each for each in found if each is not None and self._terms.may_hold(each.uid, now)]
        first: dict[str, _Waiting] = {}
        for each in heapq.nsmallest(len(able), able, key=lambda each: each.urgency):
            first.setdefault(each.key[0], each)
        return list(first.values())[:CONTENDERS]

    def _about(self, key: Key) -> _Waiting | None:
        pod = self._picture.find(POD, key)
        return _Waiting(self._urgency(key), key, pod["metadata"]["uid"]) if pod is not None else None

    def _contender(self, each: _Waiting) -> Contender:
        spent = self._terms.spent_nodes(-each.urgency[0], self._clock())
        held = self._held.get(each.key)
        return Contender(each.key, each.uid, held, self._avoidance.nodes(each.key) | spent)

    def _end_terms(self) -> None:
        """Forget pods that wait no longer, and end what has lasted long enough."""
        now = self._clock()
        for key, held in tuple(self._held.items()):
            pod = self._picture.find(POD, key)
            if pod is None or pod["metadata"]["uid"] != held.uid or key not in self._waiting():
                self._terms.forget(held.uid)
            elif self._terms.left(held.uid, now) <= 0:
                self._terms.end_in_vain(held.uid, held.node, -held.rank[0], now)
                log.info("hold_ended", holder="/".join(key), node=held.node)

    def _keep(self, chosen: Iterable[Earmark]) -> None:
        """Let decisions see what is kept from now on; who need not wait for it any longer is looked at."""
        now = self._clock()
        before, self._held = self._held, {each.pod: each for each in chosen}
        for key, held in self._held.items():
            self._terms.hold(held.uid, now)
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
