"""Asking for a decision: when a pod may have one, how much it may cost, and who pays for it."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import structlog

from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.changes import Change
from dovetail.core.decisions import Cut
from dovetail.core.reasons import Reason
from dovetail.core.relevance import concerned, usable_nodes
from dovetail.core.shares import Shares
from dovetail.errors import DovetailError
from dovetail.services import claims
from dovetail.services.avoidance import Avoidance
from dovetail.services.holdings import claims_of
from dovetail.services.metrics import Metrics
from dovetail.services.mind import Mind, Verdict
from dovetail.services.nominations import Nominations
from dovetail.services.picture import Json, Key, Picture
from dovetail.services.searches import Searches
from dovetail.services.turns import Turns
from dovetail.services.waiting import account_of

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.002
"""What a namespace pays for each decision besides its time: about what reading and writing cost."""

NODES_SECONDS = 1.0
"""How long it may take to tell which nodes a pod can use: the decision before has told them already."""

RELEVANCE_STEPS = 20_000
"""So many questions are asked about whom some changes concern: past that they concern everybody."""


@dataclass(frozen=True, slots=True)
class Deciding:
    """Decides about pods in the order of their rank, within what their namespaces may use."""

    mind: Mind
    picture: Picture
    avoidance: Avoidance
    nominations: Nominations
    searches: Searches
    turns: Turns
    shares: Shares
    metrics: Metrics
    clock: Callable[[], float]

    async def decide(self, key: Key, pod: Json, *, in_turn: bool) -> Verdict | None:
        """The decision about a pod; None while it is not its time: then it comes back by itself."""
        verdict = await self._ask(key, pod, in_turn=in_turn)
        if verdict is not None and verdict.is_brief:
            return await self._ask(key, pod, in_turn=in_turn) or verdict
        return verdict

    async def _ask(self, key: Key, pod: Json, *, in_turn: bool) -> Verdict | None:
        seconds = self.searches.may_take(key, _state_of(self.picture, pod))
        if not seconds:
            return None
        is_first = seconds < inf
        verdict: Verdict | None = None
        try:
            async with self.turns.turn(key):
                if is_first:
                    # Asked for now: others have been cut while it waited.
                    seconds = self.shares.first_searches.seconds(self.clock())
                verdict = await self._decide(key, in_turn=in_turn, cpu_seconds=seconds)
                # Before the turn ends: whose is next depends on it.
                self._charge(key, verdict, is_first=is_first)
        finally:
            if verdict is None or verdict.is_early:
                self.searches.was_not_made(key)
        if not verdict.is_early:
            # The mind may have seen claims that were not there when it was asked.
            await self._account(key, _state_of(self.picture, pod), verdict)
        return verdict

    async def _decide(self, key: Key, *, in_turn: bool, cpu_seconds: float) -> Verdict:
        # Where kube-scheduler has made room for the pod, what spoke against the node is over (V-20).
        nominated = self.nominations.node(key)
        avoided = self.avoidance.nodes(key) - {nominated}
        return await self.mind.decide(key, avoided, first=nominated, in_turn=in_turn, cpu_seconds=cpu_seconds)

    def _charge(self, key: Key, verdict: Verdict, *, is_first: bool) -> None:
        if verdict.is_early:
            return
        now, is_cut = self.clock(), isinstance(verdict.decision, Cut)
        for account in (key[0], account_of(key)):
            self.shares.charge(account, verdict.cpu_seconds + LOOK_SECONDS, now, wasted=is_cut)
        if is_cut and is_first:
            self.shares.charge_first(key[0], verdict.cpu_seconds, now)

    async def _account(self, key: Key, state: object, verdict: Verdict) -> None:
        self.metrics.decisions.labels(type(verdict.decision).__name__).inc()
        self.metrics.decision_seconds.observe(verdict.seconds)
        if not isinstance(verdict.decision, Cut):
            self.searches.was_answered(key, verdict.seconds)
        elif verdict.is_brief:
            self.searches.was_brief(key, state)
        else:
            self.searches.was_cut(key, state, verdict.seconds)
            if _was_ended(verdict):
                # Another look at the pod could be what had to be ended.
                return
            try:
                nodes = await self.mind.ask(lambda world: usable_nodes(world, key), seconds=NODES_SECONDS)
                self.searches.saw(key, nodes)
            except DovetailError as error:
                log.info("nodes_not_asked", error=str(error))

    async def hear(self, changes: tuple[Change, ...]) -> None:
        """Bring back earlier those of the pods that were cut which the changes could help."""
        pods = self.searches.views()
        try:
            helped = await self.mind.ask(
                lambda world: concerned(world, pods, changes, Budget(RELEVANCE_STEPS))
            )
        except (BudgetSpent, DovetailError):
            helped = tuple(key for key, _ in pods)
        self.searches.hear(helped)


def _was_ended(verdict: Verdict) -> bool:
    """Whether the decision escaped its budget."""
    return isinstance(verdict.decision, Cut) and verdict.decision.reason is Reason.COSTS_TOO_MUCH


def _state_of(picture: Picture, pod: Json) -> object:
    """What of a pod and its claims matters for a search: where it differs, the search is another one."""
    held = sorted((claim["metadata"]["uid"], claims.is_allocated(claim)) for claim in claims_of(picture, pod))
    return (pod["metadata"]["uid"], pod["spec"], held)
