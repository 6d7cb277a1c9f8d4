"""Who does the work, and is built from what: each part is made once, when it is first asked for."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from time import monotonic

from dovetail.api.kinds import CLAIM, TAINT_RULE
from dovetail.core.features import Features
from dovetail.services.allocation import AllocationWriter
from dovetail.services.clash_reports import ClashReports
from dovetail.services.clocks import now_text
from dovetail.services.deciding import Deciding
from dovetail.services.desk import Desk
from dovetail.services.dual_modes import DualModes
from dovetail.services.earmarks import Earmarks
from dovetail.services.gates_off import GatesOff
from dovetail.services.generation import Generation
from dovetail.services.guard import Guard
from dovetail.services.mapping_reports import MappingReports
from dovetail.services.metrics import WaitingPods
from dovetail.services.permits import Permits
from dovetail.services.picture import Key
from dovetail.services.quarantine import Quarantine
from dovetail.services.reconciler import Reconciler
from dovetail.services.release import Release
from dovetail.services.retraction import Retraction
from dovetail.services.searches import Searches
from dovetail.services.serving import Serving, Tools
from dovetail.services.startup import examine, missing_rights
from dovetail.services.survey import RESYNCS_PER_SURVEY, Survey
from dovetail.services.takeback import TakeBack
from dovetail.services.turns import Turns
from dovetail.services.waiting import Rank, Urgency
from dovetail.services.workbench import Workbench, lease_namespace

RELEASERS = 4
"""How many claims are freed at a time."""


class Workshop(Workbench):
    """Makes the parts; each property is one of them. `connect_parts` ties them to the picture, once."""

    def connect_parts(self) -> None:
        """Let every part follow the picture; the mind sees a change before anybody is sent to ask it."""
        for follower in (
            self.complaints.follow,
            self.mind.post,
            self.consumers.follow,
            self.attempts.follow,
            self.generation.follow,
            self.clashes.follow,
            self.quarantine.follow,
            self.nominations.follow,
            self.suspects.follow,
            self.rivals.follow,
            self.guard.follow,
            self.reconciler.follow,
        ):
            self.picture.follow(follower)
        self.clashes.on_clash(self.clash_reports.report)
        self.mind.on_meaning(self.reconciler.understand)
        self.mind.on_problem(self.complaints.note)
        self.permits.on_change(self._restate)
        self.served.on_change(self._restate)
        self.health.mind_silence = lambda: self.mind.silent_seconds
        self.metrics.registry.register(WaitingPods(self.serving.reasons))

    @cached_property
    def permits(self) -> Permits:
        """What may not be done."""
        return Permits(
            missing=lambda: missing_rights(
                self.plain_pen,
                self.settings,
                replace(self.cluster, optional=self.served.plurals),
                lease_namespace(self.settings),
            ),
            complain=self.health.complain,
            seconds=self.settings.resync_seconds,
        )

    @cached_property
    def gates_off(self) -> GatesOff:
        """Which gates are done without."""
        return GatesOff(mind=self.mind, features=self.cluster.features, found=self.permits.note_gate)

    @cached_property
    def survey(self) -> Survey:
        """What examines the cluster again."""
        return Survey(
            examine=lambda: examine(self.reader, self.settings),
            cluster=self.cluster,
            found=self._surveyed,
            seconds=RESYNCS_PER_SURVEY * self.settings.resync_seconds,
        )

    @cached_property
    def clash_reports(self) -> ClashReports:
        """What is said about devices that two claims hold."""
        return ClashReports(
            picture=self.picture,
            consumers=self.consumers,
            notices=self.notices,
            look_again=self._look_now,
            is_leading=self.is_leading,
        )

    @cached_property
    def quarantine(self) -> Quarantine:
        """What keeps devices that two claims hold from a third."""
        return Quarantine(
            picture=self.picture,
            pen=self.pen,
            clashes=self.clashes,
            metrics=self.metrics,
            serves_rules=lambda: self.served.serves(TAINT_RULE),
            clock=monotonic,
        )

    @cached_property
    def generation(self) -> Generation:
        """What makes claims from templates."""
        return Generation(
            pen=self.pen,
            reader=self.reader,
            picture=self.picture,
            mind=self.mind,
            notices=self.notices,
            attempts=self.attempts,
            mode=self.settings.claim_generation,
            grace_seconds=self.settings.claim_generation_grace_seconds,
            clock=monotonic,
        )

    @cached_property
    def writer(self) -> AllocationWriter:
        """What writes allocations."""
        return AllocationWriter(pen=self.pen, reader=self.reader, picture=self.picture, mind=self.mind)

    @cached_property
    def retraction(self) -> Retraction:
        """What takes devices back."""
        takeback = TakeBack(
            pen=self.pen,
            reader=self.reader,
            picture=self.picture,
            pause_seconds=self.settings.take_back_pause_seconds,
        )
        return Retraction(
            takeback=takeback,
            picture=self.picture,
            avoidance=self.avoidance,
            attempts=self.attempts,
            conditions=self.conditions,
            notices=self.notices,
            metrics=self.metrics,
            patience_seconds=self.settings.unschedulable_seconds,
            clock=monotonic,
            users=lambda claim: self.consumers.of(CLAIM, claim),
            served_again=lambda key: self._look_again(key, 0.0),
        )

    @cached_property
    def release(self) -> Release:
        """What frees the claims of pods that are done."""
        return Release(
            pen=self.pen,
            reader=self.reader,
            picture=self.picture,
            users=lambda claim: self.consumers.of(CLAIM, claim),
            mode=self.settings.release,
            grace_seconds=self.settings.release_grace_seconds,
            clock=monotonic,
        )

    @cached_property
    def serving(self) -> Serving:
        """What brings a pod to its node."""
        tools = Tools(
            pen=self.pen,
            picture=self.picture,
            mind=self.mind,
            generation=self.generation,
            writer=self.writer,
            conditions=self.conditions,
            notices=self.notices,
            avoidance=self.avoidance,
            attempts=self.attempts,
            clashes=self.clashes,
            rereading=self.rereading,
            rivals=self.rivals,
            quarantine=self.quarantine,
            deciding=self.deciding,
            earmarks=self.earmarks,
            retraction=self.retraction,
            gates_off=self.gates_off,
            metrics=self.metrics,
            now=now_text,
            clock=monotonic,
        )
        return Serving(tools, look_again=self._look_again)

    @cached_property
    def earmarks(self) -> Earmarks:
        """What keeps devices for pods that need several at once."""
        return Earmarks(
            mind=self.mind,
            picture=self.picture,
            avoidance=self.avoidance,
            notices=self.notices,
            metrics=self.metrics,
            plan=self.plan_settings,
            seconds=self.settings.hold_seconds,
            waiting=lambda: self.serving.waiting,
            urgency=self._urgency,
            mark=self._look_in_turn,
            clock=monotonic,
        )

    @cached_property
    def deciding(self) -> Deciding:
        """What asks for decisions."""
        return Deciding(
            mind=self.mind,
            picture=self.picture,
            avoidance=self.avoidance,
            nominations=self.nominations,
            searches=Searches(clock=monotonic, rank=self._rank, mark=self._look_now),
            turns=Turns(self._rank),
            shares=self.shares,
            metrics=self.metrics,
            clock=monotonic,
        )

    @cached_property
    def reports(self) -> MappingReports:
        """What writes the status of mappings."""
        return MappingReports(
            pen=self.pen,
            picture=self.picture,
            mind=self.mind,
            restrictions=lambda: self.permits.restrictions,
            now=now_text,
        )

    @cached_property
    def dual_modes(self) -> DualModes:
        """What tells of nodes that offer devices twice."""
        excluded = self.settings.excludes_dual_mode
        return DualModes(mind=self.mind, picture=self.picture, notices=self.notices, excluded=excluded)

    @cached_property
    def guard(self) -> Guard:
        """What audits and fences."""
        return Guard(
            mind=self.mind,
            picture=self.picture,
            pen=self.pen,
            metrics=self.metrics,
            audit_seconds=self.settings.audit_seconds,
            serves_rules=lambda: self.served.serves(TAINT_RULE),
            restrictions=lambda: self.permits.restrictions,
            dual_modes=self.dual_modes,
            now=now_text,
        )

    @cached_property
    def pods(self) -> Desk:
        """Where pods are served."""
        return Desk(
            "pod",
            serve=self.serving.serve,
            urgency=self._urgency,
            workers=self.settings.writers,
            metrics=self.metrics,
            patience=self._patience,
            on_failure=self.serving.failed,
            standing=lambda namespace: self.shares.standing(namespace, monotonic()),
        )

    @cached_property
    def claims(self) -> Desk:
        """Where claims are freed."""
        return Desk(
            "claim",
            serve=self._tend_claim,
            urgency=lambda key: (0, "", *key),
            workers=RELEASERS,
            metrics=self.metrics,
        )

    @cached_property
    def reconciler(self) -> Reconciler:
        """What sends pods and claims to the desks."""
        return Reconciler(
            picture=self.picture,
            consumers=self.consumers,
            serving=self.serving,
            release=self.release,
            retraction=self.retraction,
            pods=self.pods,
            claims_desk=self.claims,
            mappings=self.reports.mark,
            deciding=self.deciding,
        )

    def _restate(self) -> None:
        self.reports.mark()
        self.guard.mark()
        self.quarantine.look_again()

    async def _surveyed(self, features: Features) -> None:
        if await self.gates_off.survey(features):
            self.reconciler.look_at_everything()

    def _look_now(self, key: Key) -> None:
        self.pods.queue.mark(key)

    def _look_in_turn(self, keys: Iterable[Key]) -> None:
        self.pods.queue.mark_in_turn(keys)

    def _look_again(self, key: Key, seconds: float) -> None:
        self.pods.queue.mark_later(key, seconds)

    def _rank(self, key: Key) -> Rank:
        return self.pods.queue.rank(key)

    def _urgency(self, key: Key) -> Urgency:
        return self.reconciler.urgency(key)

    def _patience(self, key: Key) -> float:
        return self.reconciler.patience(key)

    async def _tend_claim(self, key: Key) -> None:
        await self.reconciler.tend_claim(key)
