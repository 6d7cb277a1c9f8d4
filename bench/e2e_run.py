"""One run: all pods at once, watched until the last is bound; who used how much CPU meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from bench.e2e_arms import Arm
from e2e.harness import ApiError, Cluster, HarnessError, NotSeen, Object, Operator, gather_limited, objects
from e2e.harness.usage import cpu_seconds, memory_mib

CREATED_AT_A_TIME = 32
START_SECONDS = 90
"""A busy machine takes its time to start the operator, and to end it."""

SLOWEST_PODS_PER_SECOND = 4.0
"""A run that is slower on average is given up."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run showed. Seconds are from a pod's create request to the arrival of its node."""

    arm: str
    nodes: int
    pods: int
    pods_per_second: float
    p50_seconds: float
    p99_seconds: float
    cpu_ms_per_pod: Mapping[str, float]
    """By program."""
    operator_mib: float | None = None


class Incomplete(HarnessError):
    """Not all pods were bound in time."""

    def __init__(self, arm: str, bound: int, pods: int, seconds: float) -> None:
        super().__init__(f"{arm}: {bound} of {pods} pods were bound in {seconds:.0f} s")


@asynccontextmanager
async def operator_for(arm: Arm, cluster: Cluster) -> AsyncIterator[Operator | None]:
    """The operator, ready, while the block lasts, where the arm needs it."""
    if not arm.with_operator:
        yield None
        return
    operator = await cluster.new_operator()
    try:
        await operator.start(within=START_SECONDS)
        yield operator
        await operator.stop(within=START_SECONDS)
    finally:
        await operator.kill()


async def measure(arm: Arm, cluster: Cluster, nodes: int, pods: int, operator: Operator | None) -> Run:
    """Create the pods in a namespace of their own, and delete them when all are bound."""
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.template("pair", arm.claim), namespace)
    programs = {component.program.name: component.program.pid for component in cluster.plane.components}
    if operator is not None:
        programs["operator"] = operator.program.pid
    before = {name: cpu_seconds(pid) for name, pid in programs.items()}
    wanted = [arm.pod(f"pod-{number:05}") for number in range(pods)]
    created, bound = await _create_and_follow(cluster, namespace, wanted, arm)
    spent = {name: cpu_seconds(pid) - before[name] for name, pid in programs.items()}
    waited = sorted(bound[name] - created[name] for name in bound)
    run = Run(
        arm=arm.name,
        nodes=nodes,
        pods=pods,
        pods_per_second=pods / (max(bound.values()) - min(created.values())),
        p50_seconds=percentile(waited, 50),
        p99_seconds=percentile(waited, 99),
        cpu_ms_per_pod={name: 1000 * seconds / pods for name, seconds in spent.items()},
        operator_mib=memory_mib(operator.program.pid) if operator else None,
    )
    await empty(cluster, namespace)
    return run


def percentile(ordered: list[float], percent: int) -> float:
    """The smallest value that so many percent of the values do not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


async def _create_and_follow(
    cluster: Cluster, namespace: str, pods: list[Object], arm: Arm
) -> tuple[dict[str, float], dict[str, float]]:
    """When each pod's create request was sent, and when the watch showed it with a node."""
    created: dict[str, float] = {}
    bound: dict[str, float] = {}
    since = (await cluster.kube.listing("Pod", namespace)).resource_version

    async def create(pod: Object) -> None:
        created[pod["metadata"]["name"]] = time.monotonic()
        await cluster.kube.create(pod, namespace)

    async def follow() -> None:
        version = since
        # A busy server closes watches; the next one goes on where the last one ended.
        while len(bound) < len(pods):
            # A pod enters this selection when it is bound.
            selector = {"fieldSelector": "spec.nodeName!="}
            async for _, pod in cluster.kube.watch("Pod", namespace, since=version, **selector):
                version = pod["metadata"]["resourceVersion"]
                bound.setdefault(pod["metadata"]["name"], time.monotonic())
                if len(bound) == len(pods):
                    return

    limit = 30 + len(pods) / SLOWEST_PODS_PER_SECOND
    try:
        async with asyncio.timeout(limit), asyncio.TaskGroup() as group:
            group.create_task(follow())
            group.create_task(gather_limited([partial(create, pod) for pod in pods], CREATED_AT_A_TIME))
    except TimeoutError:
        raise Incomplete(arm.name, len(bound), len(pods), limit) from None
    return created, bound


async def empty(cluster: Cluster, namespace: str, *, within: float = 300) -> None:
    """Delete the pods of a namespace, and wait until pods and claims are gone."""
    try:
        await cluster.kube.delete_all("Pod", namespace)
    except ApiError as refusal:
        if refusal.status != 504:
            raise
        # A busy server takes longer than a request may last; the rest goes in a second call.
        await cluster.kube.delete_all("Pod", namespace)
    for kind in ("Pod", "ResourceClaim"):
        await _gone(cluster, kind, namespace, within)


async def _gone(cluster: Cluster, kind: str, namespace: str, within: float) -> None:
    deadline = time.monotonic() + within
    while await cluster.kube.list(kind, namespace, limit="1"):
        if time.monotonic() > deadline:
            raise NotSeen(f"end of all {kind}s", within, namespace)
        # A watch would cost this process, and so the machine, more than a look every second.
        await asyncio.sleep(1)
