"""`dovetail plan` takes and refuses what the API server takes and refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from dovetail.core.features import GATES as KNOWN
from dovetail.core.features import Features
from e2e import schemas
from e2e.harness.cluster import Cluster, ClusterFactory
from e2e.harness.programs import Options
from e2e.validation.comparison import compare
from e2e.validation.gates import ALL_ON, GATES, prepare

NUMBER = 2_000
SEED = 20_261_130


@pytest.mark.parametrize(("gates", "features"), [({}, Features()), (GATES, ALL_ON)], ids=["default", "all"])
async def test_2000_objects_are_judged_as_the_api_server_judges_them(
    cluster_with: ClusterFactory, gates: Mapping[str, bool], features: Features
) -> None:
    """The same are taken, filled in with the same, and refused for the same fields, in a dry run.

    Below a field that both refuse, one may stop where the other goes on.
    All four outcomes come often.
    """
    cluster = await cluster_with(Options(gates=gates, controllers=(), scheduler=False, kwok=False))
    await prepare(cluster.kube)
    differences, outcomes = await compare(cluster.kube, features, SEED, NUMBER)
    assert not differences, "\n".join(map(str, differences[:5]))
    assert min(outcomes[outcome] for outcome in ("taken", "refused", "unknown", "unreadable")) >= NUMBER // 20


async def test_the_fields_that_plan_knows_are_those_of_the_api_server(cluster: Cluster) -> None:
    """`make fields` writes them from the same documents."""
    assert schemas.text(await schemas.read(cluster.kube)) == schemas.FILE.read_text()


async def test_the_gates_that_plan_takes_for_granted_are_those_of_a_plain_api_server(
    cluster: Cluster,
) -> None:
    """As it tells them itself; one that it does not tell of is none of its own."""
    metrics = await cluster.kube.request("GET", "/metrics")
    told = re.findall(r'^kubernetes_feature_enabled\{name="([^"]+)"[^}]*\} ([01])', metrics, re.MULTILINE)
    enabled = {name: value == "1" for name, value in told if name in KNOWN}
    assert len(enabled) >= len(KNOWN) - 2
    assert enabled == {gate: getattr(Features(), KNOWN[gate]) for gate in enabled}
