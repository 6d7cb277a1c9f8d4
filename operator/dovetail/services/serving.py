"""One pod from its first sight to its node: what it lacks is made, decided, written and said."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import structlog

from dovetail.api.kinds import CLAIM, POD
from dovetail.cluster.pen import Pen
from dovetail.core.decisions import (
    Cut,
    DoesNotFit,
    Invalid,
    Nothing,
    NotOurs,
    Place,
    Reserve,
    Ungate,
    Waits,
)
from dovetail.core.reasons import Reason
from dovetail.core.wording import claims_of as named_claims
from dovetail.errors import DovetailError, Forbidden, Rejected
from dovetail.services import claims, holdings
from dovetail.services.allocation import AllocationWriter, Dropped
from dovetail.services.attempts import Attempts, of_consumers, of_gate, of_needs
from dovetail.services.avoidance import Avoidance
from dovetail.services.clashes import Clashes, Device
from dovetail.services.conditions import Conditions
from dovetail.services.deciding import Deciding
from dovetail.services.earmarks import Earmarks
from dovetail.services.gates import is_gated, ungate
from dovetail.services.gates_off import GatesOff
from dovetail.services.generation import Generation
from dovetail.services.metrics import Metrics
from dovetail.services.mind import Mind, Verdict
from dovetail.services.notebook import Notebook, Notes
from dovetail.services.notices import Notices
from dovetail.services.picture import Json, Key, Picture, key_of, version_of
from dovetail.services.quarantine import Quarantine
from dovetail.services.release import is_done
from dovetail.services.rereading import Rereading
from dovetail.services.retraction import Retraction
from dovetail.services.rivals import Rivals

log = structlog.get_logger(__name__)

CLAIMS_LATE_SECONDS = 10.0
"""How long claims may be missing before the pod is told: normally they appear within a second."""

EARLY_PAUSE_SECONDS = 0.2
"""A claim that is being written for another pod is free again by then, and tells so itself before."""

RESTORE_AFTER_SECONDS = 3.0
"""How long the reservation of a pod with a node is left to kube-controller-manager (G28, V-19)."""

QUARANTINE_PAUSE_SECONDS = 0.5

NOT_GATED = "NotGated"
FEATURE_GATE_OFF = "FeatureGateOff"
WRITE_REFUSED = "WriteRefused"


@dataclass(frozen=True, slots=True)
class Tools:
    """What serving a pod takes."""

    pen: Pen
    picture: Picture
    mind: Mind
    generation: Generation
    writer: AllocationWriter
    conditions: Conditions
    notices: Notices
    avoidance: Avoidance
    attempts: Attempts
    clashes: Clashes
    rereading: Rereading
    rivals: Rivals
    quarantine: Quarantine
    deciding: Deciding
    earmarks: Earmarks
    retraction: Retraction
    gates_off: GatesOff
    metrics: Metrics
    now: Callable[[], str]
    clock: Callable[[], float]


@dataclass(slots=True)
class Serving:
    """Serves one pod at a time, by level: what the picture shows decides, whatever happened before.

    `look_again(pod, seconds)` is how it asks to come back.
    """

    tools: Tools
    look_again: Callable[[Key, float], None]
    _notebook: Notebook = field(default_factory=Notebook)

    @property
    def waiting(self) -> Mapping[Key, str]:
        """The pods that wait, with the reason."""
        return self._notebook.waiting

    def reasons(self) -> list[str]:
        """Why pods wait, one entry for each."""
        return list(self.waiting.values())

    def forget(self, key: Key) -> None:
        """The pod is gone."""
        self._notebook.forget(key)
        for part in (
            self.tools.generation,
            self.tools.conditions,
            self.tools.avoidance,
            self.tools.retraction,
            self.tools.rivals,
            self.tools.deciding.searches,
        ):
            part.forget(key)

    async def serve(self, key: Key) -> None:
        """Bring one pod as far as it can go now."""
        await self.tools.writer.settle_abandoned()
        pod = self.tools.picture.find(POD, key)
        if pod is None or is_done(pod) or pod["metadata"].get("deletionTimestamp"):
            self._notebook.forget(key)
            self.tools.deciding.searches.forget(key)
            return
        notes = self._notebook.about(key, pod)
        if self.tools.retraction.is_under_way(key):
            return
        if seconds := self.tools.retraction.rest(key):
            self.look_again(key, seconds)
            return
        if notes.unsettled:
            await self.tools.writer.read_back(notes.unsettled)
            notes.unsettled = ()
        if seconds := await self.tools.generation.complete(pod):
            self.look_again(key, seconds)
            return
        pod = self.tools.picture.find(POD, key) or pod
        await self._restore(key, pod, notes)
        if holdings.is_satisfied(self.tools.picture, pod) and not holdings.is_joining(
            self.tools.picture, pod
        ):
            await self._served_already(key, pod, notes)
        elif seconds := self.tools.attempts.wait(of_needs(self.tools.picture, pod)):
            self.look_again(key, seconds)
        else:
            await self._decide(key, pod, notes)

    async def _restore(self, key: Key, pod: Json, notes: Notes) -> None:
        """A pod got its node while its reservation was taken away: unless others do, we restore it."""
        held = holdings.lacking_reservation(self.tools.picture, pod)
        if not held:
            notes.unreserved_since = None
            return
        if notes.unreserved_since is None:
            notes.unreserved_since = self.tools.clock()
        if rest := max(notes.unreserved_since + RESTORE_AFTER_SECONDS - self.tools.clock(), 0.0):
            self.look_again(key, rest)
            return
        steps = of_consumers(held, key)
        if rest := self.tools.attempts.wait(steps):
            self.look_again(key, rest)
            return
        self.tools.attempts.count(steps)
        await self.tools.writer.restore(pod, held)
        log.info("reservation_restored", claims=len(held))

    async def _served_already(self, key: Key, pod: Json, notes: Notes) -> None:
        notes.go_on()
        if seconds := await self.tools.conditions.served(pod, "every claim has its devices"):
            self.look_again(key, seconds)
        if seconds := self.tools.retraction.watch(key, pod):
            self.look_again(key, seconds)

    async def _leave_alone(self, key: Key, pod: Json, notes: Notes) -> None:
        notes.go_on()
        if holdings.is_satisfied(self.tools.picture, pod):
            await self._served_already(key, pod, notes)

    async def _decide(self, key: Key, pod: Json, notes: Notes) -> None:
        # A pod lets others go first once: whatever keeps coming, then it is decided about.
        in_turn = bool(notes.waits_for) and not notes.gave_way
        verdict = await self.tools.deciding.decide(key, pod, in_turn=in_turn)
        if verdict is None:
            return
        notes.gave_way = verdict.is_early
        if verdict.is_early:
            self.look_again(key, EARLY_PAUSE_SECONDS)
            return
        decision = verdict.decision
        match decision:
            case Place() if unnamed := self._unnamed(pod, verdict):
                self.tools.mind.withdraw(verdict.claims.keys())
                await self._waits(key, pod, notes, Reason.CLAIMS_NOT_CREATED, unnamed)
            case Place():
                await self._give(key, pod, notes, verdict, ungates=decision.ungate, node=decision.node)
            case Reserve():
                await self._join(key, pod, notes, verdict, decision)
            case Ungate(sentence=sentence):
                self.tools.attempts.count([of_gate(key)])
                if await ungate(self.tools.pen, pod, self.tools.picture):
                    self.tools.notices.say(pod, "Normal", "GateRemoved", sentence)
                    log.info("gate_removed", reason="no claim is ours")
            case Waits(reason=reason, sentence=sentence):
                await self._waits(key, pod, notes, reason, sentence)
            case DoesNotFit() | Invalid() as no:
                self._warn_ungated(pod, notes)
                await self._refuse(key, pod, notes, no.reason, no.sentence, full=no.told_in_full)
            case Cut(reason=reason, sentence=sentence):
                await self._tell(key, pod, notes, reason, sentence)
            case NotOurs() | Nothing():
                await self._leave_alone(key, pod, notes)

    async def _give(
        self, key: Key, pod: Json, notes: Notes, verdict: Verdict, *, ungates: bool, node: str | None
    ) -> None:
        """Write what was decided, look once more for clashes, and open the gate last."""
        self._warn_ungated(pod, notes)
        if is_gated(pod) and (seconds := await self.tools.rivals.yield_to(key, verdict.claims)):
            self.tools.mind.withdraw(verdict.claims.keys())
            self.look_again(key, seconds)
            return
        written = await self.tools.writer.write(pod, verdict, now=self.tools.now())
        notes.unsettled = written.unknown
        self.tools.attempts.record(key, verdict, is_refused=bool(written.failures))
        if written.failures:
            raise written.failures[0]
        notes.given |= verdict.claims.keys()
        if written.dropped:
            await self._do_without(key, pod, notes, written.dropped)
            return
        await self._let_watch_catch_up(verdict)
        if self._was_undone(verdict):
            log.info("allocation_undone")
            self.look_again(key, 0.0)
            return
        seconds = await self.tools.rivals.wait(key, self._given(pod, notes)) if ungates else 0.0
        if await self._backs_out(key, pod, self._given(pod, notes)):
            return
        if seconds:
            self.look_again(key, seconds)
            return
        log.info("pod_allocated", node=node, claims=len(verdict.claims), seconds=round(verdict.seconds, 4))
        notes.go_on()
        await self.tools.conditions.served(pod, f"every claim has its devices, on node {node or 'any'}")
        if ungates:
            self.tools.attempts.count([of_gate(key)])
            await ungate(self.tools.pen, pod, self.tools.picture)
            # What clashed while the gate was opened was met by a pod that seemed gated.
            await self._backs_out(key, self.tools.picture.find(POD, key) or pod, self._given(pod, notes))
        if not holdings.is_bound(pod) and (seconds := self.tools.retraction.watch(key, pod)):
            self.look_again(key, seconds)

    async def _do_without(self, key: Key, pod: Json, notes: Notes, dropped: tuple[Dropped, ...]) -> None:
        """What the API server did not keep whole is taken back, and decided anew without the gate."""
        sentence = await self.tools.gates_off.learn(dropped)
        await self._tell(key, pod, notes, FEATURE_GATE_OFF, sentence)
        if is_gated(pod):
            await self.tools.retraction.now(key, pod, self._given(pod, notes), cause="gate_off")

    def _was_undone(self, verdict: Verdict) -> bool:
        """Whether somebody has taken away already what was written a moment ago."""
        written = [self.tools.picture.find(CLAIM, key) for key in verdict.claims]
        return any(claim is None or not claims.is_allocated(claim) for claim in written)

    async def _let_watch_catch_up(self, verdict: Verdict) -> None:
        """See what others wrote before us, so that a device taken twice is noticed while the gate is shut."""
        written = filter(None, (self.tools.picture.find(CLAIM, key) for key in verdict.claims))
        await self.tools.rereading.catch_up([version_of(body) for body in written])

    async def _join(self, key: Key, pod: Json, notes: Notes, verdict: Verdict, decision: Reserve) -> None:
        """Add the pod to claims that have their devices already.

        An ungated pod without a node is left to kube-scheduler, which reserves by itself (R4, S61).
        """
        if not is_gated(pod) and not holdings.is_bound(pod):
            self.tools.mind.withdraw(verdict.claims.keys())
            return
        await self._give(key, pod, notes, verdict, ungates=decision.ungate, node=decision.node)

    async def _backs_out(self, key: Key, pod: Json, held: list[Json]) -> bool:
        """Whether what the pod was given went to another claim too: a pod that is still gated gives way."""
        devices = self._held_twice(held)
        others = frozenset[Key]().union(*devices.values())
        if not others and not await self.tools.rivals.are_overcommitted(held):
            return False
        if is_gated(pod) and not self.tools.quarantine.is_known(devices):
            self.look_again(key, QUARANTINE_PAUSE_SECONDS)
            return True
        self.tools.metrics.clashes.inc()
        whose = named_claims(sorted(others), key[0]) or "another claim"
        names = ", ".join(map("/".join, sorted(others))) or "another claim"
        self.tools.notices.say(
            pod, "Warning", "DeviceClash", f"a device was given to {whose} at the same time"
        )
        log.warning("device_clash", rivals=names, gated=is_gated(pod))
        if not is_gated(pod) or not await self.tools.retraction.now(key, pod, held, cause="clash"):
            return False
        self.tools.rivals.forget(key)
        self.look_again(key, 0.0)
        return True

    def _held_twice(self, held: list[Json]) -> dict[Device, frozenset[Key]]:
        """The devices of these claims that other claims hold as well, with those."""
        found: dict[Device, frozenset[Key]] = {}
        for claim in held:
            found |= self.tools.clashes.others(key_of(claim), claims.devices_of(claim))
        return found

    @staticmethod
    def _unnamed(pod: Json, verdict: Verdict) -> str:
        """A sentence where a claim was made for the pod and its status does not name it yet.

        kube-scheduler waits for the name as well, and kube-controller-manager may yet make, and name,
        another claim, where it did not hear of the first (G22).
        """
        named = holdings.claim_names(pod).values()
        missing = sorted(name for _, name in verdict.claims if name not in named)
        return f"Claim {missing[0]!r} exists, and the pod's status does not name it yet." if missing else ""

    async def _waits(self, key: Key, pod: Json, notes: Notes, reason: Reason, sentence: str) -> None:
        """Somebody else has to act. Claims that are late by less than a few seconds are no news."""
        if reason is not Reason.CLAIMS_NOT_CREATED:
            notes.lacking_since = None
        elif rest := self._rest_of_patience(notes):
            self.look_again(key, rest)
            return
        await self._refuse(key, pod, notes, reason, sentence)

    def _rest_of_patience(self, notes: Notes) -> float:
        """How long claims may still be missing before that is news."""
        if notes.lacking_since is None:
            notes.lacking_since = self.tools.clock()
        return max(notes.lacking_since + CLAIMS_LATE_SECONDS - self.tools.clock(), 0.0)

    async def _refuse(
        self, key: Key, pod: Json, notes: Notes, reason: str, sentence: str, *, full: str = ""
    ) -> None:
        """Say why the pod waits; what it holds of an attempt that cannot be completed is given back."""
        await self._tell(key, pod, notes, reason, sentence, full=full)
        if reason == Reason.NOTHING_FITS:
            self.tools.earmarks.consider(key)
        if is_gated(pod) and holdings.holds_a_part(self.tools.picture, pod):
            await self.tools.retraction.now(
                key, pod, holdings.claims_of(self.tools.picture, pod), cause="partial"
            )
        if seconds := self.tools.avoidance.seconds_left(key):
            self.look_again(key, seconds)

    def _given(self, pod: Json, notes: Notes) -> list[Json]:
        """The pod's claims that Dovetail allocated."""
        found = {key_of(claim): claim for claim in holdings.claims_of(self.tools.picture, pod)}
        for key in notes.given:
            if (claim := self.tools.picture.find(CLAIM, key)) is not None:
                found[key] = claim
        return [
            each for each in found.values() if claims.is_allocated(each) and claims.is_written_by_us(each)
        ]

    async def _tell(
        self, key: Key, pod: Json, notes: Notes, reason: str, sentence: str, *, full: str = ""
    ) -> None:
        """Tell the pod's owner; `full` names what only readers of the log may see."""
        if notes.wait(reason):
            log.info("pod_waits", reason=reason, sentence=full or sentence)
            self.tools.notices.say(pod, "Warning", reason, sentence)
            for claim in holdings.claims_of(self.tools.picture, pod):
                if repr(claim["metadata"]["name"]) in sentence:
                    self.tools.notices.say(claim, "Warning", reason, sentence)
        if seconds := await self.tools.conditions.wait(pod, reason, sentence):
            self.look_again(key, seconds)

    def _warn_ungated(self, pod: Json, notes: Notes) -> None:
        """Once per pod: without the gate kube-scheduler works against us (V-15)."""
        if notes.warned or notes.given or is_gated(pod) or holdings.is_bound(pod):
            return
        notes.warned = True
        self.tools.notices.say(
            pod,
            "Warning",
            NOT_GATED,
            "the pod lacks the scheduling gate dovetail.dev/allocation: kube-scheduler tries in vain to "
            "allocate its claims, which delays other pods, and may take back what Dovetail allocates",
        )

    async def failed(self, key: Key, error: DovetailError) -> None:
        """Tell the pod's owner of a failure that does not pass by itself."""
        pod = self.tools.picture.find(POD, key)
        if pod is None or not isinstance(error, Forbidden | Rejected):
            return
        notes = self._notebook.about(key, pod)
        await self._tell(
            key, pod, notes, WRITE_REFUSED, f"the API server refuses what Dovetail writes: {error}"
        )
