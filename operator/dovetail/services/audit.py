"""The audit inside the operator: on the picture, every so often, told by metric, log and condition."""

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic, time

import structlog
from prometheus_client import Gauge

from dovetail.api.kinds import CLAIM, CLASS, OWNERSHIP, POD, SLICE, TAINT_RULE
from dovetail.core.audit import Evidence, audit, lasting
from dovetail.core.cel import Memory
from dovetail.core.findings import TRANSIENT, Fault, Finding
from dovetail.core.oversight import Bystanders, bystanders_in, evidence_in
from dovetail.core.ownership_status import Inspection
from dovetail.core.world import World
from dovetail.services.metrics import Metrics
from dovetail.services.mind import Mind
from dovetail.services.picture import Change

log = structlog.get_logger(__name__)

TELLING = frozenset({CLAIM, POD, SLICE, CLASS, TAINT_RULE, OWNERSHIP})
"""Kinds whose changes can make a finding, or end one; nodes report too often to count."""

SETTLE_SECONDS = 30.0
"""How long a transient finding has to be there until it counts: longer than writes take when all is busy."""

LOGGED_AT_ONCE = 20
"""How many new findings one audit logs; the metric counts them all."""


class Auditor:
    """Audits while the picture changes; a cluster in which nothing happens costs nothing.

    A finding that controllers, or writes under way, may be ending at this moment counts when it lasts.
    """

    def __init__(
        self,
        *,
        mind: Mind,
        metrics: Metrics,
        seconds: float,
        on_result: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._mind = mind
        self._seconds = seconds
        self._open = asyncio.Event()
        self._on_result = on_result
        self._memory = Memory()
        self._changed = True
        self._clock = clock
        self._since: dict[Finding, float] = {}
        self.inspection: Inspection | None = None
        self._gauge = Gauge(
            "dovetail_audit_findings",
            "What is wrong across all claims of the cluster at present, by fault.",
            ["fault"],
            registry=metrics.registry,
        )
        self._ran = Gauge(
            "dovetail_audit_timestamp_seconds",
            "When all claims of the cluster were last audited.",
            registry=metrics.registry,
        )
        for fault in Fault:
            self._gauge.labels(str(fault))

    def open(self, is_open: bool = True) -> None:
        """Begin, or pause: the audit needs a complete picture, and one replica's word is enough."""
        if is_open:
            self._open.set()
        else:
            self._open.clear()

    def follow(self, change: Change) -> None:
        """The picture changed: the next audit may find something else."""
        if change.kind in TELLING:
            self._changed = True

    async def run(self) -> None:
        """Audit for ever, while it is open."""
        while True:
            await self._open.wait()
            if self._changed or self._unsettled:
                try:
                    await self.check()
                except Exception:
                    # A fault of the audit must not stop the work that it watches.
                    log.exception("audit_failed")
                    self._changed = True
            await asyncio.sleep(self._seconds)

    @property
    def _unsettled(self) -> bool:
        reported = self.inspection.findings if self.inspection else ()
        return not self._since.keys() <= set(reported)

    async def check(self) -> Inspection:
        """Audit now; returns what counts as found."""
        self._changed = False
        evidence, bystanders = await self._mind.ask(_snapshot)
        # The picture goes on meanwhile: what was taken out of it never changes.
        found, stops = await asyncio.to_thread(lambda: (audit(evidence), bystanders.stopped(self._memory)))
        before, self.inspection = self.inspection, Inspection(lasting(found, self._settled(found)), stops)
        self._tell(before.findings if before else (), self.inspection.findings)
        if self.inspection != before:
            self._on_result()
        return self.inspection

    def _settled(self, found: Iterable[Finding]) -> tuple[Finding, ...]:
        """The transient ones of these that have been there for long enough."""
        now = self._clock()
        transient = (finding for finding in found if finding.fault in TRANSIENT)
        self._since = {finding: self._since.get(finding, now) for finding in transient}
        return tuple(finding for finding, since in self._since.items() if now - since >= SETTLE_SECONDS)

    def _tell(self, before: tuple[Finding, ...], now: tuple[Finding, ...]) -> None:
        for fault in Fault:
            self._gauge.labels(str(fault)).set(sum(finding.fault is fault for finding in now))
        self._ran.set(time())
        new = sorted(set(now) - set(before))
        for finding in new[:LOGGED_AT_ONCE]:
            log.warning("audit_finding", fault=str(finding.fault), sentence=finding.sentence)
        if len(new) > LOGGED_AT_ONCE:
            log.warning("audit_findings_left_out", count=len(new) - LOGGED_AT_ONCE)


def _snapshot(world: World) -> tuple[Evidence, Bystanders]:
    return evidence_in(world), bystanders_in(world)
