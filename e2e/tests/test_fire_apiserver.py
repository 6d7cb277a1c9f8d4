"""Trouble with the API server: it restarts, forgets its history, falls silent, refuses, and answers late."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import Any

import aiohttp
import pytest

from e2e.harness import (
    OPERATOR_USER,
    ApiError,
    Cluster,
    Object,
    Seen,
    allocated,
    condition,
    gather_limited,
    objects,
    running,
)
from e2e.tests.claims import (
    CLASSES,
    devices,
    gated,
    gpu_slice,
    held_twice,
    nic_slice,
    numa_mapping,
    pair,
    waits,
)

QUICK: dict[str, Any] = {"lease_seconds": 3, "claim_generation": "never", "request_timeout_seconds": 3}
WRITES = {
    "condition": ("PATCH", r"/pods/[^/]+/status"),
    "finalizer": ("PUT", r"/resourceclaims/[^/?]+(\?|$)"),
    "allocation": ("PUT", r"/resourceclaims/[^/]+/status"),
    "gate": ("PATCH", r"/pods/[^/?]+(\?|$)"),
}
"""The writes in the life of a pod that has to wait first: method and path."""


async def pairs(cluster: Cluster, count: int = 1, *nodes: str) -> str:
    """So many pairs on each node, the mapping, and a namespace with a template."""
    for name in nodes or ("n1",):
        await cluster.add_node(name)
        places = [index % 2 for index in range(count)]
        await cluster.apply(gpu_slice(name, *places), nic_slice(name, *places))
    await cluster.apply(*CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    return namespace


def pod(name: str) -> Object:
    """A gated pod that wants a pair."""
    return objects.pod(name, templates={"devices": "pair"})


async def create_at_last(cluster: Cluster, manifest: Object, namespace: str) -> None:
    """Create an object as soon as the API server takes it."""
    async with asyncio.timeout(60):
        while True:
            try:
                await cluster.kube.create(manifest, namespace)
            except (aiohttp.ClientError, ApiError) as error:
                if isinstance(error, ApiError) and error.status == 409:
                    return
                await asyncio.sleep(0.2)
            else:
                return


async def all_run(cluster: Cluster, namespace: str, count: int) -> None:
    """Wait until so many pods run; no device is given twice, and each pod holds devices by one claim.

    kube-controller-manager may make a second claim where the answer to the first was lost (G22).
    """
    await cluster.kube.wait_all(
        "Pod", lambda items: len(items) == count and all(map(running, items)), namespace, within=120
    )
    claims = [claim for claim in await cluster.kube.list("ResourceClaim", namespace) if allocated(claim)]
    assert held_twice(claims) == []
    owners = Counter(claim["metadata"]["ownerReferences"][0]["uid"] for claim in claims)
    assert len(owners) == count
    assert set(owners.values()) == {1}


async def test_an_api_server_that_is_killed_under_load_loses_no_pod(cluster: Cluster) -> None:
    """Killed and started again while 40 pods arrive: all run, and the operator was not restarted."""
    namespace = await pairs(cluster, 10, "n1", "n2", "n3", "n4")
    operator = await cluster.operator(**QUICK)

    async with asyncio.TaskGroup() as group:
        creations = [partial(create_at_last, cluster, pod(f"p{index}"), namespace) for index in range(40)]
        group.create_task(gather_limited(creations, limit=4))
        await operator.event("pod_allocated")
        await cluster.plane.apiserver.restart()
    await start_what_gave_up(cluster)

    await all_run(cluster, namespace, 40)
    assert operator.program.running


async def start_what_gave_up(cluster: Cluster) -> None:
    """A controller manager ends by itself when it cannot renew its Lease in time.

    One that does not end may look away for half a minute: whatever follows needs the claims that it makes.
    """
    for component in cluster.plane.components:
        if not component.program.running:
            await component.restart()
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    nobodys = objects.pod("nobodys", templates={"devices": "pair"}, gates=("example.com/never",))
    await cluster.kube.create(nobodys, namespace)
    await cluster.kube.wait_all("ResourceClaim", lambda items: len(items) == 1, namespace, within=120)


async def test_a_compacted_history_is_listed_anew(cluster: Cluster) -> None:
    """What happened while watches were silent is not told any more (410): lists find it (R-B6)."""
    namespace = await pairs(cluster)
    proxy = await cluster.proxy()
    operator = await cluster.operator(server=proxy.url, resync_seconds=600, **QUICK)
    await cluster.kube.create(pod("first"), namespace)
    await cluster.kube.wait_for("Pod", "first", running, namespace)
    await cluster.kube.create(pod("second"), namespace)
    await cluster.kube.wait_for("Pod", "second", waits("NothingFits"), namespace)

    proxy.silence()
    await cluster.kube.delete("Pod", "first", namespace)
    await cluster.kube.wait_all("ResourceClaim", lambda items: len(items) == 1, namespace)
    await cluster.plane.compact()
    await cluster.plane.apiserver.restart()
    seen = len(proxy.seen)
    # In this order: what was held back is lost with its connection.
    proxy.close_watches()
    proxy.talk()

    await proxy.passed(lambda item: is_list(item, "resourceclaims"), after=seen)
    await cluster.kube.wait_for("Pod", "second", running, namespace, within=60)
    assert operator.program.running
    await start_what_gave_up(cluster)


def is_list(seen: Seen, plural: str) -> bool:
    """A list of all objects of a kind."""
    path, _, query = seen.path.partition("?")
    return seen.method == "GET" and path.endswith(f"/{plural}") and "watch" not in query


async def test_a_silent_watch_is_healed_by_lists(cluster: Cluster) -> None:
    """Watches stay open and say nothing: lists find the pod, and the devices that became free meanwhile."""
    namespace = await pairs(cluster)
    proxy = await cluster.proxy()
    await cluster.operator(server=proxy.url, resync_seconds=2, **QUICK)
    await cluster.kube.create(pod("first"), namespace)
    await cluster.kube.wait_for("Pod", "first", running, namespace)

    proxy.silence()
    await cluster.kube.create(pod("second"), namespace)
    await cluster.kube.wait_for("Pod", "second", waits("NothingFits"), namespace)
    await cluster.kube.delete("Pod", "first", namespace)

    await cluster.kube.wait_for("Pod", "second", running, namespace)


async def test_an_operator_without_progress_is_not_alive(cluster: Cluster) -> None:
    """While lists fail, /healthz turns from 200 to 503 after a minute, and back when they succeed again."""
    await pairs(cluster)
    proxy = await cluster.proxy()
    operator = await cluster.operator(server=proxy.url, resync_seconds=2, **QUICK)
    address = operator.settings["listen"]

    proxy.silence()
    proxy.answer(500, method="GET", times=float("inf"))
    began = monotonic()
    await health(f"http://{address}/healthz", 503, within=100)
    assert monotonic() - began > 30
    proxy.clear()

    await health(f"http://{address}/healthz", 200, within=60)


async def health(url: str, status: int, *, within: float) -> None:
    """Wait until an endpoint answers with this status."""
    async with asyncio.timeout(within), aiohttp.ClientSession() as session:
        while True:
            async with session.get(url) as answer:
                if answer.status == status:
                    return
            await asyncio.sleep(0.5)


@pytest.mark.parametrize("status", [403, 409, 422, 429, 500])
async def test_a_refusal_of_any_write_delays_a_pod_only(cluster: Cluster, status: int) -> None:
    """Each write is refused once: the pod runs all the same, and its claim is written once."""
    namespace = await pairs(cluster)
    proxy = await cluster.proxy()
    await cluster.operator(server=proxy.url, **QUICK)
    await cluster.kube.create(pod("first"), namespace)
    await cluster.kube.wait_for("Pod", "first", running, namespace)
    mark = cluster.plane.audit.mark()
    headers = {"Retry-After": "1"} if status == 429 else {}
    faults = [
        proxy.answer(status, method=method, path=path, headers=headers) for method, path in WRITES.values()
    ]

    await cluster.kube.create(pod("second"), namespace)
    await proxy.struck(faults[0])
    await cluster.kube.delete("Pod", "first", namespace)

    await cluster.kube.wait_for("Pod", "second", running, namespace, within=60)
    assert all(fault.hits for fault in faults)
    await written_once(cluster, namespace, mark)


async def written_once(cluster: Cluster, namespace: str, mark: int) -> None:
    """One claim is left, and one write to its status by the operator was accepted."""
    (claim,) = await cluster.kube.list("ResourceClaim", namespace)
    writes = [
        str(write)
        for write in cluster.plane.audit.writes(OPERATOR_USER, since=mark)
        if write.name == claim["metadata"]["name"] and write.subresource == "status" and write.code == 200
    ]
    assert len(writes) == 1


async def test_a_refusal_that_stays_is_said_on_the_pod(cluster: Cluster) -> None:
    """422 on every allocation: condition, gate, ever fewer tries, and no half state."""
    namespace = await pairs(cluster)
    proxy = await cluster.proxy()
    await cluster.operator(server=proxy.url, **QUICK)
    method, path = WRITES["allocation"]
    refusal = proxy.answer(422, method=method, path=path, times=float("inf"), message="no, says the proxy")

    await cluster.kube.create(pod("p"), namespace)

    waiting = await cluster.kube.wait_for("Pod", "p", waits("WriteRefused", "no, says the proxy"), namespace)
    assert gated(waiting)
    await proxy.struck(refusal, times=3)
    await cluster.kube.stays(
        "ResourceClaim",
        await only_claim(cluster, namespace),
        lambda claim: not allocated(claim),
        namespace,
        seconds=5,
    )
    assert refusal.hits <= 6
    proxy.clear()
    pod_now = await cluster.kube.wait_for("Pod", "p", running, namespace, within=90)
    assert (condition(pod_now, "dovetail.dev/Allocated") or {})["status"] == "True"


async def only_claim(cluster: Cluster, namespace: str) -> str:
    """The name of the one claim."""
    (claim,) = await cluster.kube.list("ResourceClaim", namespace)
    return str(claim["metadata"]["name"])


async def test_a_server_that_asks_for_patience_is_given_it(cluster: Cluster) -> None:
    """After a 429 with Retry-After the write is sent again no sooner than that."""
    namespace = await pairs(cluster)
    proxy = await cluster.proxy()
    await cluster.operator(server=proxy.url, **QUICK)
    method, path = WRITES["allocation"]
    fault = proxy.answer(429, method=method, path=path, headers={"Retry-After": "4"})

    await cluster.kube.create(pod("p"), namespace)
    await proxy.struck(fault)
    refused = monotonic()
    await cluster.kube.wait_for("Pod", "p", lambda item: not gated(item), namespace)

    assert monotonic() - refused > 3.5


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("trouble", ["lost", "late"])
async def test_a_write_without_an_answer_is_found_out(cluster: Cluster, write: str, trouble: str) -> None:
    """It took place, or takes place after the time-out: the claim is allocated once, and the pod runs."""
    namespace = await pairs(cluster)
    proxy = await cluster.proxy()
    await cluster.operator(server=proxy.url, **QUICK | {"request_timeout_seconds": 1.5})
    await cluster.kube.create(pod("first"), namespace)
    await cluster.kube.wait_for("Pod", "first", running, namespace)
    mark = cluster.plane.audit.mark()
    method, path = WRITES[write]
    if trouble == "lost":
        fault = proxy.lose_answers(method=method, path=path)
    else:
        fault = proxy.delay(4, method=method, path=path)

    await cluster.kube.create(pod("second"), namespace)
    await cluster.kube.wait_for("Pod", "second", waits("NothingFits"), namespace)
    await cluster.kube.delete("Pod", "first", namespace)

    await cluster.kube.wait_for("Pod", "second", running, namespace, within=60)
    assert fault.hits == 1
    await written_once(cluster, namespace, mark)


@pytest.mark.parametrize("trouble", [403, 409, 422, 500, "lost"])
async def test_half_a_pod_is_finished(cluster: Cluster, trouble: int | str) -> None:
    """Of the writes to two claims one fails: both end on one node, each written once (R-B9)."""
    namespace = await pairs(cluster, 2, "n1", "n2")
    proxy = await cluster.proxy()
    await cluster.operator(server=proxy.url, **QUICK | {"request_timeout_seconds": 1.5})
    mark = cluster.plane.audit.mark()
    method, path = WRITES["allocation"]
    if isinstance(trouble, int):
        fault = proxy.answer(trouble, method=method, path=path)
    else:
        fault = proxy.lose_answers(method=method, path=path)

    both = objects.pod("p", templates={"a": "pair", "b": "pair"})
    await cluster.kube.create(both, namespace)

    await cluster.kube.wait_for("Pod", "p", running, namespace, within=60)
    assert fault.hits == 1
    claims = await cluster.kube.list("ResourceClaim", namespace)
    assert held_twice(claims) == []
    assert len({pool for claim in claims for _, pool, _ in devices(claim)}) == 1
    writes = Counter(
        write.name
        for write in cluster.plane.audit.writes(OPERATOR_USER, since=mark)
        if write.resource == "resourceclaims" and write.subresource == "status" and write.code == 200
    )
    assert sorted(writes.values()) == [1, 1]


async def test_nothing_is_decided_before_every_list_is_complete(cluster: Cluster) -> None:
    """The list of claims is late: a pod that arrives meanwhile does not get devices that are taken (R8)."""
    namespace = await pairs(cluster)
    first = await cluster.operator(**QUICK)
    await cluster.kube.create(pod("first"), namespace)
    await cluster.kube.wait_for("Pod", "first", running, namespace)
    await first.stop()
    proxy = await cluster.proxy()
    late = proxy.delay(5, method="GET", path=r"/v1/resourceclaims\?limit", times=1)
    operator = await cluster.new_operator(server=proxy.url, **QUICK)

    async with asyncio.TaskGroup() as group:
        group.create_task(operator.start(within=60))
        await proxy.struck(late)
        await cluster.kube.create(pod("second"), namespace)

    await cluster.kube.wait_for("Pod", "second", waits("NothingFits"), namespace)
    assert not any(writes_of_pods(proxy.seen))


def writes_of_pods(seen: Sequence[Seen]) -> list[bool]:
    """Whether claims were written."""
    return [item.method in ("PUT", "PATCH") and "/resourceclaims/" in item.path for item in seen]
