"""What Dovetail may not do is named on its own objects, and taken back when it may."""

import aiohttp
import pytest

from dovetail.embedded import EmbeddedCluster
from tests.audit.cluster import DRIVER, ownership
from tests.operator.conftest import OperatorStarter
from tests.operator.test_gates_off import world
from tests.operator.test_guard import condition, manifest
from tests.operator.worlds import Body, claim, pod

OWN_KINDS = ("DerivedAttribute", "DeviceOwnership")
RIGHT = "update resourceclaims.resource.k8s.io/binding"
PURPOSE = "change status.allocation and status.reservedFor from Kubernetes 1.36 on, at the cluster scope"


def mapping() -> Body:
    """A mapping that holds."""
    return {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "DerivedAttribute",
        "metadata": {"name": "mine"},
        "spec": {"attribute": "example.com/mine", "rules": [{"driver": DRIVER, "expression": "1"}]},
    }


async def permitted(cluster: EmbeddedCluster, kind: str, status: str) -> Body:
    """The condition of the one object of a kind, as soon as it has this status."""
    body = await cluster.wait_for(
        kind, lambda body: condition(body, "Permitted").get("status") == status, timeout_seconds=20
    )
    return condition(body, "Permitted")


async def readiness(address: str) -> tuple[int, str]:
    """Status and words of /readyz."""
    async with aiohttp.ClientSession(f"http://{address}") as session, session.get("/readyz") as answer:
        return answer.status, await answer.text()


@pytest.fixture
def owned(bare: EmbeddedCluster) -> EmbeddedCluster:
    """An API server with one object of each kind that is Dovetail's own."""
    bare.create(mapping())
    bare.create(manifest(ownership({"driver": DRIVER})))
    return bare


async def test_a_missing_right_is_named_on_every_object_of_ours(
    owned: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The condition names the right and what it is needed for, on mappings and ownerships alike."""
    owned.faults.deny("update", "resourceclaims/binding", "resource.k8s.io")
    await operator()

    for kind in OWN_KINDS:
        found = await permitted(owned, kind, "False")
        assert found["reason"] == "RightMissing"
        assert found["message"] == f"missing right to {RIGHT}, needed to {PURPOSE}"


async def test_a_right_that_comes_late_is_noticed(
    owned: EmbeddedCluster, operator: OperatorStarter, unused_tcp_port: int
) -> None:
    """Once it is granted, condition and /readyz take their word back, without a restart."""
    owned.faults.deny("update", "resourceclaims/binding", "resource.k8s.io")
    address = f"127.0.0.1:{unused_tcp_port}"
    await operator(listen=address, resync_seconds=1.0)
    for kind in OWN_KINDS:
        await permitted(owned, kind, "False")
    missing = await readiness(address)

    owned.faults.clear()

    for kind in OWN_KINDS:
        assert (await permitted(owned, kind, "True"))["reason"] == "AllGranted"
    assert missing == (503, f"missing right to {RIGHT}: needed to {PURPOSE}\n")
    assert await readiness(address) == (200, "ok\n")


async def test_a_right_that_is_taken_away_is_noticed(
    owned: EmbeddedCluster, operator: OperatorStarter, unused_tcp_port: int
) -> None:
    """The role may be changed while the operator runs: the next check names what is gone."""
    address = f"127.0.0.1:{unused_tcp_port}"
    await operator(listen=address, resync_seconds=1.0)
    for kind in OWN_KINDS:
        await permitted(owned, kind, "True")

    owned.faults.deny("create", "events")

    for kind in OWN_KINDS:
        found = await permitted(owned, kind, "False")
        assert found["message"] == "missing right to create events, needed to tell owners of pods"
    assert (await readiness(address))[0] == 503


async def test_a_check_without_an_answer_changes_nothing(
    owned: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The API server refuses to answer reviews for a while: no right is taken for missing or granted."""
    owned.faults.deny("create", "events")
    await operator(resync_seconds=1.0)
    await permitted(owned, "DeviceOwnership", "False")
    written = len(owned.writes("deviceownerships/status"))

    refused = owned.faults.hold("POST", "selfsubjectaccessreviews")
    owned.faults.fail("POST", "selfsubjectaccessreviews", status=403, times=1)
    await refused.arrived.wait()
    refused.release()
    owned.faults.denied.clear()

    await permitted(owned, "DeviceOwnership", "True")
    assert len(owned.writes("deviceownerships/status")) == written + 1


async def test_a_gate_that_is_off_is_named_on_every_object_of_ours(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """What came back without a share tells that DRAConsumableCapacity is off (V69, R-B13)."""
    cluster.load(*world())
    cluster.create(mapping())
    cluster.create(manifest(ownership({"driver": DRIVER})))
    cluster.faults.drop_fields("shareID", "consumedCapacity")
    await operator()
    for kind in OWN_KINDS:
        await permitted(cluster, kind, "True")
    cluster.create(claim("mine"))

    cluster.create(pod("p1", claim="mine"))

    for kind in OWN_KINDS:
        found = await permitted(cluster, kind, "False")
        assert found["reason"] == "FeatureGateOff"
        assert found["message"] == (
            "feature gate DRAConsumableCapacity is off: "
            "the API server drops its fields, and Dovetail does without them"
        )
