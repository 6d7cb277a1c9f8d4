"""Keeps the fence around owned devices: the taint rules of each DeviceOwnership, and its status."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from dovetail.api.kinds import OWNERSHIP, SLICE, TAINT_RULE
from dovetail.api.ownership import DeviceOwnership
from dovetail.cluster.pen import Pen
from dovetail.core.oversight import slices_in
from dovetail.core.ownership import RuleChanges, fence_of, left_over, rule_changes
from dovetail.core.ownership_status import Inspection, state_of, status_of
from dovetail.core.pool_records import read_pools
from dovetail.core.restrictions import Restrictions
from dovetail.errors import Conflict, Forbidden, NotFound, Rejected
from dovetail.services.mind import Mind
from dovetail.services.picture import Change, Json, Key, Picture, key_of

log = structlog.get_logger(__name__)

REFUSED_SECONDS = 60.0
"""A rule that the API server refuses is sent again after this time: rights and policies change."""


class Fences:
    """Settles one DeviceOwnership at a time; the owner of the queue calls `settle` again when it raises."""

    def __init__(
        self,
        *,
        mind: Mind,
        picture: Picture,
        pen: Pen,
        is_served: Callable[[], bool],
        inspection: Callable[[], Inspection | None],
        restrictions: Callable[[], Restrictions],
        now: Callable[[], str],
    ) -> None:
        """`is_served` says whether the cluster serves DeviceTaintRule in v1."""
        self._mind = mind
        self._picture = picture
        self._pen = pen
        self._is_served = is_served
        self._inspection = inspection
        self._restrictions = restrictions
        self._now = now

    def concerned(self, change: Change) -> tuple[Key, ...]:
        """The DeviceOwnerships to be settled after a change of the picture."""
        if change.kind is OWNERSHIP:
            return (change.key,)
        # A rule of an object that is gone may be in the way of one for its namesake.
        return self.all() if change.kind in (SLICE, TAINT_RULE) else ()

    def all(self) -> tuple[Key, ...]:
        """Every DeviceOwnership."""
        return tuple(key_of(owner) for owner in self._picture.all(OWNERSHIP))

    async def settle(self, key: Key) -> float:
        """Write what rules are missing or wrong, then what the object says of itself, if that changed.

        Returns after how many seconds to try again what the API server refused; 0 where it refused nothing.
        """
        body = self._picture.find(OWNERSHIP, key)
        stays = await self._delete(self._left_over(key)) if self._is_served() else ""
        if body is None or body["metadata"].get("deletionTimestamp"):
            return REFUSED_SECONDS if stays else 0.0
        ownership = DeviceOwnership.parse(body)
        slices = await self._mind.ask(slices_in)
        fence = await asyncio.to_thread(lambda: fence_of(ownership, read_pools(slices)))
        served, refused = self._is_served(), ""
        if served:
            changes = rule_changes(ownership, fence, self._picture.all(TAINT_RULE))
            refused = await self._write_rules(changes)
        before = body.get("status") or {}
        status = status_of(
            ownership,
            fence,
            state_of(fence, served=served, refused=refused),
            inspection=self._inspection(),
            restrictions=self._restrictions(),
            before=before,
            now=self._now(),
        )
        if status != before:
            await self._write_status(body, status)
        return REFUSED_SECONDS if stays or refused else 0.0

    async def _write_rules(self, changes: RuleChanges) -> str:
        """Write rules; returns why the API server refused one, or nothing. Whatever may pass is raised."""
        for rule in changes.create:
            name = rule["metadata"]["name"]
            try:
                self._picture.see(TAINT_RULE, await self._pen.create(TAINT_RULE, "", rule))
            except Conflict:
                return f"a DeviceTaintRule named {name} exists that does not belong to this object"
            except (Rejected, Forbidden, NotFound) as error:
                return str(error)
            log.info("rule_created", rule=name)
        for rule in changes.replace:
            name = rule["metadata"]["name"]
            try:
                self._picture.see(TAINT_RULE, await self._pen.replace(TAINT_RULE, "", name, rule))
            except (Rejected, Forbidden) as error:
                return str(error)
            log.info("rule_put_right", rule=name)
        return await self._delete(changes.delete)

    def _left_over(self, key: Key) -> tuple[tuple[str, str], ...]:
        uids = frozenset(owner["metadata"]["uid"] for owner in self._picture.all(OWNERSHIP))
        return left_over(key[1], self._picture.all(TAINT_RULE), uids)

    async def _delete(self, rules: Iterable[tuple[str, str]]) -> str:
        for name, uid in rules:
            try:
                await self._pen.delete(TAINT_RULE, "", name, uid=uid)
            except NotFound:
                continue
            except (Rejected, Forbidden) as error:
                return str(error)
            log.info("rule_deleted", rule=name)
        return ""

    async def _write_status(self, body: Json, status: Mapping[str, Any]) -> None:
        written = await self._pen.replace(
            OWNERSHIP, "", body["metadata"]["name"], body | {"status": dict(status)}, subresource="status"
        )
        self._picture.see(OWNERSHIP, written)
