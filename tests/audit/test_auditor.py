"""Inside the operator, a finding that may pass counts when it lasts; the others count at once."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from dovetail.core.features import Features
from dovetail.core.findings import Fault
from dovetail.core.planner import PlanSettings
from dovetail.core.world import World
from dovetail.services.audit import SETTLE_SECONDS, Auditor
from dovetail.services.metrics import Metrics
from dovetail.services.mind import Limits, Mind
from tests.audit.cluster import claim, consumer, published

Body = dict[str, Any]


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
async def mind() -> AsyncIterator[Mind]:
    """A mind with a world that the test fills."""
    made = Mind(World(Features()), plan=PlanSettings(), limits=Limits(1000, 1.0), now=lambda: "")
    yield made
    made.close()


async def show(mind: Mind, *bodies: Body) -> None:
    """Put objects into the world."""

    def put(world: World) -> None:
        for body in bodies:
            world.put(body["kind"], body)

    await mind.ask(put)


async def faults(auditor: Auditor) -> list[Fault]:
    """What counts after an audit."""
    return [finding.fault for finding in (await auditor.check()).findings]


async def test_what_may_pass_counts_when_it_lasts(mind: Mind) -> None:
    """A reservation for a pod that is gone is reported half a minute later, and no longer once it ended."""
    clock = Clock()
    auditor = Auditor(mind=mind, metrics=Metrics(), seconds=1, clock=clock)
    await show(mind, published("d0"), claim("a", "d0", reserved_for=[consumer("p")]))

    assert await faults(auditor) == []
    clock.now = SETTLE_SECONDS - 1
    assert await faults(auditor) == []
    clock.now = SETTLE_SECONDS
    assert await faults(auditor) == [Fault.RESERVED_FOR_GONE_POD]

    await show(mind, claim("a", "d0"))
    assert await faults(auditor) == []


async def test_a_finding_that_comes_again_begins_anew(mind: Mind) -> None:
    """Two short moments do not make a long one."""
    clock = Clock()
    auditor = Auditor(mind=mind, metrics=Metrics(), seconds=1, clock=clock)
    await show(mind, published("d0"), claim("a", "d0", reserved_for=[consumer("p")]))
    await auditor.check()
    await show(mind, claim("a", "d0"))
    await auditor.check()
    clock.now = SETTLE_SECONDS
    await show(mind, claim("a", "d0", reserved_for=[consumer("p")]))
    assert await faults(auditor) == []


async def test_a_device_held_twice_counts_at_once(mind: Mind) -> None:
    """No controller repairs it, so there is nothing to wait for."""
    auditor = Auditor(mind=mind, metrics=Metrics(), seconds=1, clock=Clock())
    await show(mind, published("d0"), claim("a", "d0"), claim("b", "d0"))
    assert await faults(auditor) == [Fault.DEVICE_HELD_TWICE]
