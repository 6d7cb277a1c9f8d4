"""The operator at work: in which order things start, what a turn of leadership changes, and how all stops."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import structlog
from aiohttp import web

from dovetail.api.kinds import STREAMED, Kind
from dovetail.cluster.connection import connect
from dovetail.cluster.reader import Reader
from dovetail.cluster.watch import Event
from dovetail.cluster.wire import Wire
from dovetail.errors import ClusterError
from dovetail.services.collecting import collect_seldom, spare_what_stays
from dovetail.services.health import Health, serve_health
from dovetail.services.journal import Journal
from dovetail.services.leadership import Leadership
from dovetail.services.metrics import Metrics
from dovetail.services.picture import Json, version_of
from dovetail.services.settings import Settings
from dovetail.services.startup import Cluster, examine
from dovetail.services.streams import Streams
from dovetail.services.workshop import Workshop

log = structlog.get_logger(__name__)

STOP_SECONDS = 2.0
"""How long writes under way may take when the process is told to stop."""

LEASE_RELEASE_SECONDS = 1.0

FIRST_LIST_ATTEMPTS = 5

STALLED_AFTER_RESYNCS = 3
SHORTEST_STALL_SECONDS = 60.0


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
        journal: Journal,
        failed: Callable[[], None],
        ready: Callable[[], None],
    ) -> None:
        stalled_after = max(STALLED_AFTER_RESYNCS * settings.resync_seconds, SHORTEST_STALL_SECONDS)
        self.settings = settings
        self.health = Health(stalled_after_seconds=stalled_after)
        self._failed = failed
        self._ready = ready
        self._wire = wire
        self._tasks: list[asyncio.Task[Any]] = []
        self._runner: web.AppRunner | None = None
        self._is_ending = False
        self._parts = Workshop(settings, cluster, wire, self.health, journal)
        self._parts.connect_parts()
        self._parts.healing.on_healed(self._healed)

    @property
    def metrics(self) -> Metrics:
        """What is counted."""
        return self._parts.metrics

    async def begin(self) -> None:
        """Start everything; returns at once, `operator_ready` is logged when the picture is complete."""
        parts = self._parts
        collect_seldom()
        await parts.permits.check()
        self._runner = await serve_health(self.settings.listen, self.health, parts.metrics)
        self._spawn("leadership", self._lead())
        self._spawn("notices", parts.notices.run())
        self._spawn("pods", parts.pods.run())
        self._spawn("claims", parts.claims.run())
        self._spawn("guard", parts.guard.run())
        self._spawn("quarantine", parts.quarantine.desk.run())
        self._spawn("mappings", parts.reports.run(parts.is_leading))
        self._spawn("rights", parts.permits.run())
        self._spawn("survey", parts.survey.run())
        self._spawn("healing", self._heal())

    async def end(self) -> None:
        """Finish the writes under way, give the Lease back, stop."""
        self._is_ending = True
        parts = self._parts
        parts.mind.hurry()
        desks = (parts.pods, parts.claims, parts.guard, parts.quarantine.desk)
        await asyncio.gather(*(desk.finish(STOP_SECONDS) for desk in desks))
        await parts.earmarks.finish()
        await parts.retraction.finish()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if isinstance(parts.leadership, Leadership):
            await self._give_lease_back(parts.leadership)
            parts.seat.leave()
        if self._runner is not None:
            await self._runner.cleanup()
        parts.mind.close()
        await self._wire.close()
        log.info("operator_stopped")

    def observe(self, kind: Kind, event_type: str | None, body: Json) -> None:
        """Take in what Kopf's watch reports; without a type, the watch has begun anew."""
        if event_type is None:
            self._parts.healing.note_gap(kind)
        self._see(kind, event_type, body)

    def _follow(self, kind: Kind, events: Sequence[Event]) -> None:
        """Take in what a watch of our own reports."""
        for event in events:
            if event.type != "BOOKMARK":
                self._see(kind, event.type, event.body)
        version = version_of(events[-1].body)
        self._parts.picture.reach(kind, version)
        self._parts.echoes.heard(kind, version)

    def _see(self, kind: Kind, event_type: str | None, body: Json) -> None:
        if event_type == "DELETED":
            self._parts.picture.forget(kind, body)
        else:
            self._parts.picture.see(kind, body)

    async def _lead(self) -> None:
        leadership = self._parts.leadership
        if isinstance(leadership, Leadership):
            leadership.on_change(self._turn)
            await leadership.run()
        else:
            self._turn(is_leading=True)
            await asyncio.Event().wait()

    def _turn(self, is_leading: bool) -> None:
        """Leadership was won, or lost."""
        self._parts.metrics.leading.set(is_leading)
        self._open_desks()
        if is_leading:
            self._parts.reconciler.look_at_everything()
            self._parts.reports.mark()
            self._parts.complaints.repeat()

    def _open_desks(self) -> None:
        may_work = self._parts.is_leading() and self.health.ready and not self._is_ending
        parts = self._parts
        for desk in (parts.pods, parts.claims, parts.guard, parts.quarantine.desk):
            desk.open(may_work)

    async def _heal(self) -> None:
        """Complete the picture, then keep it true."""
        await self._list_first()
        spare_what_stays()
        self.health.ready = True
        self.health.beat()
        self._ready()
        self._open_desks()
        version = self._parts.cluster.version
        log.info("operator_ready", version=version, leading=self._parts.is_leading())
        streams = Streams(reader=self._parts.reader, healing=self._parts.healing, observe=self._follow)
        self._parts.healing.on_going_back(streams.begin_anew)
        for kind in STREAMED:
            self._spawn(f"watch of {kind.plural}", streams.follow(kind))
        await self._parts.healing.run()

    async def _list_first(self) -> None:
        for pause in range(1, FIRST_LIST_ATTEMPTS):
            try:
                await self._parts.healing.first()
            except ClusterError as error:
                log.warning("list_failed", error=str(error))
                await asyncio.sleep(pause)
            else:
                return
        await self._parts.healing.first()

    def _healed(self) -> None:
        self.health.beat()
        self._parts.reconciler.look_at_everything()

    async def _give_lease_back(self, leadership: Leadership) -> None:
        try:
            async with asyncio.timeout(LEASE_RELEASE_SECONDS):
                await leadership.release()
        except TimeoutError:
            log.warning("lease_not_released", reason="no answer in time")

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


async def make_operation(
    settings: Settings, *, journal: Journal, failed: Callable[[], None], ready: Callable[[], None]
) -> Operation:
    """Connect, examine the cluster and build everything; raises `ClusterUnsuited` or a `ClusterError`."""
    wire = Wire(await connect(), timeout_seconds=settings.request_timeout_seconds)
    try:
        cluster = await examine(Reader(wire), settings)
        log.info(
            "cluster_examined",
            version=cluster.version,
            optional=sorted(cluster.optional),
            gates=cluster.features.gates,
        )
        return Operation(settings, wire=wire, cluster=cluster, journal=journal, failed=failed, ready=ready)
    except BaseException:
        await wire.close()
        raise
