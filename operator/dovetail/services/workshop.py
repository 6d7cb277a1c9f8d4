"""Who is built from what: every part of the operator, made once, when it is first asked for."""

import os
import socket
import uuid
from functools import cached_property
from time import monotonic

from dovetail.api.kinds import TAINT_RULE, Kind
from dovetail.cluster.connection import own_namespace
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.cluster.wire import Wire
from dovetail.core.planner import PlanSettings
from dovetail.core.world import World
from dovetail.services.allocation import AllocationWriter
from dovetail.services.avoidance import Attempts, Avoidance
from dovetail.services.clash_reports import ClashReports
from dovetail.services.clashes import Clashes
from dovetail.services.clocks import now_text
from dovetail.services.complaints import Complaints
from dovetail.services.conditions import Conditions
from dovetail.services.consumers import Consumers
from dovetail.services.desk import Desk
from dovetail.services.dual_modes import DualModes
from dovetail.services.echoes import Echoes
from dovetail.services.gates_off import GatesOff
from dovetail.services.generation import Generation
from dovetail.services.guard import Guard
from dovetail.services.healing import Healing
from dovetail.services.health import Health
from dovetail.services.leadership import Alone, Leadership
from dovetail.services.mapping_reports import MappingReports
from dovetail.services.metrics import Metrics, WaitingPods
from dovetail.services.mind import Limits, Mind
from dovetail.services.nominations import Nominations
from dovetail.services.notices import Notices
from dovetail.services.permits import Permits
from dovetail.services.picture import Key, Picture
from dovetail.services.quarantine import Quarantine
from dovetail.services.reconciler import Reconciler
from dovetail.services.release import Release
from dovetail.services.rereading import Rereading
from dovetail.services.retraction import Retraction
from dovetail.services.rivals import Rivals
from dovetail.services.serving import Serving, Tools
from dovetail.services.settings import Settings
from dovetail.services.startup import Cluster, missing_rights
from dovetail.services.suspects import Suspects
from dovetail.services.takeback import TakeBack
from dovetail.services.waiting import Urgency

RELEASERS = 4
"""How many claims are freed at a time."""


class Workshop:
    """Makes the parts; each property is one of them. `connect_parts` ties them to the picture, once."""

    def __init__(self, settings: Settings, cluster: Cluster, wire: Wire, health: Health) -> None:
        self.settings = settings
        self.health = health
        self.cluster = cluster
        self.metrics = Metrics()
        self.picture = Picture()
        self.reader = Reader(wire)
        self.plain_pen = Pen(wire, permit=lambda: None)
        """Writes without asking the Lease: for the Lease itself, and for questions."""
        self._wire = wire

    def connect_parts(self) -> None:
        """Let every part follow the picture; the mind sees a change before anybody is sent to ask it."""
        for follower in (
            self.complaints.follow,
            self.mind.post,
            self.consumers.follow,
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
        self.health.mind_silence = lambda: self.mind.silent_seconds
        self.metrics.registry.register(WaitingPods(self.serving.reasons))

    def is_leading(self) -> bool:
        """Whether this replica may write at this moment."""
        return self.leadership.is_leading

    @cached_property
    def leadership(self) -> Alone | Leadership:
        """The right to write."""
        if not self.settings.leader_election:
            return Alone()
        return Leadership(
            reader=self.reader,
            pen=self.plain_pen,
            namespace=lease_namespace(self.settings),
            name=self.settings.lease_name,
            identity=f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4()}",
            seconds=self.settings.lease_seconds,
        )

    @cached_property
    def permits(self) -> Permits:
        """What may not be done."""
        return Permits(
            missing=lambda: missing_rights(
                self.plain_pen, self.settings, self.cluster, lease_namespace(self.settings)
            ),
            complain=self.health.complain,
            seconds=self.settings.resync_seconds,
        )

    @cached_property
    def pen(self) -> Pen:
        """Every write of the work goes through it."""
        return Pen(self._wire, permit=self.leadership.assert_leading, count=self._count)

    @cached_property
    def mind(self) -> Mind:
        """What decides, in a thread of its own."""
        settings = self.settings
        return Mind(
            World(
                self.cluster.features,
                shipped_mappings=settings.shipped_mappings,
                exclude_dual_mode=settings.excludes_dual_mode,
            ),
            plan=PlanSettings(schedulers=settings.schedulers),
            limits=Limits(settings.decision_steps, settings.decision_seconds),
            now=now_text,
        )

    @cached_property
    def notices(self) -> Notices:
        """What writes events."""
        return Notices(self.pen, now=now_text, clock=monotonic)

    @cached_property
    def complaints(self) -> Complaints:
        """What remembers malformed objects."""
        return Complaints(self.notices, is_leading=self.is_leading)

    @cached_property
    def consumers(self) -> Consumers:
        """Which pods use what."""
        return Consumers()

    @cached_property
    def clashes(self) -> Clashes:
        """Which devices two claims hold."""
        return Clashes()

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
    def echoes(self) -> Echoes:
        """How far the watches have come."""
        return Echoes()

    @cached_property
    def conditions(self) -> Conditions:
        """What writes the condition on pods."""
        return Conditions(pen=self.pen, picture=self.picture, now=now_text, clock=monotonic)

    @cached_property
    def avoidance(self) -> Avoidance:
        """Which nodes are not used for a pod."""
        return Avoidance(self.settings.avoid_seconds, monotonic)

    @cached_property
    def suspects(self) -> Suspects:
        """Which pods kube-scheduler may be giving devices to."""
        return Suspects(self.picture, self.consumers, monotonic)

    @cached_property
    def rereading(self) -> Rereading:
        """What makes sure that the picture is not behind our own writes."""
        return Rereading(reader=self.reader, picture=self.picture, echoes=self.echoes, clock=monotonic)

    @cached_property
    def rivals(self) -> Rivals:
        """How long a gate stays shut because of others."""
        return Rivals(mind=self.mind, suspects=self.suspects, rereading=self.rereading, clock=monotonic)

    @cached_property
    def nominations(self) -> Nominations:
        """Where kube-scheduler made room."""
        return Nominations(monotonic)

    @cached_property
    def quarantine(self) -> Quarantine:
        """What keeps devices that two claims hold from a third."""
        return Quarantine(
            picture=self.picture,
            pen=self.pen,
            clashes=self.clashes,
            metrics=self.metrics,
            serves_rules=TAINT_RULE.plural in self.cluster.optional,
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
            conditions=self.conditions,
            notices=self.notices,
            metrics=self.metrics,
            patience_seconds=self.settings.unschedulable_seconds,
            clock=monotonic,
            served_again=lambda key: self._look_again(key, 0.0),
        )

    @cached_property
    def release(self) -> Release:
        """What frees the claims of pods that are done."""
        return Release(
            pen=self.pen,
            reader=self.reader,
            picture=self.picture,
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
            attempts=Attempts(self.settings.attempts_per_minute, monotonic),
            clashes=self.clashes,
            rereading=self.rereading,
            rivals=self.rivals,
            quarantine=self.quarantine,
            nominations=self.nominations,
            retraction=self.retraction,
            gates_off=GatesOff(mind=self.mind, found_off=self.permits.gate_off),
            metrics=self.metrics,
            now=now_text,
            clock=monotonic,
        )
        return Serving(tools, look_again=self._look_again)

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
            serves_rules=TAINT_RULE.plural in self.cluster.optional,
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
            on_failure=self.serving.failed,
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
        )

    @cached_property
    def healing(self) -> Healing:
        """What compares the picture with complete lists."""
        return Healing(
            reader=self.reader,
            picture=self.picture,
            metrics=self.metrics,
            resync_seconds=self.settings.resync_seconds,
        )

    def _restate(self) -> None:
        self.reports.mark()
        self.guard.mark()

    def _look_now(self, key: Key) -> None:
        self.pods.queue.mark(key)

    def _look_again(self, key: Key, seconds: float) -> None:
        self.pods.queue.mark_later(key, seconds)

    def _urgency(self, key: Key) -> Urgency:
        return self.reconciler.urgency(key)

    async def _tend_claim(self, key: Key) -> None:
        await self.reconciler.tend_claim(key)

    def _count(self, verb: str, kind: Kind, subresource: str) -> None:
        self.metrics.writes.labels(verb, kind.plural, subresource).inc()


def lease_namespace(settings: Settings) -> str:
    """Where the Lease lies: as set, else in the namespace of the pod, else in kube-system."""
    return settings.lease_namespace or os.environ.get("POD_NAMESPACE") or own_namespace() or "kube-system"
