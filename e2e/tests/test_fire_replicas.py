"""Two replicas: who works, who takes over, and what a replica that was frozen can still spoil."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from e2e.harness import OPERATOR_USER, Cluster, Object, Operator, Seen, allocated, objects, running
from e2e.tests.claims import CLASSES, gated, gpu_slice, held_twice, nic_slice, numa_mapping, pair, waits

PROMPT = {"lease_seconds": 3, "claim_generation": "never"}


async def pairs(cluster: Cluster, count: int, *nodes: str) -> str:
    """So many pairs on each node, the mapping, and a namespace with a template."""
    for name in nodes:
        await cluster.add_node(name)
        places = [index % 2 for index in range(count)]
        await cluster.apply(gpu_slice(name, *places), nic_slice(name, *places))
    await cluster.apply(*CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    return namespace


def pods(*names: str) -> list[Object]:
    """Gated pods that want a pair each."""
    return [objects.pod(name, templates={"devices": "pair"}) for name in names]


async def two_replicas(cluster: Cluster, **settings: object) -> tuple[Operator, Operator]:
    """The one that leads, and the one that waits."""
    first = await cluster.operator(name="first", **settings)
    await first.event("leadership_won")
    return first, await cluster.operator(name="second", **settings)


async def all_run(cluster: Cluster, namespace: str, count: int) -> None:
    """Wait until so many pods run; no device is given twice."""
    await cluster.kube.wait_all(
        "Pod", lambda items: len(items) == count and all(map(running, items)), namespace, within=90
    )
    claims = await cluster.kube.list("ResourceClaim", namespace)
    assert held_twice(claims) == []
    assert len(claims) == count


async def test_the_other_replica_takes_over_from_a_killed_leader(cluster: Cluster) -> None:
    """Killed while pods arrive: within 20 seconds, with the usual settings, the other one goes on."""
    namespace = await pairs(cluster, 10, "n1", "n2")
    first, second = await two_replicas(cluster)

    async with asyncio.TaskGroup() as group:
        group.create_task(cluster.create_all(pods(*(f"p{index}" for index in range(20))), namespace))
        await first.event("pod_allocated")
        await first.kill()
    killed = monotonic()
    await second.event("leadership_won", within=20)

    assert monotonic() - killed < 20
    await all_run(cluster, namespace, 20)


async def test_a_replica_that_is_killed_every_ten_seconds_leads_as_soon_as_it_is_up(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the usual Lease: a process of the same pod takes that of its dead predecessor at once.

    Which part of the time one leads depends on how fast the machine starts a process: `-s` shows it.
    """
    monkeypatch.setenv("POD_NAME", "dovetail-x")
    monkeypatch.setenv("POD_UID", "0a1b2c3d-0000-4000-8000-000000000001")
    operator = await cluster.operator(state_directory=str(tmp_path), claim_generation="never")
    began, led, waits = monotonic(), 0.0, []

    for _ in range(4):
        await operator.kill()
        seen, started = len(operator.events), monotonic()
        await operator.start()
        won = monotonic()
        waits.append(seconds_between(operator.events[seen:], "cluster_examined", "leadership_won"))
        # There is nothing to await: it lives until its ten seconds are over.
        await asyncio.sleep(max(started + 10 - won, 0))
        led += monotonic() - won

    print(f"a leader for {led / (monotonic() - began):.0%} of the time")
    assert max(waits) < 3


def seconds_between(events: Sequence[Mapping[str, Any]], first: str, second: str) -> float:
    """How long after one log event another came."""
    at = {
        event["event"]: datetime.fromisoformat(event["timestamp"])
        for event in events
        if event.get("event") in (first, second)
    }
    return (at[second] - at[first]).total_seconds()


async def test_a_leader_that_is_told_to_stop_hands_over_at_once(cluster: Cluster) -> None:
    """The Lease is given back, so that the other replica leads at its next look, not when it has run out."""
    namespace = await pairs(cluster, 1, "n1")
    first, second = await two_replicas(cluster)

    await first.stop()
    stopped = monotonic()
    await second.event("leadership_won", within=10)

    assert monotonic() - stopped < 6
    await cluster.create_all(pods("p"), namespace)
    await all_run(cluster, namespace, 1)


async def test_a_replica_that_does_not_lead_writes_nothing(cluster: Cluster) -> None:
    """It watches, and what it would need to lead at once it has; only the Lease is asked for."""
    namespace = await pairs(cluster, 2, "n1")
    await cluster.operator(name="first", **PROMPT)
    proxy = await cluster.proxy()
    await cluster.operator(name="second", server=proxy.url, **PROMPT)

    await cluster.create_all(pods("p1", "p2"), namespace)
    await all_run(cluster, namespace, 2)

    assert [seen for seen in proxy.seen if is_write(seen)] == []


def is_write(seen: Seen) -> bool:
    """Whether a request changes something; reviews and the Lease are each replica's own."""
    own = ("selfsubjectaccessreviews", "/leases")
    return seen.method != "GET" and not any(name in seen.path for name in own)


async def test_a_frozen_leader_that_wakes_writes_nothing_more(cluster: Cluster) -> None:
    """Frozen beyond its Lease while pods arrive, and woken: it yields, and every claim is written once.

    What was on its way between the check of the Lease and the API server when it was frozen arrives later:
    that changes nothing any more, or is refused.
    """
    namespace = await pairs(cluster, 10, "n1", "n2")
    proxy = await cluster.proxy()
    first = await cluster.operator(name="first", server=proxy.url, **PROMPT)
    second = await cluster.operator(name="second", **PROMPT)
    mark = cluster.plane.audit.mark()

    async with asyncio.TaskGroup() as group:
        group.create_task(cluster.create_all(pods(*(f"p{index}" for index in range(16))), namespace))
        await first.event("pod_allocated")
        first.freeze()
    await second.event("leadership_won", within=30)
    await all_run(cluster, namespace, 16)
    before = await versions(cluster, namespace)
    first.wake()
    await first.event("leadership_lost", within=30)
    assert await versions(cluster, namespace) == before
    answered = len(proxy.seen)
    await cluster.create_all(pods("late-1", "late-2"), namespace)

    await all_run(cluster, namespace, 18)
    assert [seen for seen in proxy.seen[answered:] if is_write(seen)] == []
    assert await allocations(cluster, mark) == dict.fromkeys(await claim_names(cluster, namespace), 1)


async def versions(cluster: Cluster, namespace: str) -> dict[tuple[str, str], str]:
    """Which version of each pod and claim there is."""
    found = [
        (kind, body) for kind in ("Pod", "ResourceClaim") for body in await cluster.kube.list(kind, namespace)
    ]
    return {(kind, body["metadata"]["name"]): body["metadata"]["resourceVersion"] for kind, body in found}


async def claim_names(cluster: Cluster, namespace: str) -> list[str]:
    """The names of all claims."""
    return [claim["metadata"]["name"] for claim in await cluster.kube.list("ResourceClaim", namespace)]


async def allocations(cluster: Cluster, mark: int) -> dict[str, int]:
    """How often the operators' writes to the status of each claim were accepted."""
    counts: dict[str, int] = {}
    for write in cluster.plane.audit.writes(OPERATOR_USER, since=mark):
        if (write.resource, write.subresource, write.code) == ("resourceclaims", "status", 200):
            counts[write.name] = counts.get(write.name, 0) + 1
    return counts


async def test_a_write_that_slips_through_late_is_taken_back(cluster: Cluster) -> None:
    """A write of the old leader arrives when the new one has given the devices away: its pod gives way.

    Between the check of the Lease and the API server a write can be late by any time: here a proxy holds it.
    """
    namespace = await pairs(cluster, 1, "n1")
    await cluster.apply(priority_class("urgent", 1000))
    proxy = await cluster.proxy()
    first = await cluster.operator(name="first", server=proxy.url, **PROMPT)
    second = await cluster.operator(name="second", **PROMPT)
    # It has to be longer than the Lease lasts, however slow the machine is.
    late = proxy.delay(20, method="PUT", path="/resourceclaims/.*/status")
    await cluster.create_all(pods("early"), namespace)
    await proxy.struck(late)
    first.freeze()
    await cluster.kube.create(
        objects.pod("urgent", templates={"devices": "pair"}, priorityClassName="urgent"), namespace
    )

    await cluster.kube.wait_for("Pod", "urgent", running, namespace, within=19)
    await proxy.passed(is_late_write, within=30)

    await second.event("device_clash", lambda event: event["gated"])
    waiting = await cluster.kube.wait_for("Pod", "early", waits("NothingFits"), namespace)
    assert gated(waiting)
    claims = await cluster.kube.wait_all(
        "ResourceClaim", lambda items: sum(map(allocated, items)) == 1, namespace
    )
    assert held_twice(claims) == []
    await cluster.kube.delete("Pod", "urgent", namespace)
    await cluster.kube.wait_for("Pod", "early", running, namespace)


def is_late_write(seen: Seen) -> bool:
    """The write that the proxy held, accepted in the end."""
    return seen.method == "PUT" and seen.path.partition("?")[0].endswith("/status") and seen.status == 200


def priority_class(name: str, value: int) -> Object:
    """A PriorityClass that preempts nobody."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "Never",
    }
