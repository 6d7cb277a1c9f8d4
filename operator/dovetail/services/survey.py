"""Examining the cluster again and again: an API server may be started anew with other gates."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from dovetail.core.features import Features
from dovetail.errors import DovetailError
from dovetail.services.startup import Cluster

log = structlog.get_logger(__name__)

RESYNCS_PER_SURVEY = 5
"""The gates are among the API server's metrics, which are long."""


class Survey:
    """Examines the cluster every so often; what it finds is told to `found`, changed or not.

    An examination that fails, or finds out less than an earlier one, changes nothing.
    """

    def __init__(
        self,
        *,
        examine: Callable[[], Awaitable[Cluster]],
        cluster: Cluster,
        found: Callable[[Features], Awaitable[None]],
        seconds: float,
    ) -> None:
        """`cluster`: what was found out at the start."""
        self._examine = examine
        self._cluster = cluster
        self._found = found
        self._seconds = seconds

    async def run(self) -> None:
        """Examine for ever, beginning after the first pause."""
        while True:
            await asyncio.sleep(self._seconds)
            try:
                await self.look()
            except DovetailError as error:
                log.warning("cluster_not_examined", reason=str(error))

    async def look(self) -> None:
        """Examine the cluster once."""
        now = await self._examine()
        if self._cluster.tells_gates and not now.tells_gates:
            now = self._cluster
        self._cluster = now
        await self._found(now.features)
