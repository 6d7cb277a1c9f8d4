"""The embedded cluster: the API server, its stand-ins and its hooks in one object."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import yaml
from aiohttp import web

from dovetail.embedded import crds
from dovetail.embedded.bodies import Body, copied, key_of, metadata_of, namespace_of, now
from dovetail.embedded.claim_controller import ClaimController
from dovetail.embedded.faults import Faults, Request
from dovetail.embedded.garbage import collect_garbage
from dovetail.embedded.kinds import Kind, Kinds
from dovetail.embedded.kubelet import run_kubelet
from dovetail.embedded.pod_scheduler import PodScheduler
from dovetail.embedded.serving import Serving
from dovetail.embedded.store import Snapshot, Store
from dovetail.embedded.watching import Watches
from dovetail.embedded.writing import STRATEGIC_MERGE, Writer

T = TypeVar("T")

NAMESPACES = ("default", "kube-system")


class EmbeddedCluster:
    """An API server on 127.0.0.1 while the block lasts, with stand-ins for the rest of the cluster.

    The methods that read and write are synchronous, act at once and bypass HTTP: faults do not
    touch them, and the journal does not name them. What they return is a copy.
    """

    def __init__(
        self,
        *,
        claim_controller: bool = False,
        scheduler: bool = False,
        kubelet: bool = False,
        garbage_collector: bool = True,
        definitions: bool = True,
        bookmark_seconds: float = 10.0,
    ) -> None:
        self.store = Store()
        self.kinds = Kinds()
        self.writer = Writer(self.store, self.kinds)
        self.watches = Watches(self.store, bookmark_seconds)
        self.faults = Faults()
        self.url = ""
        self._serving = Serving(self.store, self.kinds, self.writer, self.watches, self.faults)
        self._runner: web.AppRunner | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stand_ins: list[Callable[[EmbeddedCluster], None]] = [
            stand_in
            for wanted, stand_in in (
                (claim_controller, ClaimController()),
                (scheduler, PodScheduler()),
                (kubelet, run_kubelet),
                (garbage_collector, collect_garbage),
            )
            if wanted
        ]
        for name in NAMESPACES:
            self.create(_namespace(name))
        for definition in crds.definitions() if definitions else []:
            self.create(definition)

    async def __aenter__(self) -> Self:
        self._runner = web.AppRunner(
            self._serving.application(), handler_cancellation=True, access_log=None, shutdown_timeout=1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self._tasks = [asyncio.create_task(self._keep(stand_in)) for stand_in in self._stand_ins]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failed = [task for task in self._tasks if task.done()]
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.watches.close()
        if self._runner is not None:
            await self._runner.cleanup()
        for task in failed if error is None else []:
            # A stand-in that died would make a test hang elsewhere; say why.
            task.result()

    async def _keep(self, stand_in: "Callable[[EmbeddedCluster], None]") -> None:
        """Let a stand-in look at everything after each batch of changes."""
        clock = asyncio.get_running_loop().time
        seen = -1
        while True:
            seen = await self.store.changed(after=seen)
            began = clock()
            stand_in(self)
            # It looks at everything, so it rests as long as it worked: not every write is worth a walk.
            await asyncio.sleep(clock() - began)

    @property
    def journal(self) -> list[Request]:
        """Every request so far, oldest first (discovery left out)."""
        return self._serving.journal

    def writes(self, resource: str = "", method: str = "") -> list[Request]:
        """The requests that would change something, of one resource (`pods/status`) and method or verb."""
        return [
            request
            for request in self.journal
            if request.is_write
            and resource in ("", request.resource)
            and method in ("", request.method, request.verb)
        ]

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig file that names this server; the answer is its path."""
        cluster = {"name": "embedded", "cluster": {"server": self.url}}
        user = {"name": "embedded", "user": {"token": "embedded"}}
        context = {
            "name": "embedded",
            "context": {"cluster": "embedded", "user": "embedded", "namespace": "default"},
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [cluster],
            "users": [user],
            "contexts": [context],
            "current-context": "embedded",
        }
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path

    def create(self, body: Body) -> Body:
        """Create an object as a client would; its namespace (`default` if none) is made if need be."""
        kind = self.kinds.of(body)
        return copied(self.writer.create(kind, self._housed(kind, body)))

    def load(self, *bodies: Body) -> list[Body]:
        """Take objects over as they are, with status and UID, unchecked: a picture of another cluster."""
        loaded = []
        for body in bodies:
            kind = self.kinds.of(body)
            housed = self._housed(kind, body)
            fresh = {"uid": f"{kind.plural}-{key_of(housed)[1]}", "creationTimestamp": now(), "generation": 1}
            whole = housed | {"metadata": fresh | metadata_of(housed)}
            loaded.append(copied(self.writer.load(kind, whole)))
        return loaded

    def find(self, kind: str, name: str, namespace: str = "default") -> Body | None:
        """The object, if it is there; `namespace` does not matter for cluster-scoped kinds."""
        found = self.store.find(*self._place(kind, name, namespace))
        return None if found is None else copied(found)

    def get(self, kind: str, name: str, namespace: str = "default") -> Body:
        """The object; `KeyError` where there is none."""
        found = self.find(kind, name, namespace)
        if found is None:
            raise KeyError(f"{kind} {namespace}/{name}")
        return found

    def objects(self, kind: str, namespace: str = "") -> list[Body]:
        """The objects of a kind, of one namespace or of all, by key."""
        return [copied(body) for body in self.store.objects(self.kinds.named(kind), namespace)]

    def replace(self, body: Body, *, status: bool = False) -> Body:
        """PUT an object, or its status."""
        kind = self.kinds.of(body)
        subresource = "status" if status else ""
        return copied(self.writer.replace(kind, key_of(self._housed(kind, body)), body, subresource))

    def patch(
        self,
        kind: str,
        name: str,
        patch: Any,
        namespace: str = "default",
        *,
        status: bool = False,
        how: str = "",
    ) -> Body:
        """PATCH an object or its status; `how` is a media type (else strategic merge; own kinds: merge)."""
        place = self._place(kind, name, namespace)
        how = how or (STRATEGIC_MERGE if place[0].builtin else "application/merge-patch+json")
        return copied(
            self.writer.patch(*place, patch, how, subresource="status" if status else "", manager="test")
        )

    def delete(self, kind: str, name: str, namespace: str = "default", *, now: bool = False) -> None:
        """DELETE an object; `now` does not wait for a pod to end (finalizers still count)."""
        self.writer.delete(*self._place(kind, name, namespace), {"gracePeriodSeconds": 0} if now else {})

    def compact(self) -> None:
        """Forget the history: versions read before answer 410 from now on; open watches go on."""
        self.store.compact()

    def snapshot(self) -> Snapshot:
        """What there is now, as etcd saves it."""
        return self.store.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Be what was there then, as after a restore of etcd: watches end, and versions are lower again."""
        self.store.restore(snapshot)
        self.watches.close()

    async def wait_for(
        self, kind: str, predicate: Callable[[Body], object], *, timeout_seconds: float = 10.0
    ) -> Body:
        """The first object that satisfies a predicate, now or later; `TimeoutError` tells what there was."""
        named = self.kinds.named(kind)

        def look() -> Body | None:
            return next((body for body in self.store.objects(named) if predicate(body)), None)

        return copied(await self._until(look, f"no {kind} is as wished", named, timeout_seconds))

    async def wait_gone(
        self, kind: str, name: str, namespace: str = "default", *, timeout_seconds: float = 10.0
    ) -> None:
        """Return once the object is not there; `TimeoutError` otherwise."""
        place = self._place(kind, name, namespace)
        await self._until(
            lambda: self.store.find(*place) is None,
            f"{kind} {name} is still there",
            place[0],
            timeout_seconds,
        )

    async def _until(
        self, look: Callable[[], T | None], failure: str, kind: Kind, timeout_seconds: float
    ) -> T:
        try:
            async with asyncio.timeout(timeout_seconds):
                while not (found := look()):
                    await self.store.changed(after=self.store.version)
                return found
        except TimeoutError as error:
            there = yaml.safe_dump(self.store.objects(kind)[:5])
            raise TimeoutError(f"{failure} after {timeout_seconds} s; there is:\n{there}") from error

    def _place(self, kind: str, name: str, namespace: str) -> tuple[Kind, tuple[str, str]]:
        named = self.kinds.named(kind)
        return named, (namespace if named.namespaced else "", name)

    def _housed(self, kind: Kind, body: Body) -> Body:
        if not kind.namespaced:
            return copied(body)
        namespace = namespace_of(body) or "default"
        if self.store.find(self.kinds.named("Namespace"), ("", namespace)) is None:
            self.create(_namespace(namespace))
        return copied(body) | {"metadata": metadata_of(copied(body)) | {"namespace": namespace}}


def _namespace(name: str) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
