"""When devices are taken back from a pod, and what follows (design, section 2.8)."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from dovetail.api.kinds import POD
from dovetail.errors import ClusterError, NotLeading
from dovetail.services import claims
from dovetail.services.attempts import Attempts, of_taking_back
from dovetail.services.avoidance import Avoidance
from dovetail.services.conditions import Conditions
from dovetail.services.gates import is_gated
from dovetail.services.holdings import claims_of, is_bound
from dovetail.services.metrics import Metrics
from dovetail.services.notices import Notices
from dovetail.services.picture import Json, Key, Picture, key_of
from dovetail.services.release import is_done
from dovetail.services.takeback import TakeBack

log = structlog.get_logger(__name__)

TAKEN_BACK = "TakenBack"
"""The reason of the condition and event."""

REST_SECONDS = 1.0
"""So long after kube-scheduler took devices back they are not given anew.

In that time it nominates the node where it evicts somebody for the pod (V-20), and it sees the claim
without devices: from a change of devices that it sees in one step it does not learn (R9).
"""

SCHEDULED = "PodScheduled"
UNSCHEDULABLE = "Unschedulable"


class Retraction:
    """Watches pods that have devices but no node, and takes the devices back when that lasts too long."""

    def __init__(
        self,
        *,
        takeback: TakeBack,
        picture: Picture,
        avoidance: Avoidance,
        attempts: Attempts,
        conditions: Conditions,
        notices: Notices,
        metrics: Metrics,
        patience_seconds: float,
        clock: Callable[[], float],
        users: Callable[[Key], Iterable[Key]],
        served_again: Callable[[Key], None],
    ) -> None:
        self._takeback = takeback
        self._picture = picture
        self._avoidance = avoidance
        self._attempts = attempts
        self._conditions = conditions
        self._notices = notices
        self._metrics = metrics
        self._patience = patience_seconds
        self._clock = clock
        self._users = users
        self._served_again = served_again
        self._stuck_since: dict[Key, tuple[str, float]] = {}
        self._under_way: dict[Key, asyncio.Task[None]] = {}
        self._rests_until: dict[Key, float] = {}

    def is_under_way(self, key: Key) -> bool:
        """Whether devices are being taken back from the pod at this moment."""
        return key in self._under_way

    def forget(self, key: Key) -> None:
        """The pod is gone."""
        self._stuck_since.pop(key, None)
        self._rests_until.pop(key, None)

    def rest(self, key: Key) -> float:
        """How many seconds a pod that kube-scheduler has taken devices from is still left alone."""
        left = self._rests_until.get(key, 0.0) - self._clock()
        if left <= 0:
            self._rests_until.pop(key, None)
        return max(left, 0.0)

    async def finish(self) -> None:
        """Give up what is under way: between its two steps it may be left as it is."""
        for task in list(self._under_way.values()):
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    def watch(self, key: Key, pod: Json) -> float:
        """Look at a pod that has its devices.

        Returns after how many seconds to look again; 0 where the pod is well or devices are being taken back.
        """
        if is_bound(pod) or not self._is_stuck(pod) or not self._sole_claims(pod):
            self._stuck_since.pop(key, None)
            return 0.0
        uid = pod["metadata"]["uid"]
        known, since = self._stuck_since.get(key, ("", 0.0))
        if known != uid:
            since = self._clock()
            self._stuck_since[key] = (uid, since)
        rest = max(since + self._patience - self._clock(), self._attempts.wait([of_taking_back(key)]))
        if rest > 0:
            return rest
        self._begin(key, pod)
        return 0.0

    async def now(self, key: Key, pod: Json, held: Iterable[Json], *, cause: str) -> bool:
        """Take back at once those of the claims that a gated pod has for itself; False where it has none."""
        sole = self.sole(pod, held)
        if not sole:
            return False
        taken = await self._takeback.take_back(pod, sole)
        self._metrics.taken_back.labels(cause).inc()
        log.info("taken_back", pod="/".join(key), cause=cause, claims=len(taken.claims), moved=taken.moved)
        return True

    def scheduler_took_back(self, pod: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
        """kube-scheduler may have deallocated a claim of a pod that still waits: avoid the node (S42)."""
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        if is_bound(pod) or is_gated(pod) or is_done(pod) or self.is_under_way(key):
            return False
        node = claims.node_of(claim)
        if node is not None:
            self._avoidance.avoid(key, node)
        self._rests_until[key] = self._clock() + REST_SECONDS
        self._metrics.taken_back.labels("scheduler").inc()
        log.info("scheduler_took_back", pod="/".join(key), node=node)
        return True

    def _begin(self, key: Key, pod: Json) -> None:
        self._stuck_since.pop(key, None)
        self._attempts.count([of_taking_back(key)])
        task = asyncio.create_task(self._take_back(key, pod), name=f"take back {'/'.join(key)}")
        self._under_way[key] = task
        task.add_done_callback(lambda task: self._over(key, task))

    def _over(self, key: Key, task: asyncio.Task[None]) -> None:
        self._under_way.pop(key, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("fault", pod="/".join(key), exc_info=error)
        self._served_again(key)

    async def _take_back(self, key: Key, pod: Json) -> None:
        held = self._sole_claims(pod)
        nodes = sorted({node for claim in held if (node := claims.node_of(claim))})
        try:
            taken = await self._takeback.take_back(pod, held)
            if taken.moved or not taken.claims:
                log.info("not_taken_back", pod="/".join(key), moved=taken.moved)
                return
            for node in nodes:
                self._avoidance.avoid(key, node)
            self._metrics.taken_back.labels("unschedulable").inc()
            log.info("taken_back", pod="/".join(key), cause="unschedulable", nodes=nodes)
            where = f" on node {', '.join(nodes)}" if nodes else ""
            sentence = (
                f"the devices{where} were taken back: kube-scheduler could not place the pod there: "
                f"{_scheduler_says(pod)}"
            )
            self._notices.say(pod, "Warning", TAKEN_BACK, sentence)
            await self._conditions.wait(self._picture.find(POD, key) or pod, TAKEN_BACK, sentence)
        except (ClusterError, NotLeading) as error:
            log.warning("not_taken_back", pod="/".join(key), error=str(error))

    def _sole_claims(self, pod: Json) -> list[Json]:
        return self.sole(pod, claims_of(self._picture, pod))

    def sole(self, pod: Json, held: Iterable[Json]) -> list[Json]:
        """The allocated claims that Dovetail wrote and that no other pod counts on."""
        return [
            claim
            for claim in held
            if claims.is_allocated(claim)
            and claims.is_written_by_us(claim)
            and claims.consumers(claim) <= {pod["metadata"]["uid"]}
            and not any(self._counts_on(other, pod) for other in self._users(key_of(claim)))
        ]

    def _counts_on(self, other: Key, pod: Json) -> bool:
        """Another pod that may be on its way to its node without a reservation."""
        body = self._picture.find(POD, other)
        return (
            body is not None
            and body["metadata"]["uid"] != pod["metadata"]["uid"]
            and claims.reserves_itself(body)
            and not is_gated(body)
            and not is_done(body)
        )

    @staticmethod
    def _is_stuck(pod: Json) -> bool:
        condition = _scheduled(pod)
        return condition.get("status") == "False" and condition.get("reason") == UNSCHEDULABLE


def _scheduled(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == SCHEDULED:
            found: Mapping[str, Any] = condition
            return found
    return {}


def _scheduler_says(pod: Mapping[str, Any]) -> str:
    return str(_scheduled(pod).get("message") or "no reason given")
