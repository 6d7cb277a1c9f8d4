"""Carrying out a script on a cluster: every step is done, however long the API server is away."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import aiohttp

from e2e.chaos import attacks, world
from e2e.chaos.attacks import Attack
from e2e.chaos.script import NODES, REPLICAS, Action, Shape, Step
from e2e.harness import ApiError, Cluster, FaultProxy, Object, Operator, ProgramEnded, objects
from e2e.harness.usage import memory_mib
from e2e.tests.claims import GPU

SETTINGS: dict[str, Any] = {
    "lease_seconds": 4,
    "request_timeout_seconds": 3,
    "resync_seconds": 15,
    "unschedulable_seconds": 4,
    "take_back_pause_seconds": 3,
    "avoid_seconds": 5,
    "audit_seconds": 2,
    "hold_seconds": 10,
    "log_level": "debug",
}
"""Quick enough for a run of two minutes; otherwise as people have it."""

MOST_MEGABYTES = 700
"""What an operator and its children may take together, whatever is asked of them."""

MEMORY_PAUSE_SECONDS = 0.5

PATIENCE_SECONDS = 90
START_ATTEMPTS = 5
_ANY_WRITE = r"/(pods|resourceclaims)/"
_GONE_OR_THERE = (404, 409)


class Stage:
    """The cluster of the run, its two operators, and the proxy between them and the API server.

    `absent` has the pools that no driver publishes at present, and when those that came back did so.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.namespace = ""
        self.tenant = ""
        """The namespace from which the attacks come."""
        self.operators: dict[str, Operator] = {}
        self.absent: dict[tuple[str, str], float] = {}
        self.interruptions = 0
        self.most_memory = 0.0
        """The most megabytes that all processes of an operator took together."""
        self._attackers: list[str] = []
        self._generations: defaultdict[str, int] = defaultdict(lambda: 1)
        self._proxy: FaultProxy | None = None

    @property
    def proxy(self) -> FaultProxy:
        """What all requests of the operators pass."""
        if self._proxy is None:
            raise RuntimeError("the stage is not set")
        return self._proxy

    async def set(self) -> None:
        """Nodes, devices, classes, templates, and two operators."""
        self.namespace = await self.cluster.namespace()
        self.tenant = await self.cluster.namespace()
        for node in NODES:
            await self.cluster.add_node(node)
            await self._publish(node)
        await self.cluster.apply(*world.classes(), *attacks.hardware())
        await self.cluster.apply(*world.templates(), namespace=self.namespace)
        self._proxy = await self.cluster.proxy()
        for name in REPLICAS:
            self.operators[name] = await self.cluster.operator(name=name, server=self.proxy.url, **SETTINGS)
        await self.cluster.kube.wait_for("DeviceOwnership", "chaos", _is_fenced)

    async def perform(self, step: Step) -> None:
        """Do one step."""
        await self._doer(step.action)(step)

    def _doer(self, action: Action) -> Callable[[Step], Awaitable[None]]:
        doers: dict[Action, Callable[[Step], Awaitable[None]]] = {
            Action.CREATE: self._create,
            Action.DELETE: lambda step: self._delete("Pod", step.subject, self.namespace),
            Action.FINISH: self._finish,
            Action.CORDON: lambda step: self._cordon(step.subject, is_cordoned=True),
            Action.UNCORDON: lambda step: self._cordon(step.subject, is_cordoned=False),
            Action.TAKE_NODE: lambda step: self._take_node(step.subject),
            Action.RETURN_NODE: lambda step: self._return_node(step.subject),
            Action.RENEW_SLICES: lambda step: self._publish(step.subject),
            Action.WIPE_DRIVER: lambda step: self._wipe(step.subject, GPU),
            Action.PUBLISH_DRIVER: lambda step: self._publish(step.subject),
            Action.KILL_OPERATOR: lambda step: self._interrupt(self.operators[step.subject].kill),
            Action.START_OPERATOR: lambda step: self._start(step.subject),
            Action.FREEZE_OPERATOR: self._freeze,
            Action.WAKE_OPERATOR: self._wake,
            Action.RESTART_SCHEDULER: lambda _: self.cluster.plane.scheduler.restart(),
            Action.RESTART_CONTROLLERS: lambda _: self.cluster.plane.controller_manager.restart(),
            Action.RESTART_APISERVER: lambda _: self._interrupt(self._restart_apiserver),
            Action.COMPACT: self._compact,
            Action.SILENCE: self._silence,
            Action.TALK: self._calm,
            Action.REFUSE: self._refuse,
            Action.LOSE: self._lose,
            Action.DELAY: self._delay,
            Action.CALM: self._calm,
            Action.ATTACK: self._attack,
            Action.RETREAT: lambda step: self._retreat(step.subject),
        }
        return doers[action]

    async def end_disturbances(self) -> None:
        """Everything that runs in peace runs, and everything that there was is there."""
        self.proxy.clear()
        for component in self.cluster.plane.components:
            if not component.program.running:
                await component.restart()
        for name, operator in self.operators.items():
            operator.wake()
            await self._start(name)
        for node in NODES:
            await self._return_node(node)
            await self._cordon(node, is_cordoned=False)

    async def delete_pods(self, names: list[str]) -> None:
        """Delete pods, and wait until they are gone."""
        for name in names:
            await self._delete("Pod", name, self.namespace)
        for name in names:
            await self.cluster.kube.wait_gone("Pod", name, self.namespace, within=60)

    async def _create(self, step: Step) -> None:
        body = world.pod(step.subject, step.shape or Shape.PAIR, step.claim)
        await patiently(lambda: self.cluster.kube.create(body, self.namespace))

    async def _delete(self, kind: str, name: str, namespace: str | None = None) -> None:
        await patiently(lambda: self.cluster.kube.delete(kind, name, namespace, grace=0))

    async def end_attacks(self) -> None:
        """The tenant has nothing left."""
        for name in list(self._attackers):
            await self._retreat(name)

    async def watch_memory(self) -> None:
        """Look at the operators' memory for ever."""
        while True:
            for operator in self.operators.values():
                if operator.program.running:
                    self.most_memory = max(self.most_memory, memory_mib(operator.program.pid))
            await asyncio.sleep(MEMORY_PAUSE_SECONDS)

    @property
    def oversize(self) -> list[str]:
        """A sentence where an operator took more memory than it may."""
        if self.most_memory <= MOST_MEGABYTES:
            return []
        return [f"an operator took {self.most_memory:.0f} MB of {MOST_MEGABYTES} MB allowed"]

    async def _attack(self, step: Step) -> None:
        self._attackers.append(step.subject)
        claim = attacks.claim(step.subject, step.attack or Attack.CUT)
        pod = attacks.pod(step.subject, is_gated=step.is_gated)
        for body in (claim, pod):
            await patiently(lambda body=body: self.cluster.kube.create(body, self.tenant))  # type: ignore[misc]

    async def _retreat(self, name: str) -> None:
        self._attackers.remove(name)
        for kind in ("Pod", "ResourceClaim"):
            await self._delete(kind, name, self.tenant)

    async def _finish(self, step: Step) -> None:
        """A pod that runs succeeds; one that does not is deleted."""
        pod = await patiently(lambda: self.cluster.kube.find("Pod", step.subject, self.namespace))
        if pod is None or pod["status"].get("phase") != "Running":
            await self._delete("Pod", step.subject, self.namespace)
            return
        done = {"status": {"phase": "Succeeded"}}
        await patiently(
            lambda: self.cluster.kube.patch("Pod", step.subject, done, self.namespace, subresource="status")
        )

    async def _cordon(self, node: str, *, is_cordoned: bool) -> None:
        patch = {"spec": {"unschedulable": is_cordoned or None}}
        await patiently(lambda: self.cluster.kube.patch("Node", node, patch))

    async def _take_node(self, node: str) -> None:
        """The node goes, with its slices and, as kube-controller-manager would see to, its pods."""
        await self._delete("Node", node)
        for driver in world.DRIVERS:
            await self._wipe(node, driver)
        pods = await patiently(lambda: self.cluster.kube.list("Pod", self.namespace))
        for pod in pods or ():
            if pod["spec"].get("nodeName") == node:
                await self._delete("Pod", pod["metadata"]["name"], self.namespace)

    async def _return_node(self, node: str) -> None:
        await patiently(lambda: self.cluster.kube.create(objects.node(node)))
        # Admission taints every new node.
        await patiently(lambda: self.cluster.kube.patch("Node", node, {"spec": {"taints": []}}))
        await self._publish(node)

    async def _publish(self, node: str) -> None:
        """All drivers publish their pools in the next generation, one slice after another."""
        self._generations[node] += 1
        for driver in world.DRIVERS:
            for half in world.slices(node, driver, self._generations[node]):
                await patiently(lambda half=half: self.cluster.kube.apply(half))  # type: ignore[misc]
            if (driver, node) in self.absent:
                self.absent[driver, node] = monotonic()

    async def _wipe(self, node: str, driver: str) -> None:
        self.absent[driver, node] = float("inf")
        for half in world.slices(node, driver, 1):
            await self._delete("ResourceSlice", half["metadata"]["name"])

    async def _interrupt(self, call: Callable[[], Awaitable[Any]]) -> None:
        self.interruptions += 1
        await call()

    async def _start(self, name: str) -> None:
        """As a kubelet does: again, where the API server was too slow for it."""
        for _ in range(START_ATTEMPTS):
            if self.operators[name].program.running:
                return
            with suppress(ProgramEnded):
                await self.operators[name].start(within=60)

    async def _freeze(self, step: Step) -> None:
        self.interruptions += 1
        self.operators[step.subject].freeze()

    async def _wake(self, step: Step) -> None:
        self.operators[step.subject].wake()

    async def _restart_apiserver(self) -> None:
        await self.cluster.plane.apiserver.restart()
        # A controller manager that could not renew its Lease ends by itself.
        manager = self.cluster.plane.controller_manager
        if not manager.program.running:
            await manager.restart()

    async def _compact(self, _: Step) -> None:
        await self.cluster.plane.compact()
        self.proxy.close_watches()

    async def _silence(self, _: Step) -> None:
        self.proxy.silence()

    async def _refuse(self, _: Step) -> None:
        self.interruptions += 1
        for status, method in ((409, "PATCH"), (429, "PUT"), (500, "PUT"), (500, "PATCH")):
            headers = {"Retry-After": "1"} if status == 429 else {}
            self.proxy.answer(status, method=method, path=_ANY_WRITE, times=3, headers=headers)

    async def _lose(self, _: Step) -> None:
        self.interruptions += 1
        self.proxy.lose_answers(method="PUT", path=_ANY_WRITE, times=2)
        self.proxy.lose_answers(method="PATCH", path=_ANY_WRITE, times=2)

    async def _delay(self, _: Step) -> None:
        self.interruptions += 1
        self.proxy.delay(SETTINGS["request_timeout_seconds"] + 2, method="PUT", path=_ANY_WRITE, times=2)
        self.proxy.delay(1, method="PATCH", path=_ANY_WRITE, times=5)

    async def _calm(self, _: Step) -> None:
        self.proxy.clear()


def _is_fenced(ownership: Object) -> bool:
    conditions = (ownership.get("status") or {}).get("conditions") or ()
    return any(entry["type"] == "Fenced" and entry["status"] == "True" for entry in conditions)


async def patiently(call: Callable[[], Awaitable[Any]]) -> Any:
    """Ask until there is an answer; None where the object is gone, or there already."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    return await call()
                except ApiError as refusal:
                    if refusal.status in _GONE_OR_THERE:
                        return None
                except (aiohttp.ClientError, ConnectionError):
                    pass
                await asyncio.sleep(0.2)
    except TimeoutError as error:
        raise ProgramEnded("kube-apiserver", None, "it did not answer for long") from error
