"""Taking back what was given: in one step while the pod is gated, else in two, never once it is bound."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from dovetail.api.kinds import CLAIM, POD
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.errors import ClusterError, Conflict
from dovetail.services import claims
from dovetail.services.gates import is_gated
from dovetail.services.picture import Json, Key, Picture, key_of

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The claims that were taken back, and whether something moved meanwhile so that others were not."""

    claims: tuple[Key, ...] = ()
    moved: bool = False


class TakeBack:
    """Takes devices back from a pod that cannot use them.

    A claim that has other consumers keeps its allocation: only the pod is taken out of it.
    """

    def __init__(self, *, pen: Pen, reader: Reader, picture: Picture, pause_seconds: float) -> None:
        self._pen = pen
        self._reader = reader
        self._picture = picture
        self._pause = pause_seconds

    async def take_back(self, pod: Mapping[str, Any], held: Sequence[Json]) -> TakenBack:
        """Take the given claims back from the pod, which was unbound when it was last seen.

        Between the two steps lies a pause longer than any binding that is already under way can take (V-16):
        a binding that starts later has to reserve again, and the second step then meets a newer version.
        """
        if not is_gated(pod):
            return await self._in_two_steps(pod, held)
        if not await self._is_unbound(pod):
            return TakenBack(moved=True)
        return await self._each(pod, held, keep_allocation=False)

    async def _in_two_steps(self, pod: Mapping[str, Any], held: Sequence[Json]) -> TakenBack:
        first = await self._each(pod, held, keep_allocation=True)
        if first.moved:
            return first
        await asyncio.sleep(self._pause)
        if not await self._is_unbound(pod):
            log.info("pod_bound_meanwhile", pod="/".join(key_of(pod)))
            return TakenBack(moved=True)
        unreserved = [body for key in first.claims if (body := self._picture.find(CLAIM, key))]
        sole = [body for body in unreserved if not claims.consumers(body)]
        return await self._each(pod, sole, keep_allocation=False)

    async def _each(
        self, pod: Mapping[str, Any], held: Sequence[Json], *, keep_allocation: bool
    ) -> TakenBack:
        done: list[Key] = []
        uid = frozenset({pod["metadata"]["uid"]})
        for claim in held:
            shared = bool(claims.consumers(claim) - uid)
            status = claims.status_without(claim, uid, keep_allocation=keep_allocation or shared)
            if status == (claim.get("status") or {}):
                done.append(key_of(claim))
                continue
            try:
                body = await self._pen.replace(
                    CLAIM, *key_of(claim), claim | {"status": status}, subresource="status"
                )
            except Conflict:
                return TakenBack(tuple(done), moved=True)
            except ClusterError as error:
                log.warning("not_taken_back", claim="/".join(key_of(claim)), error=str(error))
                return TakenBack(tuple(done), moved=True)
            self._picture.see(CLAIM, body)
            done.append(key_of(claim))
        return TakenBack(tuple(done))

    async def _is_unbound(self, pod: Mapping[str, Any]) -> bool:
        """Whether the API server says, now, that the pod is there and has no node."""
        body = await self._reader.find(POD, *key_of(pod))
        if body is None or body["metadata"]["uid"] != pod["metadata"]["uid"]:
            return True
        self._picture.see(POD, body)
        return not body["spec"].get("nodeName")
