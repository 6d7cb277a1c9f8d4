"""What runs beside the serving of pods: the audit, fences around owned devices, a word on dual-mode nodes."""

import asyncio
from collections.abc import Callable

from dovetail.api.kinds import OWNERSHIP, SLICE, TAINT_RULE
from dovetail.cluster.pen import Pen
from dovetail.core.restrictions import Restrictions
from dovetail.services.audit import Auditor
from dovetail.services.desk import Desk
from dovetail.services.dual_modes import DualModes
from dovetail.services.metrics import Metrics
from dovetail.services.mind import Mind
from dovetail.services.ownership import Fences
from dovetail.services.picture import Change, Key, Picture

FENCERS = 1
"""How many DeviceOwnerships are settled at a time: few exist, and rules can be in each other's way."""


SLICES_SECONDS = 3.0
"""Slices come in bursts and rarely change what is fenced: they are counted once after each."""


class Guard:
    """Audits, keeps every DeviceOwnership's rules and status, tells of nodes that offer devices twice.

    All of it works on the picture alone.
    """

    def __init__(
        self,
        *,
        mind: Mind,
        picture: Picture,
        pen: Pen,
        metrics: Metrics,
        audit_seconds: float,
        serves_rules: Callable[[], bool],
        restrictions: Callable[[], Restrictions],
        dual_modes: DualModes,
        now: Callable[[], str],
    ) -> None:
        """`serves_rules`: whether the cluster knows DeviceTaintRule v1 now."""
        self._dual_modes = dual_modes
        self._fences = Fences(
            mind=mind,
            picture=picture,
            pen=pen,
            is_served=serves_rules,
            inspection=lambda: self.auditor.inspection,
            restrictions=restrictions,
            now=now,
        )
        self._desk = Desk(
            "ownership",
            serve=self._settle,
            urgency=lambda key: (0, "", *key),
            workers=FENCERS,
            metrics=metrics,
        )
        self.auditor = Auditor(mind=mind, metrics=metrics, seconds=audit_seconds, on_result=self.mark)

    def follow(self, change: Change) -> None:
        """Take in a change of the picture."""
        self.auditor.follow(change)
        self._dual_modes.follow(change)
        if change.kind in (OWNERSHIP, SLICE, TAINT_RULE):
            for key in self._fences.concerned(change):
                if change.kind is SLICE:
                    self._desk.queue.mark_later(key, SLICES_SECONDS)
                else:
                    self._desk.queue.mark(key)

    def mark(self) -> None:
        """Look at every DeviceOwnership again."""
        for key in self._fences.all():
            self._desk.queue.mark(key)

    def open(self, is_open: bool) -> None:
        """Whether to work: while this replica is the active one and sees all."""
        self._desk.open(is_open)
        self.auditor.open(is_open)
        self._dual_modes.open(is_open)

    async def run(self) -> None:
        """Work for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.auditor.run())
            tasks.create_task(self._desk.run())
            tasks.create_task(self._dual_modes.run())

    async def _settle(self, key: Key) -> None:
        if seconds := await self._fences.settle(key):
            self._desk.queue.mark_later(key, seconds)

    async def finish(self, seconds: float) -> None:
        """Take up nothing new and give a write under way some time."""
        await self._desk.finish(seconds)
