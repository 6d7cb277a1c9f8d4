"""The operator as a whole: who is built from what, in which order things start, and how they stop."""

import asyncio
import os
import socket
import uuid
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

import structlog
from aiohttp import web

from dovetail.api.kinds import TAINT_RULE, Kind
from dovetail.cluster.connection import connect, own_namespace
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.cluster.wire import Wire
from dovetail.core.planner import PlanSettings
from dovetail.core.world import World
from dovetail.errors import ClusterError
from dovetail.services.allocation import AllocationWriter
from dovetail.services.avoidance import Attempts, Avoidance
from dovetail.services.clash_reports import ClashReports
from dovetail.services.clashes import Clashes
from dovetail.services.clocks import now_text
from dovetail.services.complaints import Complaints
from dovetail.services.conditions import Conditions
from dovetail.services.consumers import Consumers
from dovetail.services.desk import Desk
from dovetail.services.echoes import Echoes
from dovetail.services.generation import Generation
from dovetail.services.guard import Guard
from dovetail.services.healing import Healing
from dovetail.services.health import Health, serve_health
from dovetail.services.leadership import Alone, Leadership
from dovetail.services.mapping_reports import MappingReports
from dovetail.services.metrics import Metrics, WaitingPods
from dovetail.services.mind import Limits, Mind
from dovetail.services.notices import Notices
from dovetail.services.picture import Json, Key, Picture, version_of
from dovetail.services.reconciler import Reconciler
from dovetail.services.release import Release
from dovetail.services.rereading import Rereading
from dovetail.services.retraction import Retraction
from dovetail.services.rivals import Rivals
from dovetail.services.serving import Serving, Tools
from dovetail.services.settings import Settings
from dovetail.services.startup import Cluster, examine, missing_rights
from dovetail.services.suspects import Suspects
from dovetail.services.takeback import TakeBack
from dovetail.services.waiting import Urgency

log = structlog.get_logger(__name__)

STOP_SECONDS = 2.0
"""How long writes under way may take when the process is told to stop."""

LEASE_RELEASE_SECONDS = 1.0

RELEASERS = 4
"""How many claims are freed at a time."""

FIRST_LIST_ATTEMPTS = 5


class Operation:
    """Everything that runs beside Kopf.

    `begin` starts it, `end` stops it.
    `ready` is called when the picture is complete, `failed` where the operator cannot go on.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        wire: Wire,
        cluster: Cluster,
        failed: Callable[[], None],
        ready: Callable[[], None],
    ) -> None:
        self.settings = settings
        self.cluster = cluster
        self.metrics = Metrics()
        self.picture = Picture()
        self.health = Health(stalled_after_seconds=max(3 * settings.resync_seconds, 60.0))
        self._failed = failed
        self._ready = ready
        self._wire = wire
        self._tasks: list[asyncio.Task[Any]] = []
        self._runner: web.AppRunner | None = None
        self._is_ending = False
        self._reader = Reader(wire)
        self._plain_pen = Pen(wire, permit=lambda: None)
        self.leadership = self._make_leadership()
        self._pen = Pen(wire, permit=self.leadership.assert_leading, count=self._count)
        self._build()

    def _build(self) -> None:
        settings, clock = self.settings, monotonic
        world = World(self.cluster.features, shipped_mappings=settings.shipped_mappings)
        self._mind = Mind(
            world,
            plan=PlanSettings(schedulers=settings.schedulers),
            limits=Limits(settings.decision_steps, settings.decision_seconds),
            now=now_text,
        )
        self._notices = Notices(self._pen, now=now_text, clock=clock)
        self._complaints = Complaints(self._notices, is_leading=lambda: self.leadership.is_leading)
        self._consumers = Consumers()
        self._clashes = Clashes()
        self._echoes = Echoes()
        conditions = Conditions(pen=self._pen, picture=self.picture, now=now_text, clock=clock)
        avoidance = Avoidance(settings.avoid_seconds, clock)
        self._retraction = self._make_retraction(conditions, avoidance)
        self._suspects = Suspects(self.picture, self._consumers, clock)
        rereading = Rereading(reader=self._reader, picture=self.picture, echoes=self._echoes, clock=clock)
        self._rivals = Rivals(mind=self._mind, suspects=self._suspects, rereading=rereading, clock=clock)
        tools = Tools(
            pen=self._pen,
            picture=self.picture,
            mind=self._mind,
            generation=self._make_generation(),
            writer=AllocationWriter(
                pen=self._pen, reader=self._reader, picture=self.picture, mind=self._mind
            ),
            conditions=conditions,
            notices=self._notices,
            avoidance=avoidance,
            attempts=Attempts(settings.attempts_per_minute, clock),
            clashes=self._clashes,
            rereading=rereading,
            rivals=self._rivals,
            retraction=self._retraction,
            metrics=self.metrics,
            now=now_text,
            clock=clock,
        )
        self._serving = Serving(tools, look_again=self._look_again)
        self.metrics.registry.register(WaitingPods(self._serving.reasons))
        self._release = Release(
            pen=self._pen,
            reader=self._reader,
            picture=self.picture,
            mode=settings.release,
            grace_seconds=settings.release_grace_seconds,
            clock=clock,
        )
        self._reports = MappingReports(pen=self._pen, picture=self.picture, mind=self._mind, now=now_text)
        self._guard = self._make_guard()
        self._pods = Desk(
            "pod",
            serve=self._serving.serve,
            urgency=self._urgency,
            workers=settings.writers,
            metrics=self.metrics,
            on_failure=self._serving.failed,
        )
        self._claims = Desk(
            "claim",
            serve=self._tend_claim,
            urgency=lambda key: (0, "", *key),
            workers=RELEASERS,
            metrics=self.metrics,
        )
        self._reconciler = Reconciler(
            picture=self.picture,
            consumers=self._consumers,
            serving=self._serving,
            release=self._release,
            retraction=self._retraction,
            pods=self._pods,
            claims_desk=self._claims,
            mappings=self._reports.mark,
        )
        self.healing = Healing(
            reader=self._reader,
            picture=self.picture,
            metrics=self.metrics,
            resync_seconds=settings.resync_seconds,
            healed=self._healed,
        )
        # The mind sees a change before anybody is sent to ask it.
        self.picture.follow(self._complaints.follow)
        self.picture.follow(self._mind.post)
        self.picture.follow(self._consumers.follow)
        self.picture.follow(self._clashes.follow)
        self.picture.follow(self._suspects.follow)
        self.picture.follow(self._rivals.follow)
        self.picture.follow(self._guard.follow)
        self.picture.follow(self._reconciler.follow)
        reports = ClashReports(
            picture=self.picture,
            consumers=self._consumers,
            notices=self._notices,
            look_again=self._pods.queue.mark,
            is_leading=lambda: self.leadership.is_leading,
        )
        self._clashes.on_clash(reports.report)
        self._mind.on_meaning(self._reconciler.understand)
        self._mind.on_problem(self._complaints.note)

    async def begin(self) -> None:
        """Start everything; returns at once, `operator_ready` is logged when the picture is complete."""
        await self._check_rights()
        self._runner = await serve_health(self.settings.listen, self.health, self.metrics)
        self._spawn("leadership", self._lead())
        self._spawn("notices", self._notices.run())
        self._spawn("pods", self._pods.run())
        self._spawn("claims", self._claims.run())
        self._spawn("guard", self._guard.run())
        self._spawn("mappings", self._reports.run(lambda: self.leadership.is_leading))
        self._spawn("healing", self._heal())

    async def end(self) -> None:
        """Finish the writes under way, give the Lease back, stop."""
        self._is_ending = True
        await asyncio.gather(self._pods.finish(STOP_SECONDS), self._claims.finish(STOP_SECONDS))
        await self._retraction.finish()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if isinstance(self.leadership, Leadership):
            await self._give_lease_back(self.leadership)
        if self._runner is not None:
            await self._runner.cleanup()
        self._mind.close()
        await self._wire.close()
        log.info("operator_stopped")

    async def _give_lease_back(self, leadership: Leadership) -> None:
        try:
            async with asyncio.timeout(LEASE_RELEASE_SECONDS):
                await leadership.release()
        except TimeoutError:
            log.warning("lease_not_released", reason="no answer in time")

    def observe(self, kind: Kind, event_type: str | None, body: Json) -> None:
        """Take in what a watch reports; without a type, the watch has begun anew."""
        if event_type == "DELETED":
            self.picture.forget(kind, body)
            return
        if event_type is None:
            self.healing.note_gap(kind)
        self.picture.see(kind, body)
        self._echoes.heard(kind, version_of(body))

    async def _check_rights(self) -> None:
        missing = await missing_rights(
            self._plain_pen, self.settings, self.cluster, lease_namespace(self.settings)
        )
        for right in missing:
            log.error("right_missing", right=str(right), purpose=right.purpose)
            self.health.complain(f"missing right to {right}", f"needed to {right.purpose}")

    async def _lead(self) -> None:
        if isinstance(self.leadership, Leadership):
            self.leadership.on_change(self._turn)
            await self.leadership.run()
        else:
            self._turn(is_leading=True)
            await asyncio.Event().wait()

    def _turn(self, is_leading: bool) -> None:
        self.metrics.leading.set(is_leading)
        self._open_desks()
        if is_leading:
            self._reconciler.look_at_everything()
            self._reports.mark()
            self._complaints.repeat()

    def _open_desks(self) -> None:
        may_work = self.leadership.is_leading and self.health.ready and not self._is_ending
        self._pods.open(may_work)
        self._claims.open(may_work)
        self._guard.open(may_work)

    async def _heal(self) -> None:
        for attempt in range(FIRST_LIST_ATTEMPTS):
            try:
                await self.healing.first()
                break
            except ClusterError as error:
                if attempt == FIRST_LIST_ATTEMPTS - 1:
                    raise
                log.warning("list_failed", error=str(error))
                await asyncio.sleep(1 + attempt)
        self.health.ready = True
        self._ready()
        self.health.beat()
        self._open_desks()
        log.info("operator_ready", version=self.cluster.version, leading=self.leadership.is_leading)
        await self.healing.run()

    def _healed(self) -> None:
        self.health.beat()
        self._reconciler.look_at_everything()

    def _look_again(self, key: Key, seconds: float) -> None:
        self._reconciler.look_again(key, seconds)

    def _urgency(self, key: Key) -> Urgency:
        return self._reconciler.urgency(key)

    async def _tend_claim(self, key: Key) -> None:
        await self._reconciler.tend_claim(key)

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._task_over)
        self._tasks.append(task)

    def _task_over(self, task: asyncio.Task[None]) -> None:
        if self._is_ending or task.cancelled():
            return
        error = task.exception()
        log.error("operator_failed", task=task.get_name(), reason=str(error), exc_info=error)
        self._failed()

    def _count(self, verb: str, kind: Kind, subresource: str) -> None:
        self.metrics.writes.labels(verb, kind.plural, subresource).inc()

    def _make_leadership(self) -> Alone | Leadership:
        if not self.settings.leader_election:
            return Alone()
        return Leadership(
            reader=self._reader,
            pen=self._plain_pen,
            namespace=lease_namespace(self.settings),
            name=self.settings.lease_name,
            identity=f"{os.environ.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4()}",
            seconds=self.settings.lease_seconds,
        )

    def _make_guard(self) -> Guard:
        return Guard(
            mind=self._mind,
            picture=self.picture,
            pen=self._pen,
            metrics=self.metrics,
            audit_seconds=self.settings.audit_seconds,
            serves_rules=TAINT_RULE.plural in self.cluster.optional,
            now=now_text,
        )

    def _make_generation(self) -> Generation:
        return Generation(
            pen=self._pen,
            reader=self._reader,
            picture=self.picture,
            mind=self._mind,
            notices=self._notices,
            mode=self.settings.claim_generation,
            grace_seconds=self.settings.claim_generation_grace_seconds,
            clock=monotonic,
        )

    def _make_retraction(self, conditions: Conditions, avoidance: Avoidance) -> Retraction:
        takeback = TakeBack(
            pen=self._pen,
            reader=self._reader,
            picture=self.picture,
            pause_seconds=self.settings.take_back_pause_seconds,
        )
        return Retraction(
            takeback=takeback,
            picture=self.picture,
            avoidance=avoidance,
            conditions=conditions,
            notices=self._notices,
            metrics=self.metrics,
            patience_seconds=self.settings.unschedulable_seconds,
            clock=monotonic,
            served_again=lambda key: self._look_again(key, 0.0),
        )


def lease_namespace(settings: Settings) -> str:
    """Where the Lease lies: as set, else in the namespace of the pod, else in kube-system."""
    return settings.lease_namespace or os.environ.get("POD_NAMESPACE") or own_namespace() or "kube-system"


async def make_operation(
    settings: Settings, *, failed: Callable[[], None], ready: Callable[[], None]
) -> Operation:
    """Connect, examine the cluster and build everything; raises `ClusterUnsuited` or a `ClusterError`."""
    wire = Wire(await connect(), timeout_seconds=settings.request_timeout_seconds)
    try:
        cluster = await examine(Reader(wire), settings)
        log.info("cluster_examined", version=cluster.version, optional=sorted(cluster.optional))
        return Operation(settings, wire=wire, cluster=cluster, failed=failed, ready=ready)
    except BaseException:
        await wire.close()
        raise
