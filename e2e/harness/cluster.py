"""What one test needs of a control plane, and the cleaning up after it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from e2e.harness import charts, objects
from e2e.harness.controlplane import ControlPlane
from e2e.harness.errors import ApiError
from e2e.harness.kube import Kube, Object
from e2e.harness.operators import Operator
from e2e.harness.processes import free_port
from e2e.harness.programs import Options
from e2e.harness.proxy import FaultProxy
from e2e.harness.webhook import Webhook

OPERATOR_NAMESPACE = "dovetail-system"
OPERATOR_ACCOUNT = "dovetail"
OPERATOR_USER = f"system:serviceaccount:{OPERATOR_NAMESPACE}:{OPERATOR_ACCOUNT}"

# What the chart brings for a running operator; the harness runs the operator itself.
_NOT_INSTALLED = {"Deployment", "Service"}

_WORKLOADS = ("StatefulSet", "ReplicaSet", "Job")
_CLUSTER_WIDE = (
    "Node",
    "ResourceSlice",
    "DeviceClass",
    "DeviceTaintRule",
    "DerivedAttribute",
    "DeviceOwnership",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
)
_numbers = itertools.count(1)


class Cluster:
    """A control plane as one test sees it: empty at the beginning, emptied at the end.

    `kube` is the admin's client, `plane` the programs.
    Tests share a plane, one after another; each takes namespaces of its own.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.kube: Kube = plane.kube
        self.operators: list[Operator] = []
        self._proxies: list[FaultProxy] = []
        self._webhooks: list[Webhook] = []
        self._namespaces: list[str] = []

    async def namespace(self, **labels: str) -> str:
        """A new namespace, ready for pods."""
        name = f"t{next(_numbers)}"
        await self.kube.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        )
        self._namespaces.append(name)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        # Pods are refused until it is there, and its controller takes a moment.
        await self._create_unless_there(account, name)
        return name

    async def add_node(self, name: str, **wishes: Any) -> Object:
        """A Ready node without the taint that admission gives to new ones; arguments of `objects.node`."""
        wanted = objects.node(name, **wishes)
        await self.kube.create(wanted)
        taints = {"spec": {"taints": wanted["spec"]["taints"]}}
        return await self.kube.patch("Node", name, taints)

    async def add_nodes(self, names: Iterable[str], **wishes: Any) -> None:
        """Several equal nodes."""
        await gather_limited([partial(self.add_node, name, **wishes) for name in names])

    async def add_world(self, files: Iterable[str], node: str, **wishes: Any) -> None:
        """A node, the slices of files below `tests/data/slices` as it publishes them, and their classes."""
        slices = objects.slices_of(files, node)
        await self.add_node(node, **wishes)
        await self.apply(*slices, *objects.classes_for(slices))

    async def apply(self, *manifests: Object, namespace: str | None = None) -> None:
        """Apply manifests."""
        await self.kube.apply_all(manifests, namespace)

    async def apply_files(self, *paths: Path, namespace: str | None = None) -> None:
        """Apply the manifests of YAML files."""
        await self.apply(*(item for path in paths for item in objects.load(path)), namespace=namespace)

    async def create_all(self, manifests: Iterable[Object], namespace: str | None = None) -> None:
        """Create many objects, several at a time."""
        await gather_limited([partial(self.kube.create, item, namespace) for item in manifests])

    async def install(self, values: Mapping[str, Any] | None = None) -> None:
        """Install the definitions of `crds/`, and what the chart grants the operator and ships as policies.

        `values` are the chart's; what an earlier call installed and this one would not is left alone.
        """
        for path in sorted((objects.ROOT / "crds").glob("*.yaml")):
            await self.apply_files(path)
        system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR_NAMESPACE}}
        rendered = await charts.render(values, namespace=OPERATOR_NAMESPACE)
        await self.apply(system, *(item for item in rendered if item["kind"] not in _NOT_INSTALLED))

    async def new_operator(
        self,
        *,
        name: str = "operator",
        server: str | None = None,
        account: tuple[str, str] = (OPERATOR_NAMESPACE, OPERATOR_ACCOUNT),
        **settings: object,
    ) -> Operator:
        """An operator that is not started yet; its requests go to `server` (a proxy's URL) where given.

        Settings are given by name, as `claim_generation="always"`.
        """
        kubeconfig = await self.plane.account_kubeconfig(*account, server=server)
        usual = {"listen": f"127.0.0.1:{free_port()}", "lease_namespace": OPERATOR_NAMESPACE}
        number = len(self.operators)
        log = self.plane.log(f"{'-'.join(self._namespaces) or 'test'}-{name}-{number}")
        operator = Operator(name, kubeconfig, log, settings=usual | settings)
        self.operators.append(operator)
        return operator

    async def operator(self, **wishes: Any) -> Operator:
        """An operator that runs and is ready; arguments of `new_operator`."""
        operator = await self.new_operator(**wishes)
        await operator.start()
        return operator

    async def proxy(self) -> FaultProxy:
        """A proxy in front of the API server; give its `url` to an operator as `server`."""
        proxy = await FaultProxy(self.plane.server, self.plane.identities.ca).start()
        self._proxies.append(proxy)
        return proxy

    async def webhook(self, resource: str = "pods/binding", *operations: str) -> Webhook:
        """A webhook that sees requests for a resource, and can hold them; by default every bind."""
        name = f"hold-{resource.replace('/', '-')}-{len(self._webhooks)}"
        webhook = await Webhook(name, resource, operations or ("*",), self.plane.identities).start()
        self._webhooks.append(webhook)
        await self.apply(webhook.configuration)
        return webhook

    async def clean(self) -> None:
        """End operators and proxies and delete everything that the test may have made."""
        for operator in self.operators:
            await operator.kill()
        for proxy in self._proxies:
            await proxy.stop()
        for webhook in self._webhooks:
            await self.kube.delete("ValidatingWebhookConfiguration", webhook.name)
            await webhook.stop()
        for component in self.plane.components:
            component.program.resume()
            if not component.program.running:
                await component.start()
        await gather_limited([partial(self._clear_namespace, name) for name in self._namespaces])
        for kind in _CLUSTER_WIDE:
            await self._delete_all(kind)
        # A killed operator leaves its Lease; the next test's would wait for the end of it.
        await self._delete_all("Lease", OPERATOR_NAMESPACE)

    async def _clear_namespace(self, namespace: str) -> None:
        for kind in (*_WORKLOADS, "Pod", "ResourceClaim"):
            await self._delete_all(kind, namespace)
        for kind in ("Pod", "ResourceClaim"):
            for item in await self.kube.list(kind, namespace):
                # Whoever would remove the finalizer may not run in this test.
                await self._forgive(kind, item["metadata"]["name"], namespace)
            await self.kube.wait_all(kind, lambda items: not items, namespace, within=20)
        await self.kube.delete("Namespace", namespace)

    async def _forgive(self, kind: str, name: str, namespace: str) -> None:
        try:
            await self.kube.patch(kind, name, {"metadata": {"finalizers": None}}, namespace)
            await self.kube.delete(kind, name, namespace, grace=0)
        except ApiError as refusal:
            # A patch lets the API server spell opaque parameters anew, and then refuse them (422):
            # such a claim is left to kube-controller-manager, and waited for like the others.
            if refusal.status not in (404, 422):
                raise

    async def _delete_all(self, kind: str, namespace: str | None = None) -> None:
        try:
            await self.kube.delete_all(kind, namespace)
        except (ApiError, KeyError) as refusal:
            # A kind that this plane does not serve.
            if isinstance(refusal, ApiError) and refusal.status != 404:
                raise

    async def _create_unless_there(self, manifest: Object, namespace: str) -> None:
        try:
            await self.kube.create(manifest, namespace)
        except ApiError as refusal:
            if refusal.status != 409:
                raise


async def gather_limited(calls: Sequence[Callable[[], Awaitable[Any]]], limit: int = 20) -> None:
    """Run calls at most `limit` at a time; the first error ends it."""
    gate = asyncio.Semaphore(limit)

    async def one(call: Callable[[], Awaitable[Any]]) -> None:
        async with gate:
            await call()

    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(one(call))


ClusterFactory = Callable[[Options], Awaitable[Cluster]]
"""What the fixture `cluster_with` is: a cluster with options of its own."""
