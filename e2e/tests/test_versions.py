"""Older versions of Kubernetes: the programs of 1.34, and what the newest ones emulate in between."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from e2e import build
from e2e.harness import Cluster, ControlPlane, Options, condition, objects, running
from e2e.tests.claims import (
    CLASSES,
    alignment,
    devices,
    gpu_slice,
    held_twice,
    nic_slice,
    numa_mapping,
    pair,
)
from e2e.tests.test_fire_rivals import beaten_by_kube_scheduler
from e2e.tests.test_ownership import audit, ownership, prepare

pytestmark = pytest.mark.oldest

VERSIONS = {
    "1.34": Options(kubernetes=build.OLDEST_KUBERNETES),
    "1.35": Options(emulates="1.35"),
    "1.36": Options(emulates="1.36"),
}
GATE_POLICY = {"1.36"}
"""Versions that serve MutatingAdmissionPolicy as v1, so that the chart can be installed as it is."""


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=VERSIONS)
async def older_plane(request: pytest.FixtureRequest) -> AsyncIterator[ControlPlane]:
    """A control plane of an older version, with what the chart installs there."""
    plane = ControlPlane(VERSIONS[request.param])
    await plane.start()
    await Cluster(plane).install({"gatePolicy": {"enabled": request.param in GATE_POLICY}})
    yield plane
    await plane.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def older(older_plane: ControlPlane) -> AsyncIterator[Cluster]:
    """The same, empty, and emptied after the test."""
    cluster = Cluster(older_plane)
    yield cluster
    await cluster.clean()


async def test_an_older_version_is_served(older: Cluster) -> None:
    """A gated pod gets its device and runs, the audit is clean, an ownership says that there is no fence."""
    namespace = await prepare(older)
    operator = await older.operator()
    await older.apply(ownership())

    await older.kube.create(objects.pod("p", templates={"gpu": "ours"}), namespace)

    await older.kube.wait_for("Pod", "p", running, namespace)
    owner = await older.kube.wait_for(
        "DeviceOwnership", "gpus", lambda item: condition(item, "Fenced") is not None
    )
    assert (condition(owner, "Fenced") or {})["reason"] == "NotServed"
    assert (await audit(older))["findings"] == []
    assert [event for event in operator.events if event.get("event") == "right_missing"] == []


async def test_an_older_version_aligns_and_gives_back(older: Cluster) -> None:
    """The only aligned pair goes to one pod, and to the next one when that is gone."""
    await older.add_node("n1")
    await older.apply(gpu_slice("n1", 0, 1), nic_slice("n1", 1), *CLASSES, numa_mapping())
    namespace = await older.namespace()
    await older.kube.create(objects.template("pair", pair()), namespace)
    await older.operator()

    for name in ("first", "second"):
        await older.kube.create(objects.pod(name, templates={"devices": "pair"}), namespace)
        await older.kube.wait_for("Pod", name, running, namespace)
        (claim,) = await older.kube.list("ResourceClaim", namespace)
        assert {device for _, _, device in devices(claim)} == {"gpu-1", "nic-0"}
        assert [entry["value"] for entry in alignment(claim)] == [1]
        await older.kube.delete("Pod", name, namespace)
        await older.kube.wait_gone("Pod", name, namespace)
        await older.kube.wait_all("ResourceClaim", lambda claims: not claims, namespace)


async def test_an_older_kube_scheduler_that_has_chosen_is_given_way(older: Cluster) -> None:
    """It writes after us, for the same device, and allocations have no date: our gated pod gives way."""
    namespace = await prepare(older, devices=1)
    operator = await older.operator()

    await beaten_by_kube_scheduler(older, operator, namespace)

    assert held_twice(await older.kube.list("ResourceClaim", namespace)) == []
