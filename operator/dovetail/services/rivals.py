"""Keeping a gate shut while kube-scheduler may be giving the same devices to another pod (R2, R-A15, V-21).

Where a DeviceOwnership keeps kube-scheduler off the devices there is no rival, and nothing to wait for.
"""

from collections.abc import Callable, Collection, Sequence

import structlog

from dovetail.api.kinds import TAINT_RULE
from dovetail.core.overcommitment import is_overcommitted
from dovetail.core.rivals import first_rival
from dovetail.services import claims
from dovetail.services.clocks import seconds_since
from dovetail.services.mind import Mind
from dovetail.services.picture import Change, Json, Key, key_of
from dovetail.services.rereading import Rereading
from dovetail.services.suspects import Suspects

log = structlog.get_logger(__name__)

HOLD_SECONDS = 5.0
"""How long a gate stays shut because of rivals: kube-scheduler writes within milliseconds of choosing."""

SETTLE_SECONDS = 0.3
"""Where rivals are about, a gate stays shut so long in any case: one may have appeared just now."""

FIRST_LOOK_SECONDS = 0.1

YIELD_SECONDS = 3.0
"""How long Dovetail leaves the first choice to rivals that have just come, or been woken, together."""


class Rivals:
    """Says how long the gate of a pod that has just got its devices has to stay shut."""

    def __init__(
        self, *, mind: Mind, suspects: Suspects, rereading: Rereading, clock: Callable[[], float]
    ) -> None:
        self._mind = mind
        self._suspects = suspects
        self._rereading = rereading
        self._clock = clock
        self._since: dict[Key, tuple[object, float]] = {}
        self._yielded: dict[Key, float] = {}
        self._rules: dict[str, float] = {}

    def follow(self, change: Change) -> None:
        """Take in a change of the picture: a fence that is new does not count yet."""
        if change.kind is not TAINT_RULE:
            return
        if change.after is None:
            self._rules.pop(change.key[1], None)
        elif change.before is None or change.before["spec"] != change.after["spec"]:
            self._rules[change.key[1]] = self._clock()

    def forget(self, pod: Key) -> None:
        """The pod is gone, or has lost its devices."""
        self._since.pop(pod, None)
        self._yielded.pop(pod, None)

    async def yield_to(self, pod: Key, chosen: Collection[Key]) -> float:
        """For how many seconds not to write what was chosen for a pod, but to choose anew; 0 to go on.

        kube-scheduler is about to serve a rival that has just come.
        To be in its way is worse than to wait: 1.37 notes devices as a set, so that it takes a device which
        two claims held for free as soon as one of them gives it back.
        """
        fresh = self._suspects.fresh()
        if not fresh or not chosen:
            return 0.0
        waited = self._clock() - self._yielded.setdefault(pod, self._clock())
        if waited >= YIELD_SECONDS or await self._first_rival(chosen, fresh) is None:
            return 0.0
        return min(max(2 * FIRST_LOOK_SECONDS, waited), YIELD_SECONDS - waited)

    async def wait(self, pod: Key, held: Sequence[Json]) -> float:
        """For how many seconds to keep the gate shut before asking again; 0 when it may be opened.

        `held` are the pod's allocated claims.
        After the longest wait all claims have been read anew.
        """
        if not self._suspects.are_about or not self._is_new(held):
            self.forget(pod)
            return 0.0
        waited = self._clock() - self._began(pod, held)
        if waited >= HOLD_SECONDS:
            await self._rereading.everything()
            self.forget(pod)
            return 0.0
        rival = await self._first_rival([key_of(claim) for claim in held], self._suspects.examples())
        if rival is None and waited >= SETTLE_SECONDS:
            self.forget(pod)
            return 0.0
        if rival is not None:
            log.info("rival_is_about", rival="/".join(rival), waited=round(waited, 2))
        return min(max(FIRST_LOOK_SECONDS, waited / 2), HOLD_SECONDS - waited)

    async def are_overcommitted(self, held: Sequence[Json]) -> bool:
        """Whether a rival has taken counters or capacity that the claims draw from as well."""
        if not self._suspects.are_about:
            return False
        keys = [key_of(claim) for claim in held]
        return await self._mind.ask(lambda world: any(is_overcommitted(world, key) for key in keys))

    async def _first_rival(self, keys: Collection[Key], examples: Collection[Key]) -> Key | None:
        if not examples:
            return None
        now = self._clock()
        young = frozenset(name for name, born in self._rules.items() if now - born < HOLD_SECONDS)
        return await self._mind.ask(lambda world: first_rival(world, keys, examples, young_rules=young))

    def _began(self, pod: Key, held: Sequence[Json]) -> float:
        given = tuple(
            (claim["metadata"]["uid"], _given_at(claim), claims.devices_of(claim)) for claim in held
        )
        known = self._since.get(pod)
        if known is None or known[0] != given:
            known = self._since[pod] = (given, self._clock())
        return known[1]

    @staticmethod
    def _is_new(held: Sequence[Json]) -> bool:
        """Whether Dovetail gave devices a moment ago: whoever chose before that has written by now.

        Without DRADeviceBindingConditions (off before 1.36) the API server keeps no time (KEP-5007):
        what nobody can date may be new.
        """
        return any(
            claims.is_written_by_us(claim)
            and (not _given_at(claim) or seconds_since(_given_at(claim)) <= HOLD_SECONDS + 1)
            for claim in held
        )


def _given_at(claim: Json) -> str:
    """When the claim got its devices; empty where that is not known."""
    return str(claim["status"]["allocation"].get("allocationTimestamp") or "")
