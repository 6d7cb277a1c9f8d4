"""Freeing the claims of pods that are done, where kube-controller-manager does not (L1-L22, L30-L34)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from dovetail.api.claims import EXTENDED_RESOURCE_CLAIM
from dovetail.api.kinds import CLAIM, POD
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.errors import Conflict, NotFound
from dovetail.services import claims
from dovetail.services.picture import Json, Key, Picture, key_of
from dovetail.services.settings import Mode

log = structlog.get_logger(__name__)


class Release:
    """Brings one claim at a time to where its consumers allow it to be.

    In mode `auto` a claim is left alone as long as somebody else changes it within the grace time.
    A claim that Dovetail allocated for a pod that went before it was reserved is nobody else's business:
    kube-controller-manager frees only what somebody had reserved, so that this is done in every mode.
    """

    def __init__(
        self,
        *,
        pen: Pen,
        reader: Reader,
        picture: Picture,
        users: Callable[[Key], Iterable[Key]],
        mode: Mode,
        grace_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._pen = pen
        self._reader = reader
        self._picture = picture
        self._users = users
        self._mode = mode
        self._grace = grace_seconds
        self._clock = clock
        self._overdue: dict[Key, tuple[str, float]] = {}

    async def tend(self, key: Key) -> float:
        """Free a claim as far as its consumers are done.

        Returns after how many seconds to look again; 0 where nothing is due.
        """
        claim = self._picture.find(CLAIM, key)
        if claim is None or not self.is_due(claim):
            self._overdue.pop(key, None)
            return 0.0
        rest = self._rest_of_grace(key, claim)
        if rest > 0:
            return rest
        self._overdue.pop(key, None)
        try:
            await self._free(claim)
        except NotFound:
            return 0.0
        except Conflict:
            # Somebody wrote first: the watch brings the claim again.
            return 0.5
        return 0.0

    def forget(self, key: Key) -> None:
        """The claim is gone."""
        self._overdue.pop(key, None)

    def _rest_of_grace(self, key: Key, claim: Json) -> float:
        if self._mode == "always":
            return 0.0
        version = str(claim["metadata"].get("resourceVersion"))
        known, since = self._overdue.get(key, ("", 0.0))
        if known != version:
            since = self._clock()
            self._overdue[key] = (version, since)
        return since + self._grace - self._clock()

    def is_due(self, claim: Json) -> bool:
        """Whether there is anything to do for a claim, as far as the picture shows."""
        if EXTENDED_RESOURCE_CLAIM in (claim["metadata"].get("annotations") or {}):
            return False
        if self._mode == "never":
            return self._is_abandoned(claim)
        entries = _entries(claim)
        if any(self._seems_done(claim, entry) for entry in entries):
            return True
        if entries:
            return False
        return self._is_dying(claim) or self._owner_is_done(claim) or self._is_abandoned(claim)

    def _is_abandoned(self, claim: Json) -> bool:
        """A claim that a person made: Dovetail gave it devices, nobody reserved it, no pod is left for it."""
        return (
            claims.is_allocated(claim)
            and claims.is_written_by_us(claim)
            and not _entries(claim)
            and claims.controller_of(claim) is None
            and not any(self._is_alive(user) for user in self._users(key_of(claim)))
        )

    def _is_alive(self, key: Key) -> bool:
        pod = self._picture.find(POD, key)
        return pod is not None and not is_done(pod)

    def _seems_done(self, claim: Json, entry: Mapping[str, Any]) -> bool:
        if not _is_pod(entry):
            return False
        pod = self._picture.find(POD, (claim["metadata"]["namespace"], entry["name"]))
        return pod is None or pod["metadata"]["uid"] != entry["uid"] or is_done(pod)

    @staticmethod
    def _is_dying(claim: Json) -> bool:
        return claims.is_protected(claim) and bool(claim["metadata"].get("deletionTimestamp"))

    def _owner_is_done(self, claim: Json) -> bool:
        """The controlling pod is known and done, or its name has passed to another pod (L20)."""
        owner = claims.controller_of(claim)
        if owner is None or (owner.get("apiVersion"), owner.get("kind")) != ("v1", "Pod"):
            return False
        pod = self._picture.find(POD, (claim["metadata"]["namespace"], owner["name"]))
        return pod is not None and (pod["metadata"]["uid"] != owner["uid"] or is_done(pod))

    async def _free(self, claim: Json) -> None:
        claim = await self._unreserve(claim)
        if _entries(claim):
            return
        if self._is_dying(claim) or self._is_abandoned(claim):
            claim = await self._deallocate(claim)
        if claims.is_protected(claim) and not claims.is_allocated(claim):
            await self._unprotect(claim)
        if self._owner_is_done(claim) and not claim["metadata"].get("deletionTimestamp"):
            await self._pen.delete(CLAIM, *key_of(claim), uid=claim["metadata"]["uid"])
            log.info("claim_deleted", claim="/".join(key_of(claim)))

    async def _unreserve(self, claim: Json) -> Json:
        """Take out the consumers that are done; with the last one the allocation, if protected (L6, L10)."""
        gone = frozenset([entry["uid"] for entry in _entries(claim) if await self._is_gone(claim, entry)])
        if not gone:
            return claim
        last = not claims.consumers(claim) - gone
        keeps = not (last and claims.is_protected(claim))
        body = await self._write_status(claim, claims.status_without(claim, gone, keep_allocation=keeps))
        log.info("claim_released", claim="/".join(key_of(claim)), consumers=len(gone), freed=not keeps)
        return body

    async def _is_gone(self, claim: Json, entry: Mapping[str, Any]) -> bool:
        """As L3: done in the picture, or not in the picture and not on the API server either."""
        if not _is_pod(entry):
            return False
        key = (claim["metadata"]["namespace"], entry["name"])
        pod = self._picture.find(POD, key)
        if pod is None or pod["metadata"]["uid"] != entry["uid"]:
            pod = await self._reader.find(POD, *key)
        return pod is None or pod["metadata"]["uid"] != entry["uid"] or is_done(pod)

    async def _deallocate(self, claim: Json) -> Json:
        if not claims.is_allocated(claim):
            return claim
        return await self._write_status(
            claim, claims.status_without(claim, frozenset(), keep_allocation=False)
        )

    async def _write_status(self, claim: Json, status: Json) -> Json:
        body = await self._pen.replace(
            CLAIM, *key_of(claim), claim | {"status": status}, subresource="status"
        )
        self._picture.see(CLAIM, body)
        return body

    async def _unprotect(self, claim: Json) -> None:
        body = await self._pen.replace(CLAIM, *key_of(claim), claims.unprotected(claim))
        if body["metadata"].get("deletionTimestamp") and not body["metadata"].get("finalizers"):
            self._picture.forget(CLAIM, body)
        else:
            self._picture.see(CLAIM, body)


def is_done(pod: Mapping[str, Any]) -> bool:
    """Terminal, or deleted before it had a node (L1)."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return True
    return bool(pod["metadata"].get("deletionTimestamp")) and not pod["spec"].get("nodeName")


def _entries(claim: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list((claim.get("status") or {}).get("reservedFor") or ())


def _is_pod(entry: Mapping[str, Any]) -> bool:
    return not entry.get("apiGroup") and entry.get("resource") == "pods"
