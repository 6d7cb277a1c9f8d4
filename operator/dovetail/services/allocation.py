"""Writing what was decided: claims get their devices, and the pod as consumer (design, section 2.5)."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from dovetail.api.kinds import CLAIM, POD
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.core.decisions import Grant, Place, Reserve
from dovetail.core.outcome import Allocation
from dovetail.errors import ClusterError, Conflict, Rejected, Unavailable
from dovetail.services import claims
from dovetail.services.mind import Mind, Verdict
from dovetail.services.picture import Json, Key, Picture, key_of
from dovetail.services.release import is_done

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Dropped:
    """The API server kept less of an allocation than was sent: a feature gate is off (V69)."""

    claim: Key
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """How the writing went: whole where `failures` is empty."""

    failures: tuple[ClusterError, ...] = ()
    unknown: tuple[Key, ...] = ()
    """Claims of which nobody knows whether they were written."""
    dropped: tuple[Dropped, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Every claim was written."""
        return not self.failures


class AllocationWriter:
    """Writes claims.

    What was assumed of a claim is withdrawn as soon as its fate is known:
    by then the picture shows what was written, or what is there instead.
    """

    def __init__(self, *, pen: Pen, reader: Reader, picture: Picture, mind: Mind) -> None:
        self._pen = pen
        self._reader = reader
        self._picture = picture
        self._mind = mind
        self._unknown: dict[Key, tuple[Key, str]] = {}
        """Claims of which nobody knows whether they were written, with pod and UID that they were for."""

    async def write(self, pod: Mapping[str, Any], verdict: Verdict, *, now: str) -> Written:
        """Carry out a `Place` or `Reserve`, except for the gate.

        All finalizers are written before the first allocation, so that whatever forbids the former
        leaves no pod half served.
        """
        try:
            written = await self._write(pod, verdict, now)
        except BaseException:
            # Not sent, or given up at the end: nothing is known to be written beyond what the picture shows.
            self._mind.withdraw(verdict.claims.keys())
            raise
        self._mind.withdraw(verdict.claims.keys() - set(written.unknown))
        self._unknown |= dict.fromkeys(written.unknown, (key_of(pod), pod["metadata"]["uid"]))
        return written

    async def _write(self, pod: Mapping[str, Any], verdict: Verdict, now: str) -> Written:
        match verdict.decision:
            case Place(grants=grants, reserve=reserve):
                ours = [grant for grant in grants if grant.ours and grant.claim in verdict.claims]
            case Reserve(claims=reserve):
                ours = []
            case _:
                return Written()
        protected = await self._settle_all({grant.claim: self._protect(grant, verdict) for grant in ours})
        if protected.failures:
            return Written(tuple(protected.failures.values()))
        writes = {
            grant.claim: self._allocate(pod, protected.bodies[grant.claim], grant.allocation, now)
            for grant in ours
        }
        writes |= {key: self._reserve(pod, verdict.claims[key]) for key in reserve if key in verdict.claims}
        settled = await self._settle_all(writes)
        await self._look_into(settled)
        dropped = [lost for grant in ours if (lost := _dropped(grant, settled.bodies.get(grant.claim)))]
        return Written(settled.written.failures, settled.written.unknown, tuple(dropped))

    async def restore(self, pod: Mapping[str, Any], held: Sequence[Json]) -> None:
        """Make a pod that has its node a consumer of claims again."""
        for claim in held:
            await self._reserve(pod, claim)

    async def read_back(self, keys: tuple[Key, ...]) -> None:
        """Find out what became of writes without an answer; raises where that cannot be found out now."""
        for key in keys:
            body = await self._reader.find(CLAIM, *key)
            if body is not None:
                self._picture.see(CLAIM, body)
            self._unknown.pop(key, None)
        self._mind.withdraw(keys)

    async def settle_abandoned(self) -> None:
        """Find out about writes without an answer whose pod is gone: nobody else asks for them any more.

        Where that is not possible now, it is tried again at the next call.
        """
        gone = {claim: pod for claim, pod in self._unknown.items() if self._is_gone(*pod)}
        for claim, pod in gone.items():
            if self._unknown.pop(claim, None) is None:
                # Somebody else is at it.
                continue
            try:
                await self.read_back((claim,))
            except ClusterError as error:
                self._unknown[claim] = pod
                log.warning("not_read_back", claim="/".join(claim), error=str(error))

    def _is_gone(self, key: Key, uid: str) -> bool:
        pod = self._picture.find(POD, key)
        return pod is None or pod["metadata"]["uid"] != uid or is_done(pod)

    async def _look_into(self, settled: "_Settled") -> None:
        """A conflict may be with ourselves: a first try took place, its answer was lost, a second was sent.

        What is assumed of such a claim is withdrawn only once the claim has been read.
        """
        for key in settled.contested:
            try:
                await self.read_back((key,))
            except ClusterError as error:
                settled.failures[key] = Unavailable("reading back", str(error))

    async def _protect(self, grant: Grant, verdict: Verdict) -> Json:
        claim = verdict.claims[grant.claim]
        wanted = claims.protected(claim, grant.allocation.alignment)
        if wanted is None:
            return claim
        body = await self._pen.replace(CLAIM, *grant.claim, wanted)
        self._picture.see(CLAIM, body)
        return body

    async def _allocate(self, pod: Mapping[str, Any], claim: Json, allocation: Allocation, now: str) -> Json:
        status = claims.status_with(claim, pod, allocation=allocation.body, now=now)
        return await self._put_status(claim, status)

    async def _reserve(self, pod: Mapping[str, Any], claim: Json) -> Json:
        """Add a consumer; where that does not apply, once more if the devices are still the same.

        kube-controller-manager writes to a claim a hundred times a second, without end, where a finished pod
        shares it with others. No version that was read is still the newest when it is written,
        so that the API server is asked to add the consumer to whatever is the newest.
        """
        try:
            return await self._add(pod, claim)
        except (Conflict, Rejected) as error:
            fresh = await self._reader.find(CLAIM, *key_of(claim))
            if fresh is None or _devices(fresh) != _devices(claim):
                raise Conflict(error.action, "its devices were changed by others", error.status) from error
            return await self._join(pod, fresh)

    async def _add(self, pod: Mapping[str, Any], claim: Json) -> Json:
        operations = claims.joining(claim, pod)
        if not operations:
            return await self._join(pod, claim)
        body = await self._pen.change(CLAIM, *key_of(claim), operations, subresource="status")
        self._picture.see(CLAIM, body)
        return body

    async def _join(self, pod: Mapping[str, Any], claim: Json) -> Json:
        return await self._put_status(claim, claims.status_with(claim, pod, allocation=None, now=""))

    async def _put_status(self, claim: Json, status: Json) -> Json:
        metadata = claim["metadata"]
        body = await self._pen.replace(
            CLAIM,
            metadata["namespace"],
            metadata["name"],
            claim | {"status": status},
            subresource="status",
        )
        self._picture.see(CLAIM, body)
        return body

    @staticmethod
    async def _settle_all(writes: Mapping[Key, Any]) -> "_Settled":
        answers = await asyncio.gather(*writes.values(), return_exceptions=True)
        settled = _Settled()
        for key, answer in zip(writes, answers, strict=True):
            if isinstance(answer, ClusterError):
                settled.failures[key] = answer
            elif isinstance(answer, BaseException):
                raise answer
            else:
                settled.bodies[key] = answer
        return settled


def _devices(claim: Json) -> tuple[Any, Any]:
    """Which claim it is, and what it was given."""
    return claim["metadata"].get("uid"), (claim.get("status") or {}).get("allocation")


class _Settled:
    """The answers to several writes, by claim."""

    def __init__(self) -> None:
        self.bodies: dict[Key, Json] = {}
        self.failures: dict[Key, ClusterError] = {}

    @property
    def contested(self) -> list[Key]:
        """Claims that had changed when they were to be written."""
        return [key for key, error in self.failures.items() if isinstance(error, Conflict)]

    @property
    def written(self) -> Written:
        unknown = tuple(key for key, error in self.failures.items() if isinstance(error, Unavailable))
        return Written(tuple(self.failures.values()), unknown)


def _dropped(grant: Grant, body: Json | None) -> Dropped | None:
    """What of the allocation the API server did not keep."""
    if body is None:
        return None
    sent = grant.allocation.body.get("devices", {}).get("results", ())
    kept = body.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    lost = {
        name
        for wanted, got in zip(sent, kept, strict=False)
        for name, value in wanted.items()
        if value not in (None, "", [], {}, False) and name not in got
    }
    return Dropped(grant.claim, tuple(sorted(lost))) if lost else None
