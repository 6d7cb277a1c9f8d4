"""A real Kubernetes control plane on the loopback, without containers."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import tempfile
import urllib.request
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from e2e import build
from e2e.harness import programs
from e2e.harness.audit import AuditLog
from e2e.harness.identity import Identities
from e2e.harness.kube import Kube, Object
from e2e.harness.processes import Program, free_port
from e2e.harness.programs import Options, Ports
from e2e.harness.stages import write_stages

_UNVERIFIED = ssl.create_default_context()
_UNVERIFIED.check_hostname = False
_UNVERIFIED.verify_mode = ssl.CERT_NONE


@dataclass
class Component:
    """One program of a plane, and how to see that it is ready.

    `kill` and `stop` are those of the program; `start` waits until the program is ready.
    """

    program: Program
    probe: Callable[[], bool]
    after_kill: Callable[[], Coroutine[Any, Any, None]] | None = None
    after_start: Callable[[], Coroutine[Any, Any, None]] | None = None

    async def start(self) -> None:
        """Start the program and wait until it says that it is ready."""
        self.program.start()
        await self.program.ready(self.probe)
        if self.after_start:
            await self.after_start()

    async def kill(self) -> None:
        """End the program at once, as a crash does."""
        await self.program.kill()

    async def stop(self, *, within: float = 60) -> None:
        """End the program politely; an API server may take half a minute."""
        await self.program.stop(within=within)

    async def restart(self) -> None:
        """Kill the program and start it again, on the same port, with the same state."""
        await self.kill()
        if self.after_kill:
            await self.after_kill()
        await self.start()


@dataclass
class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK in one temporary directory.

    Use it as an async context manager, or call `start` and `stop`.
    All clients of it belong to the event loop that `start` ran in.
    With `linger` the programs outlive this process.
    """

    options: Options = field(default_factory=Options)
    home: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="dovetail-e2e-")))
    linger: bool = False

    def __post_init__(self) -> None:
        self._bin = build.bin_directory(self.options.kubernetes)
        self.ports = Ports(*(free_port() for _ in range(5)))
        self.server = f"https://127.0.0.1:{self.ports.apiserver}"
        self.identities = Identities.make(self.home / "identities")
        self.kubeconfig = self.identities.kubeconfig(self.server, "admin")
        self.kube = Kube(self.server, self.identities.tokens["admin"], self.identities.ca)
        self.audit = AuditLog(self.home / "audit.log")
        self.etcd = self._component("etcd", programs.etcd(self.home, self.ports), self._etcd_ready)
        self.apiserver = self._component(
            "kube-apiserver",
            programs.apiserver(self.home, self.ports, self.identities, self.options),
            self._https_ready(self.ports.apiserver, "/readyz"),
        )
        self.controller_manager = self._controller_manager()
        self.scheduler = self._component(
            "kube-scheduler",
            programs.scheduler(self.home, self.ports, self._act_as("system:kube-scheduler"), self.options),
            self._https_ready(self.ports.scheduler, "/readyz"),
        )
        stages = self.home / "stages.yaml"
        write_stages(stages)
        self.kwok = self._component("kwok", programs.kwok(stages, self._act_as("kwok")), lambda: True)

    def _act_as(self, user: str) -> Path:
        return self.identities.kubeconfig(self.server, user)

    def _component(self, name: str, flags: list[str], probe: Callable[[], bool]) -> Component:
        command = [str(self._bin / name), *flags]
        return Component(Program(name, command, self.log(name), linger=self.linger), probe)

    def _controller_manager(self) -> Component:
        kubeconfig = self._act_as("system:kube-controller-manager")
        component = self._component(
            "kube-controller-manager",
            programs.controller_manager(self.home, self.ports, kubeconfig, self.options),
            self._https_ready(self.ports.controller_manager, "/healthz"),
        )
        component.after_kill = self._forget_leader
        component.after_start = self._leader_seen
        return component

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def log(self, name: str) -> Path:
        """The log file of a program."""
        return self.home / "logs" / f"{name}.log"

    @property
    def components(self) -> tuple[Component, ...]:
        """The programs that this plane runs, in the order in which they start."""
        parts = [self.etcd, self.apiserver]
        parts += [self.controller_manager] if self.options.controllers else []
        parts += [self.scheduler] if self.options.scheduler else []
        return (*parts, *([self.kwok] if self.options.kwok else []))

    async def start(self) -> None:
        """Start everything and wait until every program is ready."""
        try:
            for component in self.components[:2]:
                await component.start()
            async with asyncio.TaskGroup() as group:
                for component in self.components[2:]:
                    group.create_task(component.start())
        except BaseException:
            await self.stop(keep=True)
            raise

    async def stop(self, *, keep: bool = False) -> None:
        """Kill everything, at once; the directory with the logs goes unless it is to be kept."""
        await self.kube.close()
        for component in reversed(self.components):
            await component.kill()
        if not keep:
            shutil.rmtree(self.home, ignore_errors=True)

    def client(self, token: str) -> Kube:
        """A client of the API server with another token; close it."""
        return Kube(self.server, token, self.identities.ca)

    async def account_token(self, namespace: str, name: str) -> str:
        """A token of a ServiceAccount (TokenRequest); RBAC applies to it."""
        request: Object = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 86_400},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = await self.kube.request("POST", path, body=request)
        return str(answer["status"]["token"])

    async def account_kubeconfig(self, namespace: str, name: str, *, server: str | None = None) -> Path:
        """A kubeconfig that acts as a ServiceAccount, through `server` (a proxy's URL) where given."""
        token = await self.account_token(namespace, name)
        user = f"system:serviceaccount:{namespace}:{name}"
        return self.identities.kubeconfig(server or self.server, user, token)

    async def compact(self) -> int:
        """Make etcd forget all history; return the revision up to which it is gone.

        A running API server still serves watches from its own cache; after `apiserver.restart()`
        an older resourceVersion is answered with 410.
        """
        status = await asyncio.to_thread(self._etcd_call, "maintenance/status", {})
        revision = int(status["header"]["revision"])
        await asyncio.to_thread(
            self._etcd_call, "kv/compaction", {"revision": str(revision), "physical": True}
        )
        return revision

    def _etcd_call(self, method: str, body: dict[str, Any]) -> Any:
        url = f"http://127.0.0.1:{self.ports.etcd}/v3/{method}"
        request = urllib.request.Request(url, data=json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def _etcd_ready(self) -> bool:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports.etcd}/health", timeout=2) as answer:
            return bool(answer.status == 200)

    def _https_ready(self, port: int, path: str) -> Callable[[], bool]:
        def probe() -> bool:
            with urllib.request.urlopen(
                f"https://127.0.0.1:{port}{path}", timeout=2, context=_UNVERIFIED
            ) as answer:
                return bool(answer.status == 200)

        return probe

    async def _forget_leader(self) -> None:
        """A killed controller manager leaves its Lease; its successor would wait for the end of it."""
        await self.kube.delete("Lease", "kube-controller-manager", "kube-system")

    async def _leader_seen(self) -> None:
        await self.kube.wait_for(
            "Lease",
            "kube-controller-manager",
            lambda lease: bool(lease["spec"].get("holderIdentity")),
            "kube-system",
        )
