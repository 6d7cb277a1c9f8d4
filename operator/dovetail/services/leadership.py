"""Which replica may write: the one that holds the Lease, until a deadline on its own monotonic clock."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import structlog

from dovetail.api.kinds import LEASE
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.errors import ClusterError, Conflict, NotLeading
from dovetail.services.picture import version_of

log = structlog.get_logger(__name__)

RENEWALS_PER_LEASE = 5
"""How often the Lease is renewed, or asked for, while it lasts."""

SAFETY = 2 / 3
"""The part of the Lease's duration during which its holder writes; the rest covers slow requests."""


class Alone:
    """Permission without a Lease: leader election is off."""

    is_leading = True

    def assert_leading(self) -> None:
        """Always permitted."""


class Leadership:
    """Takes, keeps and gives back a Lease.

    Others count from when they saw the Lease change, so clocks of different machines are never compared.
    `assert_leading` is asked just before each write.
    """

    def __init__(
        self,
        *,
        reader: Reader,
        pen: Pen,
        namespace: str,
        name: str,
        identity: str,
        seconds: float,
        succeeds: Callable[[str], bool] = lambda _: False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`succeeds` says whether a holder is known to be dead, so that this process goes on at once."""
        self._reader = reader
        self._pen = pen
        self._namespace = namespace
        self._name = name
        self.identity = identity
        self._seconds = seconds
        self._succeeds = succeeds
        self._clock = clock
        self._deadline = float("-inf")
        self._observed: tuple[str, float] = ("", clock())
        self._version: int | None = None
        """The newest version of the Lease that was seen; 0 where it was not there."""
        self._unsure_since = float("-inf")
        self._changed: Callable[[bool], None] = lambda _: None

    @property
    def is_leading(self) -> bool:
        """Whether writes are permitted at this moment."""
        return self._clock() < self._deadline

    def assert_leading(self) -> None:
        """Raise `NotLeading` where this replica may not write at this moment."""
        if not self.is_leading:
            raise NotLeading("this replica does not hold the Lease")

    def on_change(self, listener: Callable[[bool], None]) -> None:
        """Call `listener` with True when leadership is won, with False when it is lost."""
        self._changed = listener

    async def run(self) -> None:
        """Strive for the Lease for ever, and keep it; errors of the API server only cost time."""
        was_leading = False
        while True:
            try:
                await self.strive()
            except ClusterError as error:
                log.warning("lease_not_renewed", reason=str(error))
            if self.is_leading != was_leading:
                was_leading = self.is_leading
                log.info("leadership_won" if was_leading else "leadership_lost", identity=self.identity)
                self._changed(was_leading)
            await asyncio.sleep(self._seconds / RENEWALS_PER_LEASE)

    async def release(self) -> None:
        """Stop writing and let others take over at once."""
        if not self.is_leading:
            return
        self._deadline = float("-inf")
        try:
            lease = await self._reader.find(LEASE, self._namespace, self._name)
            if lease is not None and lease["spec"].get("holderIdentity") == self.identity:
                spec = lease["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1}
                await self._pen.replace(LEASE, self._namespace, self._name, lease | {"spec": spec})
                log.info("lease_released", identity=self.identity)
        except ClusterError as error:
            log.warning("lease_not_released", reason=str(error))

    async def strive(self) -> None:
        """Renew the Lease, take it where that is allowed, or give up leading; `run` does this for ever."""
        asked_at = self._clock()
        lease = await self._reader.find(LEASE, self._namespace, self._name)
        self._notice(lease)
        if not self._may_take(lease):
            self._deadline = float("-inf")
            return
        try:
            if lease is None:
                answer = await self._pen.create(LEASE, self._namespace, self._fresh())
            else:
                answer = await self._pen.replace(LEASE, self._namespace, self._name, self._taken(lease))
        except Conflict:
            return
        self._version = version_of(answer)
        self._deadline = asked_at + self._seconds * SAFETY

    def _notice(self, lease: dict[str, Any] | None) -> None:
        """A Lease that went back, or away, was restored or deleted: who held it since may still write."""
        version = version_of(lease) if lease is not None else 0
        if version is not None and self._version is not None and version < self._version:
            self._unsure_since = self._clock()
            log.warning("lease_went_back", seen=self._version, version=version)
        self._version = version

    def _may_take(self, lease: dict[str, Any] | None) -> bool:
        if not self.is_leading and self._clock() - self._unsure_since <= self._seconds:
            return False
        if lease is None:
            return True
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        seen = f"{holder} {spec.get('renewTime')} {lease['metadata'].get('resourceVersion')}"
        if seen != self._observed[0]:
            self._observed = (seen, self._clock())
        if holder in ("", self.identity):
            return True
        if self._succeeds(holder):
            log.info("lease_inherited", predecessor=holder)
            return True
        lasts = float(spec.get("leaseDurationSeconds") or self._seconds)
        return self._clock() - self._observed[1] > lasts

    def _fresh(self) -> dict[str, Any]:
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.name,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._spec(transitions=0, acquired=_now()),
        }

    def _taken(self, lease: dict[str, Any]) -> dict[str, Any]:
        before = lease.get("spec") or {}
        kept = before.get("holderIdentity") == self.identity
        transitions = int(before.get("leaseTransitions") or 0) + (0 if kept else 1)
        acquired = before.get("acquireTime") if kept else None
        return lease | {"spec": self._spec(transitions=transitions, acquired=acquired or _now())}

    def _spec(self, *, transitions: int, acquired: str) -> dict[str, Any]:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(int(self._seconds), 1),
            "acquireTime": acquired,
            "renewTime": _now(),
            "leaseTransitions": transitions,
        }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
