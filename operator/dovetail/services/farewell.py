"""What is left to do when Dovetail is taken away: pods must not stay gated for ever."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from dovetail.api.kinds import POD
from dovetail.cluster.connection import connect
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.cluster.wire import Wire
from dovetail.services.gates import is_gated, ungate
from dovetail.services.picture import Json

TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Visit:
    """A connection for one command; it asks no Lease, since a person gave the command."""

    reader: Reader
    pen: Pen


@asynccontextmanager
async def visit() -> AsyncIterator[Visit]:
    """Connect to the cluster of the environment for as long as the block lasts."""
    wire = Wire(await connect(), timeout_seconds=TIMEOUT_SECONDS)
    try:
        yield Visit(Reader(wire), Pen(wire, permit=lambda: None))
    finally:
        await wire.close()


async def gated_pods(cluster: Visit) -> list[Json]:
    """Every pod that carries our gate."""
    return [pod for pod in (await cluster.reader.list_all(POD)).items if is_gated(pod)]


async def open_gate(cluster: Visit, pod: Mapping[str, Any]) -> bool:
    """Take our gate from a pod; False where the pod is gone."""
    return await ungate(cluster.pen, pod)
