"""One replica writes: the one that holds the Lease, and only while its own clock says so."""

import asyncio
from time import monotonic
from typing import Any

import pytest

from dovetail.api.kinds import LEASE
from dovetail.cluster.connection import connect
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.cluster.wire import Wire
from dovetail.embedded import EmbeddedCluster
from dovetail.errors import NotLeading
from dovetail.services.leadership import Leadership
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import claim, our_writes, pairs, pod, running_pod


class Clock:
    """A monotonic clock that only the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
async def wire(bare: EmbeddedCluster) -> Any:
    """A connection to the API server."""
    made = Wire(await connect(), timeout_seconds=2)
    yield made
    await made.close()


def replica(wire: Wire, name: str, clock: Clock) -> Leadership:
    """A replica that strives for a Lease of nine seconds when the test tells it to."""
    return Leadership(
        reader=Reader(wire),
        pen=Pen(wire, permit=lambda: None),
        namespace="kube-system",
        name="dovetail",
        identity=name,
        seconds=9,
        clock=clock,
    )


async def test_the_first_replica_leads_and_the_second_waits(wire: Wire) -> None:
    """Only one of two replicas may write."""
    clock = Clock()
    first, second = replica(wire, "a", clock), replica(wire, "b", clock)

    await first.strive()
    await second.strive()

    assert (first.is_leading, second.is_leading) == (True, False)
    with pytest.raises(NotLeading):
        second.assert_leading()


async def test_a_replica_that_was_frozen_may_not_write(wire: Wire) -> None:
    """Past two thirds of the Lease without a renewal, the leader's own clock forbids every write."""
    clock = Clock()
    leader = replica(wire, "a", clock)
    await leader.strive()

    clock.now += 6.1

    with pytest.raises(NotLeading):
        leader.assert_leading()


async def test_a_slow_answer_gives_no_more_time_to_write(bare: EmbeddedCluster, wire: Wire) -> None:
    """Others count from when the Lease changed, which may be just after it was asked for."""
    clock = Clock()
    leader = replica(wire, "a", clock)

    def take_five_seconds() -> None:
        clock.now += 5

    bare.faults.before("", "leases", take_five_seconds)
    await leader.strive()
    led_at_first = leader.is_leading

    clock.now += 1.1

    assert (led_at_first, leader.is_leading) == (True, False)


async def test_another_replica_takes_over_when_the_lease_has_run_out(wire: Wire) -> None:
    """It counts from when it saw the Lease last change, on its own clock; the count of holders goes up."""
    clock = Clock()
    first, second = replica(wire, "a", clock), replica(wire, "b", clock)
    await first.strive()
    await second.strive()

    clock.now += 8.9
    await second.strive()
    early = second.is_leading
    clock.now += 0.2
    await second.strive()

    assert (early, second.is_leading) == (False, True)
    lease = await Reader(wire).find(LEASE, "kube-system", "dovetail")
    assert lease is not None
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("b", 1)


async def test_a_lease_that_is_renewed_keeps_others_out(wire: Wire) -> None:
    """However long it goes on."""
    clock = Clock()
    first, second = replica(wire, "a", clock), replica(wire, "b", clock)
    for _ in range(5):
        await first.strive()
        await second.strive()
        clock.now += 5

    await first.strive()

    assert (first.is_leading, second.is_leading) == (True, False)


async def test_a_released_lease_is_taken_at_once(wire: Wire) -> None:
    """On a polite stop nobody waits, and the one that left may not write any more."""
    clock = Clock()
    first, second = replica(wire, "a", clock), replica(wire, "b", clock)
    await first.strive()

    await first.release()
    await second.strive()

    assert (first.is_leading, second.is_leading) == (False, True)


async def test_two_replicas_that_take_a_lease_at_once_do_not_both_lead(wire: Wire) -> None:
    """The second write meets the version of the first."""
    clock = Clock()
    replicas = [replica(wire, name, clock) for name in ("a", "b")]

    await asyncio.gather(*(one.strive() for one in replicas))

    assert [one.is_leading for one in replicas].count(True) == 1


async def test_a_standby_takes_over_and_serves(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """The leader stops; what arrives then is served by the other one, and nothing was written twice."""
    cluster.load(*pairs(2))
    first = await operator()
    await operator()
    cluster.create(claim("a"))
    cluster.create(pod("a", claim="a"))
    await cluster.wait_for("Pod", running_pod("a"))

    first.request_stop()
    cluster.create(claim("b"))
    cluster.create(pod("b", claim="b"))

    await cluster.wait_for("Pod", running_pod("b"))
    assert our_writes(cluster).count(("PUT", "resourceclaims/status")) == 2


async def test_a_leader_that_cannot_renew_stops_writing(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """While the API server refuses the Lease nothing is allocated; afterwards the pod runs."""
    cluster.load(*pairs())
    await operator(lease_seconds=2)
    cluster.faults.fail("", "leases", status=500, times=1000)
    await asyncio.sleep(2)
    begun = monotonic()

    cluster.create(claim("mine"))
    cluster.create(pod(claim="mine"))
    with pytest.raises(TimeoutError):
        await cluster.wait_for("Pod", running_pod("p"), timeout_seconds=1)
    assert ("PUT", "resourceclaims/status") not in our_writes(cluster)
    cluster.faults.clear()

    await cluster.wait_for("Pod", running_pod("p"), timeout_seconds=20)
    assert monotonic() - begun < 20
