"""Events on objects: one per reason, counted where it happens again, never in the way of the work."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import structlog

from dovetail.api.kinds import EVENT
from dovetail.cluster.pen import Pen
from dovetail.errors import ClusterError, Conflict, NotFound, NotLeading
from dovetail.services.text import sentence

log = structlog.get_logger(__name__)

COMPONENT = "dovetail"
BACKLOG = 2000
"""How many events may wait to be written; beyond that the newest are left out."""

REMEMBERED = 10_000
REPEAT_AFTER_SECONDS = 600.0
"""The same words about the same object are written again only after this time."""

Severity = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class _Notice:
    name: str
    regarding: Mapping[str, Any]
    severity: Severity
    reason: str
    message: str
    count: int
    first: str


class Notices:
    """Writes events in the background. Losing one is no harm: the condition on the pod says the same."""

    def __init__(self, pen: Pen, *, now: Callable[[], str], clock: Callable[[], float]) -> None:
        self._pen = pen
        self._now = now
        self._clock = clock
        self._backlog: asyncio.Queue[_Notice] = asyncio.Queue(BACKLOG)
        self._said: OrderedDict[str, tuple[_Notice, float]] = OrderedDict()

    def say(self, regarding: Mapping[str, Any], severity: Severity, reason: str, message: str) -> None:
        """Tell the owner of an object something. The same words again soon are not repeated."""
        name = _name(regarding, severity, reason)
        clean = sentence(message)
        known, at = self._said.get(name, (None, 0.0))
        if known is not None and known.message == clean and self._clock() - at < REPEAT_AFTER_SECONDS:
            return
        count = known.count + 1 if known else 1
        first = known.first if known else self._now()
        notice = _Notice(name, _reference(regarding), severity, reason, clean, count, first)
        self._said[name] = (notice, self._clock())
        self._said.move_to_end(name)
        if len(self._said) > REMEMBERED:
            self._said.popitem(last=False)
        if self._backlog.full():
            log.warning("event_left_out", reason=reason)
        else:
            self._backlog.put_nowait(notice)

    async def run(self) -> None:
        """Write what was said, for ever."""
        while True:
            notice = await self._backlog.get()
            try:
                await self._write(notice)
            except (ClusterError, NotLeading) as error:
                log.warning("event_not_written", reason=notice.reason, error=str(error))
            finally:
                self._backlog.task_done()

    async def written(self) -> None:
        """Wait until everything that was said is written, or given up."""
        await self._backlog.join()

    async def _write(self, notice: _Notice) -> None:
        namespace = notice.regarding.get("namespace") or "default"
        if notice.count == 1:
            try:
                await self._pen.create(EVENT, namespace, _body(notice, namespace, self._now()))
            except Conflict:
                # A replica before us said the same: the count goes on from there as well as can be.
                notice = replace(notice, count=2)
            else:
                return
        patch = {"count": notice.count, "lastTimestamp": self._now(), "message": notice.message}
        try:
            await self._pen.merge(EVENT, namespace, notice.name, patch)
        except NotFound:
            await self._pen.create(EVENT, namespace, _body(notice, namespace, self._now()))


def _name(regarding: Mapping[str, Any], severity: Severity, reason: str) -> str:
    metadata = regarding["metadata"]
    identity = f"{metadata.get('uid')}/{severity}/{reason}"
    return f"{metadata['name'][:200]}.{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def _reference(regarding: Mapping[str, Any]) -> dict[str, Any]:
    metadata = regarding["metadata"]
    reference = {
        "apiVersion": regarding.get("apiVersion"),
        "kind": regarding.get("kind"),
        "namespace": metadata.get("namespace"),
        "name": metadata["name"],
        "uid": metadata.get("uid"),
    }
    return {name: value for name, value in reference.items() if value}


def _body(notice: _Notice, namespace: str, now: str) -> dict[str, Any]:
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.name,
        "metadata": {"name": notice.name, "namespace": namespace},
        "involvedObject": dict(notice.regarding),
        "type": notice.severity,
        "reason": notice.reason,
        "message": notice.message,
        "count": notice.count,
        "firstTimestamp": notice.first,
        "lastTimestamp": now,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
    }
