"""What every part of the operator stands on: the connection, the right to write, the picture, the mind."""

import os
import socket
from functools import cached_property
from time import monotonic

from dovetail.api.kinds import Kind
from dovetail.cluster.connection import own_namespace
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.cluster.wire import Wire
from dovetail.core.planner import PlanSettings
from dovetail.core.shares import Shares
from dovetail.core.world import World
from dovetail.services.attempts import Attempts
from dovetail.services.avoidance import Avoidance
from dovetail.services.clashes import Clashes
from dovetail.services.clocks import now_text
from dovetail.services.complaints import Complaints
from dovetail.services.conditions import Conditions
from dovetail.services.consumers import Consumers
from dovetail.services.costs import Limits, Restraint
from dovetail.services.echoes import Echoes
from dovetail.services.healing import Healing
from dovetail.services.health import Health
from dovetail.services.journal import Journal
from dovetail.services.leadership import Alone, Leadership
from dovetail.services.metrics import Metrics
from dovetail.services.mind import Mind
from dovetail.services.nominations import Nominations
from dovetail.services.notices import Notices
from dovetail.services.picture import Picture
from dovetail.services.rereading import Rereading
from dovetail.services.rivals import Rivals
from dovetail.services.seat import Seat
from dovetail.services.served import Served
from dovetail.services.settings import Settings
from dovetail.services.startup import Cluster
from dovetail.services.suspects import Suspects


class Workbench:
    """Makes the parts that the work rests on; each property is one of them, made when it is asked for."""

    def __init__(
        self, settings: Settings, cluster: Cluster, wire: Wire, health: Health, journal: Journal
    ) -> None:
        self.settings = settings
        self._journal = journal
        self.health = health
        self.cluster = cluster
        self.metrics = Metrics()
        self.picture = Picture()
        self.reader = Reader(wire)
        self.plain_pen = Pen(wire, permit=lambda: None)
        """Writes without asking the Lease: for the Lease itself, and for questions."""
        self._wire = wire

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
            identity=self.seat.identity,
            seconds=self.settings.lease_seconds,
            succeeds=self.seat.succeeds,
        )

    @cached_property
    def seat(self) -> Seat:
        """Who this process is."""
        return Seat(
            pod=os.environ.get("POD_NAME") or socket.gethostname(),
            pod_uid=os.environ.get("POD_UID", ""),
            directory=self.settings.state_directory,
        )

    @cached_property
    def pen(self) -> Pen:
        """Every write of the work goes through it."""
        return Pen(self._wire, permit=self.leadership.assert_leading, count=self._count)

    @cached_property
    def plan_settings(self) -> PlanSettings:
        """What is set about planning."""
        return PlanSettings(schedulers=self.settings.schedulers)

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
            plan=self.plan_settings,
            limits=Limits(settings.decision_steps, settings.decision_seconds, settings.decision_mebibytes),
            now=now_text,
            restraint=Restraint(self._journal),
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
    def echoes(self) -> Echoes:
        """How far the watches have come."""
        return Echoes()

    @cached_property
    def conditions(self) -> Conditions:
        """What writes the condition on pods."""
        return Conditions(pen=self.pen, picture=self.picture, now=now_text, clock=monotonic)

    @cached_property
    def attempts(self) -> Attempts:
        """How often what others undo is tried again."""
        return Attempts(self.settings.attempts_per_minute, monotonic)

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
        return Rereading(healing=self.healing, echoes=self.echoes, clock=monotonic)

    @cached_property
    def rivals(self) -> Rivals:
        """How long a gate stays shut because of others."""
        return Rivals(mind=self.mind, suspects=self.suspects, rereading=self.rereading, clock=monotonic)

    @cached_property
    def shares(self) -> Shares:
        """How much of the decisions' time each namespace has used."""
        return Shares()

    @cached_property
    def nominations(self) -> Nominations:
        """Where kube-scheduler made room."""
        return Nominations(monotonic)

    @cached_property
    def served(self) -> Served:
        """Which optional kinds there are."""
        return Served(self.cluster.optional, complain=self.health.complain)

    @cached_property
    def healing(self) -> Healing:
        """What compares the picture with complete lists."""
        return Healing(
            reader=self.reader,
            picture=self.picture,
            echoes=self.echoes,
            metrics=self.metrics,
            served=self.served,
            resync_seconds=self.settings.resync_seconds,
        )

    def _count(self, verb: str, kind: Kind, subresource: str) -> None:
        self.metrics.writes.labels(verb, kind.plural, subresource).inc()


def lease_namespace(settings: Settings) -> str:
    """Where the Lease lies: as set, else in the namespace of the pod, else in kube-system."""
    return settings.lease_namespace or os.environ.get("POD_NAMESPACE") or own_namespace() or "kube-system"
