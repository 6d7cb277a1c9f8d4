"""Kinds that a cluster may lack come and go while the operator runs; it goes on without a restart."""

import asyncio
from collections.abc import Callable

import aiohttp
import pytest

from dovetail.embedded import EmbeddedCluster, crds
from dovetail.services import streams
from tests.audit.cluster import DRIVER
from tests.audit.cluster import ownership as owned
from tests.operator.conftest import OperatorStarter
from tests.operator.test_guard import condition, manifest
from tests.operator.test_process import KOPF_RUN, started
from tests.operator.worlds import Body, aligned, claim, pairs, pod, running_pod, waits_for

MAPPINGS = "derivedattributes.dovetail.dev"
OWNERSHIPS = "deviceownerships.dovetail.dev"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Absent kinds are looked for often."""
    monkeypatch.setattr(streams, "ABSENT_SECONDS", 0.2)


def mapping(attribute: str = "example.com/place") -> Body:
    """A mapping without which a pod waits."""
    rules = [
        {"driver": "gpu.nvidia.com", "expression": 'device.attributes["gpu.nvidia.com"].numa'},
        {"driver": "dra.net", "expression": 'device.attributes["dra.net"].numaNode'},
    ]
    return {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "DerivedAttribute",
        "metadata": {"name": "place"},
        "spec": {"attribute": attribute, "rules": rules},
    }


def needs_mapping(cluster: EmbeddedCluster, name: str) -> None:
    """A pod that can be served with the mapping only."""
    cluster.create(claim(name, aligned(attribute="example.com/place")))
    cluster.create(pod(name, claim=name))


def definition(name: str) -> Body:
    """One of the definitions."""
    return next(each for each in crds.definitions() if each["metadata"]["name"] == name)


def end_watches(cluster: EmbeddedCluster) -> None:
    """As the API server does with those of a kind that it serves no longer."""
    cluster.watches.close()


def is_true(kind: str) -> Callable[[Body], bool]:
    """The object says so of itself."""
    return lambda body: bool(condition(body, kind).get("status") == "True")


async def readiness(address: str) -> tuple[int, str]:
    """Status and words of /readyz."""
    async with aiohttp.ClientSession(f"http://{address}") as session, session.get("/readyz") as answer:
        return answer.status, await answer.text()


async def until_said(address: str, name: str) -> tuple[int, str]:
    """What /readyz says once it names a kind."""
    async with asyncio.timeout(20):
        while name not in (found := await readiness(address))[1]:  # noqa: ASYNC110 - it is asked over HTTP
            await asyncio.sleep(0.1)
    return found


async def test_without_its_definition_a_mapping_is_absent_and_it_comes_back(
    cluster: EmbeddedCluster, operator: OperatorStarter, unused_tcp_port: int
) -> None:
    """Other pods are served meanwhile; /readyz names the kind, until it is there again."""
    cluster.load(*pairs(3))
    cluster.create(mapping())
    address = f"127.0.0.1:{unused_tcp_port}"
    await operator(listen=address, resync_seconds=5.0)
    await cluster.wait_for("DerivedAttribute", lambda body: body.get("status"))

    cluster.delete("CustomResourceDefinition", MAPPINGS)
    end_watches(cluster)
    status, words = await until_said(address, MAPPINGS)
    needs_mapping(cluster, "waits")
    await cluster.wait_for("Pod", waits_for("NoMapping"))
    cluster.create(pod("other"))
    await cluster.wait_for("Pod", running_pod("other"))

    cluster.create(definition(MAPPINGS))
    cluster.create(mapping())

    await cluster.wait_for("Pod", running_pod("waits"))
    assert status == 503
    assert words.startswith(f"{MAPPINGS} is not served in v1alpha1: ")
    assert await readiness(address) == (200, "ok\n")


async def test_a_definition_that_is_absent_at_the_start_may_come_later(
    cluster: EmbeddedCluster, operator: OperatorStarter, unused_tcp_port: int
) -> None:
    """The operator is ready without; what comes later counts."""
    for name in (MAPPINGS, OWNERSHIPS):
        cluster.delete("CustomResourceDefinition", name)
    cluster.load(*pairs())
    address = f"127.0.0.1:{unused_tcp_port}"
    await operator(listen=address)
    assert await readiness(address) == (200, "ok\n")
    needs_mapping(cluster, "waits")
    await cluster.wait_for("Pod", waits_for("NoMapping"))

    for name in (MAPPINGS, OWNERSHIPS):
        cluster.create(definition(name))
    cluster.create(mapping())
    cluster.create(manifest(owned({"driver": DRIVER})))

    await cluster.wait_for("Pod", running_pod("waits"))
    await cluster.wait_for("DeviceOwnership", is_true("Fenced"))


async def test_a_definition_that_is_made_anew_at_once_is_followed(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Nobody saw that it was away: the old objects are gone, the new one counts."""
    cluster.load(*pairs())
    cluster.create(mapping("example.com/other"))
    await operator(resync_seconds=600)

    cluster.delete("CustomResourceDefinition", MAPPINGS)
    cluster.create(definition(MAPPINGS))
    end_watches(cluster)
    cluster.create(mapping())
    needs_mapping(cluster, "waits")

    await cluster.wait_for("Pod", running_pod("waits"), timeout_seconds=20)


async def test_a_version_that_is_served_no_longer_is_as_good_as_absent(
    cluster: EmbeddedCluster, operator: OperatorStarter, unused_tcp_port: int
) -> None:
    """No object was deleted and no watch says a word of it: the lists do."""
    cluster.load(*pairs())
    cluster.create(mapping())
    address = f"127.0.0.1:{unused_tcp_port}"
    await operator(listen=address, resync_seconds=2.0)
    unserved = cluster.get("CustomResourceDefinition", MAPPINGS)
    unserved["spec"]["versions"][0]["served"] = False

    cluster.replace(unserved)
    end_watches(cluster)
    await until_said(address, MAPPINGS)
    needs_mapping(cluster, "waits")
    await cluster.wait_for("Pod", waits_for("NoMapping"), timeout_seconds=20)

    served = cluster.get("CustomResourceDefinition", MAPPINGS)
    served["spec"]["versions"][0]["served"] = True
    cluster.replace(served)

    await cluster.wait_for("Pod", running_pod("waits"), timeout_seconds=20)


async def test_fences_go_with_the_definition_of_ownerships(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """No owner is left: kube-scheduler may use the devices again."""
    cluster.create(manifest(owned({"driver": DRIVER})))
    await operator()
    rule = await cluster.wait_for("DeviceTaintRule", lambda body: body["spec"])

    cluster.delete("CustomResourceDefinition", OWNERSHIPS)
    end_watches(cluster)

    await cluster.wait_gone("DeviceTaintRule", rule["metadata"]["name"])


async def test_an_api_server_without_taint_rules_is_noticed(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """It was started anew with the gate off, and later on: the ownership says so, and is fenced again."""
    cluster.create(manifest(owned({"driver": DRIVER})))
    await operator(resync_seconds=2.0)
    await cluster.wait_for("DeviceOwnership", is_true("Fenced"))
    rules = cluster.kinds.named("DeviceTaintRule")
    for rule in cluster.objects("DeviceTaintRule"):
        cluster.delete("DeviceTaintRule", rule["metadata"]["name"])

    cluster.kinds.leave_out(rules)
    end_watches(cluster)
    lost = await cluster.wait_for(
        "DeviceOwnership", lambda body: condition(body, "Fenced").get("status") == "False", timeout_seconds=20
    )
    cluster.kinds.take_up(rules)

    assert condition(lost, "Fenced")["reason"]
    await cluster.wait_for("DeviceOwnership", is_true("Fenced"), timeout_seconds=20)


async def test_a_404_of_a_kind_that_is_served_changes_nothing(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """An API server that has just started does not know of a definition yet: the mapping still counts."""
    cluster.load(*pairs())
    cluster.create(mapping())
    await operator(resync_seconds=1.0)
    cluster.faults.fail("list", "derivedattributes", status=404, times=3)
    cluster.faults.fail("watch", "derivedattributes", status=404, times=3)
    refused = cluster.faults.hold("list", "derivedattributes", times=1)
    end_watches(cluster)
    await refused.arrived.wait()
    refused.release()

    needs_mapping(cluster, "mine")

    await cluster.wait_for("Pod", running_pod("mine"))


async def test_kopf_run_goes_on_without_the_definitions(cluster: EmbeddedCluster) -> None:
    """Both are deleted under `kopf run`: the process serves the next pod."""
    cluster.load(*pairs())
    async with started(*KOPF_RUN) as operator:
        for name in (MAPPINGS, OWNERSHIPS):
            cluster.delete("CustomResourceDefinition", name)
        end_watches(cluster)
        await operator.event("kind_not_served")
        await operator.event("kind_not_served")
        cluster.create(pod())
        await cluster.wait_for("Pod", running_pod("p"), timeout_seconds=30)

        code, _ = await operator.stop()

    assert code == 0
