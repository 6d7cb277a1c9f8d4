"""The status of DerivedAttribute objects: whether they hold, and which devices they serve."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from dovetail.api.kinds import MAPPING
from dovetail.cluster.pen import Pen
from dovetail.core.cel import Memory
from dovetail.core.mapping_status import coverage, idle_rules, publishers, status_of
from dovetail.core.restrictions import Restrictions
from dovetail.core.world import World
from dovetail.errors import ClusterError, NotFound, NotLeading, TooCostly
from dovetail.services.mind import Mind
from dovetail.services.picture import Json, Picture

log = structlog.get_logger(__name__)

SETTLE_SECONDS = 1.0
"""Slices come in bursts: the status is judged once after each."""

RETRY_SECONDS = 10.0


class MappingReports:
    """Judges all mappings after every change of mappings or slices, and writes what differs."""

    def __init__(
        self,
        *,
        pen: Pen,
        picture: Picture,
        mind: Mind,
        restrictions: Callable[[], Restrictions],
        now: Callable[[], str],
    ) -> None:
        self._pen = pen
        self._picture = picture
        self._mind = mind
        self._restrictions = restrictions
        self._now = now
        self._memory = Memory()
        self._due = asyncio.Event()

    def mark(self) -> None:
        """Mappings or devices changed, or what Dovetail may do."""
        self._due.set()

    async def run(self, may_work: Callable[[], bool]) -> None:
        """Report for ever, whenever `may_work` says that this replica is the active one."""
        while True:
            await self._due.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            if not may_work():
                continue
            self._due.clear()
            if not await self.report():
                self._due.set()
                await asyncio.sleep(RETRY_SECONDS)

    async def report(self) -> bool:
        """Bring the status of every mapping up to date; False where one could not be written."""
        is_whole = True
        for mapping in self._picture.all(MAPPING):
            try:
                status = await self._mind.ask(partial(self._judge, mapping))
                if status != (mapping.get("status") or {}):
                    await self._write(mapping, status)
            except (ClusterError, NotLeading, TooCostly) as error:
                # The others are not to wait for this one.
                log.warning(
                    "mapping_status_not_written", mapping=mapping["metadata"]["name"], error=str(error)
                )
                is_whole = False
        return is_whole

    def _judge(self, mapping: Json, world: World) -> dict[str, Any]:
        name = mapping["metadata"]["name"]
        mappings = world.mappings
        if problem := world.problems.get((MAPPING.name, ("", name))):
            mappings = mappings.with_malformed(name, problem.reason)
        compiled = mappings.objects.get(name)
        devices = tuple(world.inventory.devices()) if compiled is not None else ()
        return status_of(
            name,
            mappings,
            coverage(compiled, devices, self._memory) if compiled is not None else (),
            idle=idle_rules(compiled, devices, self._memory) if compiled is not None else (),
            published_by=publishers(compiled.attribute, devices) if compiled is not None else (),
            restrictions=self._restrictions(),
            generation=int(mapping["metadata"].get("generation") or 0),
            now=self._now(),
            previous=mapping.get("status"),
        )

    async def _write(self, mapping: Json, status: dict[str, Any]) -> None:
        name = mapping["metadata"]["name"]
        patch = {"metadata": {"uid": mapping["metadata"]["uid"]}, "status": status}
        try:
            answer = await self._pen.merge(MAPPING, "", name, patch, subresource="status")
        except NotFound:
            return
        self._picture.see(MAPPING, answer)
        log.info("mapping_reported", mapping=name)
