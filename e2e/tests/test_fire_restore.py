"""etcd is restored from an older state, and kinds of ours come and go: the operator goes on, as it is."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from typing import Any

from e2e.harness import Cluster, ClusterFactory, Object, Options, objects, running
from e2e.harness.operators import READY
from e2e.tests.claims import CLASSES, GPU, NIC, gpu_slice, nic_slice, numa_mapping, pair, waits

QUICK: dict[str, Any] = {"lease_seconds": 6, "claim_generation": "never", "resync_seconds": 20}
PLACE = "example.com/place"
DEFINITIONS = sorted((objects.ROOT / "crds").glob("*.yaml"))
OWN_KINDS = ("derivedattributes.dovetail.dev", "deviceownerships.dovetail.dev")


async def pairs(cluster: Cluster, count: int) -> str:
    """So many pairs on a node, the mapping, and a namespace with a template."""
    await cluster.add_node("n1")
    places = [0] * count
    await cluster.apply(gpu_slice("n1", *places), nic_slice("n1", *places))
    await cluster.apply(*CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    return namespace


def place() -> Object:
    """A mapping of an attribute that nothing else supplies."""
    drivers = (GPU, NIC)
    rules = [{"driver": each, "expression": f'device.attributes["{each}"].numaNode'} for each in drivers]
    return objects.mapping("place", PLACE, rules)


def pod(name: str) -> Object:
    """A gated pod that wants a pair."""
    return objects.pod(name, templates={"devices": "pair"})


def concerns(kind: str, entry: dict[str, Any]) -> bool:
    """Whether a line of the log is about a kind."""
    return bool(entry["kind"] == kind)


async def save_etcd(cluster: Cluster) -> None:
    """Keep etcd's data as it is now, as a backup does; the API server waits meanwhile."""
    plane = cluster.plane
    await plane.etcd.kill()
    shutil.copytree(plane.home / "etcd", plane.home / "etcd-saved")
    await plane.etcd.start()


async def restore_etcd(cluster: Cluster) -> None:
    """Put the data of then in the place of what there is, with the API server stopped."""
    plane = cluster.plane
    await plane.apiserver.kill()
    await plane.etcd.kill()
    shutil.rmtree(plane.home / "etcd")
    shutil.move(plane.home / "etcd-saved", plane.home / "etcd")
    await plane.etcd.start()
    await plane.apiserver.start()


async def test_definitions_that_are_deleted_and_come_back(cluster_with: ClusterFactory) -> None:
    """Without them other pods are served; with them the mapping counts again, in the same process."""
    cluster = await cluster_with(Options())
    namespace = await pairs(cluster, 3)
    await cluster.apply(place())
    await cluster.kube.create(objects.template("placed", pair(PLACE)), namespace)
    operator = await cluster.operator(**QUICK)
    await cluster.kube.create(pod("before"), namespace)
    await cluster.kube.wait_for("Pod", "before", running, namespace, within=60)
    seen = len(operator.events)

    for name in OWN_KINDS:
        await cluster.kube.delete("CustomResourceDefinition", name)
    for name in OWN_KINDS:
        await operator.event("kind_not_served", partial(concerns, name), within=60)
    await cluster.kube.create(objects.pod("waiting", templates={"devices": "placed"}), namespace)
    await cluster.kube.wait_for("Pod", "waiting", waits("NoMapping"), namespace, within=60)
    await asyncio.sleep(20)
    await cluster.apply_files(*DEFINITIONS)
    await cluster.apply(numa_mapping(), place())

    await cluster.kube.wait_for("Pod", "waiting", running, namespace, within=60)
    assert READY not in [entry.get("event") for entry in operator.events[seen:]]


async def test_a_restored_etcd_is_believed_without_a_restart(cluster_with: ClusterFactory) -> None:
    """Versions are lower than what was seen: what is made afterwards is served within a minute."""
    cluster = await cluster_with(Options())
    namespace = await pairs(cluster, 1)
    operator = await cluster.operator(**QUICK)
    await save_etcd(cluster)
    await cluster.kube.create(pod("old"), namespace)
    await cluster.kube.wait_for("Pod", "old", running, namespace, within=60)
    for count in range(300):
        patch = {"metadata": {"labels": {"count": str(count)}}}
        await cluster.kube.patch("Namespace", namespace, patch)

    await restore_etcd(cluster)
    seen = len(operator.events)
    await cluster.kube.create(pod("new"), namespace)

    await cluster.kube.wait_for("Pod", "new", running, namespace, within=90)
    await operator.event("cluster_went_back")
    assert READY not in [entry.get("event") for entry in operator.events[seen:]]
