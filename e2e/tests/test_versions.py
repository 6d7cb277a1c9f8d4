"""Older versions of Kubernetes, as the programs of the control plane emulate them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from e2e.harness import Cluster, ControlPlane, Options, condition, objects, running
from e2e.tests.test_ownership import audit, ownership, prepare

VERSIONS = ("1.34", "1.35", "1.36")
GATE_POLICY = {"1.36"}
"""Versions that serve MutatingAdmissionPolicy as v1, so that the chart can be installed as it is."""


@pytest_asyncio.fixture(params=VERSIONS, loop_scope="session")
async def older(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """A cluster of an older version, with what the chart installs there."""
    plane = ControlPlane(Options(emulates=request.param))
    await plane.start()
    cluster = Cluster(plane)
    await cluster.install({"gatePolicy": {"enabled": request.param in GATE_POLICY}})
    yield cluster
    for operator in cluster.operators:
        await operator.kill()
    await plane.stop()


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
