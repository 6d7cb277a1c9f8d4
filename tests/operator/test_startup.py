"""What the operator finds out before its first decision, and says when something is missing."""

import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from typing_extensions import override

from dovetail.api.kinds import Kind
from dovetail.app import running
from dovetail.cluster.connection import connect
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.cluster.wire import Wire
from dovetail.embedded import EmbeddedCluster
from dovetail.errors import DovetailError, Unavailable
from dovetail.services.settings import Settings
from dovetail.services.startup import ClusterUnsuited, examine, missing_rights
from tests.operator.conftest import QUICK, OperatorStarter
from tests.operator.worlds import pairs


@pytest.fixture
async def wire(bare: EmbeddedCluster) -> "Wire":
    """A connection to the API server; the test process ends it."""
    return Wire(await connect(), timeout_seconds=2)


class Older(Reader):
    """A server of 1.33 knows the group in older versions only."""

    @override
    async def is_served(self, kind: Kind) -> bool:
        return kind.group != "resource.k8s.io" and await super().is_served(kind)

    @override
    async def read_json(self, path: str) -> Any:
        older = {"gitVersion": "v1.33.4", "major": "1", "minor": "33"}
        return older if path == "/version" else await super().read_json(path)


async def test_a_cluster_without_the_api_is_refused(bare: EmbeddedCluster, wire: Wire) -> None:
    """Without resource.k8s.io/v1 the operator names version and remedy, and does not start (T-30)."""
    with pytest.raises(ClusterUnsuited, match=r"1.33.4 does not serve resource.k8s.io/v1 .* upgrade to 1.34"):
        await examine(Older(wire), Settings(listen=""))
    await wire.close()


async def test_each_missing_right_is_named(bare: EmbeddedCluster, wire: Wire) -> None:
    """With resourceclaims/status and without resourceclaims/binding, the latter is named (R-B14)."""
    bare.faults.deny("update", "resourceclaims/binding", "resource.k8s.io")
    settings = Settings(listen="")
    cluster = await examine(Reader(wire), settings)

    missing = await missing_rights(Pen(wire, permit=lambda: None), settings, cluster, "kube-system")

    await wire.close()
    assert [str(right) for right in missing] == ["update resourceclaims.resource.k8s.io/binding"]


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_busy_server_is_asked_again_for_rights(
    bare: EmbeddedCluster, wire: Wire, status: int
) -> None:
    """Three answers fail: no right is taken for missing, and the start goes on."""
    settings = Settings(listen="")
    cluster = await examine(Reader(wire), settings)
    bare.faults.fail("POST", "selfsubjectaccessreviews", status=status, times=3, retry_after_seconds=0)

    missing = await missing_rights(Pen(wire, permit=lambda: None), settings, cluster, "kube-system")

    await wire.close()
    assert missing == ()


async def test_a_server_that_emulates_an_older_version_has_its_gates(
    bare: EmbeddedCluster, wire: Wire
) -> None:
    """Taints came with 1.36: a 1.37 that emulates 1.34 is named as such, and does not have them."""

    class Emulating(Reader):
        """A server whose metrics say nothing."""

        @override
        async def read_json(self, path: str) -> dict[str, str]:
            return {"gitVersion": "v1.37.2", "minor": "37", "emulationMajor": "1", "emulationMinor": "34"}

    cluster = await examine(Emulating(wire), Settings(listen=""))

    await wire.close()
    assert cluster.version == "v1.37.2 emulating 1.34"
    assert (cluster.features.device_taints, cluster.features.admin_access) == (False, True)


async def test_readiness_names_the_missing_right(
    bare: EmbeddedCluster, operator: OperatorStarter, unused_tcp_port: int
) -> None:
    """/readyz is 503 with the right and its purpose; /healthz and /metrics answer all the same."""
    bare.faults.deny("update", "resourceclaims/binding", "resource.k8s.io")
    address = f"127.0.0.1:{unused_tcp_port}"
    await operator(listen=address)

    async with aiohttp.ClientSession(f"http://{address}") as session:
        ready = await session.get("/readyz")
        healthy = await session.get("/healthz")
        metrics = await session.get("/metrics")
        words = await ready.text()
        numbers = await metrics.text()

    assert (ready.status, healthy.status, metrics.status) == (503, 200, 200)
    assert "update resourceclaims.resource.k8s.io/binding" in words
    assert "dovetail_leading" in numbers


async def test_an_unreachable_cluster_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubeconfig that is not there is named; nothing hangs."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))

    with pytest.raises(Unavailable, match="reading the cluster's address"):
        await connect()


async def test_the_operator_ends_where_it_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, seen by whoever runs it."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))

    with pytest.raises(DovetailError):
        async with running(Settings(**QUICK)):
            pass


async def test_gates_follow_the_version_and_what_is_set_by_hand(bare: EmbeddedCluster, wire: Wire) -> None:
    """1.37 has taints and no derived attributes, unless a setting says otherwise."""
    by_version = await examine(Reader(wire), Settings(listen=""))
    by_hand = await examine(
        Reader(wire), Settings(listen="", feature_gates="DRADerivedAttributes=true,DRADeviceTaints=false")
    )

    await wire.close()
    assert (by_version.features.device_taints, by_version.features.derived_attributes) == (True, False)
    assert (by_hand.features.device_taints, by_hand.features.derived_attributes) == (False, True)


async def test_a_stopping_operator_gives_the_lease_back(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Nobody has to wait for it to run out."""
    cluster.load(*pairs())
    context = await operator()
    await cluster.wait_for("Lease", lambda body: bool(body["spec"]["holderIdentity"]))

    context.request_stop()

    lease = await cluster.wait_for("Lease", lambda body: not body["spec"]["holderIdentity"])
    assert json.dumps(lease)
