"""Least privilege: each right that is missing is named, and none that is granted goes unused."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from dovetail.api.kinds import WATCHED
from dovetail.cluster.connection import connect
from dovetail.cluster.pen import Pen
from dovetail.cluster.wire import Wire
from dovetail.core.features import Features
from dovetail.services.rights import Right, rights_needed
from dovetail.services.settings import Settings
from dovetail.services.startup import Cluster as Examined
from dovetail.services.startup import missing_rights
from e2e.harness import (
    OPERATOR_NAMESPACE,
    OPERATOR_USER,
    Cluster,
    NotSeen,
    Object,
    Options,
    Write,
    condition,
    free_port,
    objects,
    running,
)
from e2e.harness.cluster import ClusterFactory
from e2e.tests.test_ownership import ATTRIBUTE, DRIVER, fence, ownership, prepare

OPTIONAL = frozenset({"derivedattributes", "devicetaintrules", "deviceownerships"})
NEEDED = rights_needed(Settings(), lease_namespace=OPERATOR_NAMESPACE, optional=OPTIONAL)
ACCOUNT = "lesser"
READING = ("get", "list", "watch")


def role(rights: tuple[Right, ...]) -> Object:
    """A ClusterRole with these rights."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": ACCOUNT},
        "rules": [
            {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}
            for right in rights
        ],
    }


@pytest_asyncio.fixture(loop_scope="session")
async def lesser(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pen]:
    """A writer that acts as an account whose role the test decides."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": OPERATOR_NAMESPACE}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}
    await cluster.apply(account, role(NEEDED), binding, namespace=OPERATOR_NAMESPACE)
    monkeypatch.setenv("KUBECONFIG", str(await cluster.plane.account_kubeconfig(OPERATOR_NAMESPACE, ACCOUNT)))
    wire = Wire(await connect(), timeout_seconds=10)
    yield Pen(wire, permit=lambda: None)
    await wire.close()
    await cluster.kube.delete("ClusterRoleBinding", ACCOUNT)
    await cluster.kube.delete("ClusterRole", ACCOUNT)


async def test_each_missing_right_is_named(cluster: Cluster, lesser: Pen) -> None:
    """Whichever right is taken from the role, the check at the start names that one and no other."""
    examined = Examined("v1.37.2", Features(), OPTIONAL)
    for right in NEEDED:
        await cluster.apply(role(tuple(other for other in NEEDED if other != right)))
        async with asyncio.timeout(10):
            while True:
                missing = await missing_rights(lesser, Settings(), examined, OPERATOR_NAMESPACE)
                # The authorizer learns of a new role a moment later.
                if missing == (right,):
                    break
                await asyncio.sleep(0.02)


@pytest.mark.usefixtures("lesser")
async def test_the_operator_says_which_right_is_missing(cluster: Cluster) -> None:
    """Without the right on resourceclaims/binding, log, condition and /readyz name it until it is granted."""
    (binding,) = [
        right for right in NEEDED if (right.verb, right.resource) == ("update", "resourceclaims/binding")
    ]
    await cluster.apply(role(tuple(right for right in NEEDED if right != binding)))
    listen = f"127.0.0.1:{free_port()}"

    await cluster.kube.create(ownership({"driver": "gpu.example.com"}))

    operator = await cluster.operator(account=(OPERATOR_NAMESPACE, ACCOUNT), listen=listen, resync_seconds=2)

    event = await operator.event("right_missing")
    assert (event["right"], event["purpose"]) == (str(binding), binding.purpose)
    status, words = await readiness(listen)
    assert status == 503
    assert str(binding) in words
    restricted = await permitted(cluster, "False")
    assert restricted["reason"] == "RightMissing"
    assert f"{binding}, needed to {binding.purpose}" in restricted["message"]

    await cluster.apply(role(NEEDED))

    await permitted(cluster, "True")
    assert await readiness(listen) == (200, "ok\n")


async def readiness(listen: str) -> tuple[int, str]:
    """Status and words of /readyz."""
    async with aiohttp.ClientSession() as session, session.get(f"http://{listen}/readyz") as answer:
        return answer.status, await answer.text()


async def permitted(cluster: Cluster, status: str) -> Object:
    """What the DeviceOwnership says of the operator's rights, as soon as it is this."""
    item = await cluster.kube.wait_for(
        "DeviceOwnership",
        "gpus",
        lambda item: (condition(item, "Permitted") or {}).get("status") == status,
    )
    return condition(item, "Permitted") or {}


def test_every_kind_that_may_be_listed_is_watched() -> None:
    """What the operator may list and watch is what its picture of the cluster is made of."""
    readable = {(right.group, right.resource) for right in NEEDED if right.verb in ("list", "watch")}
    assert readable == {(kind.group, kind.plural) for kind in WATCHED}


async def test_no_right_to_write_goes_unused(cluster_with: ClusterFactory) -> None:
    """In the life of a few pods and of an ownership, the operator uses every verb that its role grants."""
    cluster = await cluster_with(Options().without("resourceclaim-controller"))
    since = cluster.plane.audit.mark()
    namespace = await prepare(cluster, devices=2)
    settings = {"claim_generation": "always", "release": "always", "lease_seconds": 2}
    operator = await cluster.operator(**settings)
    await live(cluster, namespace)
    # A second run finds the Events of the first, and counts on from there.
    await operator.stop()
    await cluster.operator(**settings)

    granted = {(right.verb, right.resource) for right in NEEDED if right.verb not in READING}
    # The API server checks these together with resourceclaims/status.
    granted -= {(verb, "resourceclaims/binding") for verb in ("update", "patch")}
    with contextlib.suppress(NotSeen):
        await cluster.plane.audit.seen(
            OPERATOR_USER, lambda writes: granted <= used(writes), since=since, within=15
        )
    assert granted - used(cluster.plane.audit.writes(OPERATOR_USER, since=since)) == set()


def used(writes: tuple[Write, ...]) -> set[tuple[str, str]]:
    """Verb and resource of each write."""
    return {(write.verb, "/".join(filter(None, (write.resource, write.subresource)))) for write in writes}


async def live(cluster: Cluster, namespace: str) -> None:
    """Two pods share a claim; a pod comes, another waits, the first is done; an ownership changes, too.

    A rule of the ownership is spoilt.
    """
    kube = cluster.kube
    await fence(cluster, ownership({"driver": "gpu.example.com"}, {"driver": "other.example.com"}))
    await kube.create(
        objects.claim("shared", objects.claim_spec({"gpu": DRIVER}, match=ATTRIBUTE)), namespace
    )
    for name in ("shares", "shares-too"):
        await kube.create(objects.pod(name, claims={"gpu": "shared"}), namespace)
        await kube.wait_for("Pod", name, running, namespace)
    await kube.create(objects.pod("runs", templates={"gpu": "ours"}), namespace)
    await kube.wait_for("Pod", "runs", running, namespace)
    await kube.create(objects.pod("waits", templates={"gpu": "ours"}), namespace)
    await kube.wait_for(
        "Pod", "waits", lambda pod: condition(pod, "dovetail.dev/Allocated") is not None, namespace
    )
    await fence(cluster, ownership({"driver": "gpu.example.com"}))
    (rule,) = await kube.wait_all("DeviceTaintRule", lambda rules: len(rules) == 1)
    spoilt = {"spec": {"taint": {"key": "dovetail.dev/owned", "value": "other", "effect": "NoSchedule"}}}
    await kube.patch("DeviceTaintRule", rule["metadata"]["name"], spoilt)
    await kube.wait_for(
        "DeviceTaintRule", rule["metadata"]["name"], lambda item: item["spec"]["taint"]["value"] == "gpus"
    )
    await kube.patch("Pod", "runs", {"status": {"phase": "Succeeded"}}, namespace, subresource="status")
    await kube.wait_for("Pod", "waits", running, namespace)
    await kube.create(objects.pod("waits-too", templates={"gpu": "ours"}), namespace)
    await kube.wait_for(
        "Pod", "waits-too", lambda pod: condition(pod, "dovetail.dev/Allocated") is not None, namespace
    )
