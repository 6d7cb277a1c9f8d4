"""What failed once is tried again: no refusal is remembered longer than it lasts."""

from pathlib import Path
from typing import Any

import aiohttp
import pytest
from typing_extensions import override

from dovetail.cluster.reader import Reader
from dovetail.core.features import Features
from dovetail.core.planner import PlanSettings
from dovetail.core.world import World
from dovetail.embedded import EmbeddedCluster
from dovetail.errors import Unavailable
from dovetail.services import dual_modes, ownership, quarantine, workshop
from dovetail.services.allocation import Dropped
from dovetail.services.gates_off import GatesOff
from dovetail.services.mind import Limits, Mind
from dovetail.services.settings import Settings
from dovetail.services.startup import Cluster, examine
from dovetail.services.survey import Survey
from tests.audit.cluster import DRIVER
from tests.audit.cluster import ownership as owned
from tests.operator.conftest import OperatorStarter
from tests.operator.test_dual_mode import is_told_of, plugged
from tests.operator.test_gates_off import world
from tests.operator.test_guard import condition, manifest
from tests.operator.worlds import Body, claim, device_class, gpus, node, pairs, plain, pod, running_pod
from tests.support.servers import connected

SHARED = "DRAConsumableCapacity"


def clash(cluster: EmbeddedCluster) -> None:
    """Two claims of kube-scheduler's with one device."""
    cluster.load(node(), device_class("gpu", "gpu.nvidia.com"), gpus(0))
    result = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}
    for name in ("a", "b"):
        body = cluster.create(claim(name, plain("gpu")))
        status = {"allocation": {"devices": {"results": [result]}}}
        cluster.replace(body | {"status": status}, status=True)


async def test_quarantine_works_as_soon_as_the_right_is_there(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A refused rule is written when the right comes back, without a restart."""
    clash(bare)
    bare.create(manifest(owned({"driver": "other.example.com"})))
    bare.faults.deny("create", "devicetaintrules", "resource.k8s.io")
    await operator(resync_seconds=1.0)
    await bare.wait_for("DeviceOwnership", lambda body: condition(body, "Permitted").get("status") == "False")
    assert not bare.objects("DeviceTaintRule")

    bare.faults.clear()

    await bare.wait_for("DeviceTaintRule", lambda body: body["spec"]["taint"]["key"] == "dovetail.dev/clash")


async def test_a_rule_that_a_policy_refused_is_sent_again(
    bare: EmbeddedCluster, operator: OperatorStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No right was missing, so that nothing tells when the policy is gone: it is tried now and then."""
    monkeypatch.setattr(quarantine, "REFUSED_SECONDS", 0.2)
    clash(bare)
    bare.faults.fail("POST", "devicetaintrules", status=422, times=2)

    await operator()

    await bare.wait_for("DeviceTaintRule", lambda body: body["spec"]["taint"]["key"] == "dovetail.dev/clash")
    writes = bare.writes("devicetaintrules")
    assert [request.status for request in writes[:-1]] == [422, 422]


async def test_a_fence_that_a_policy_refused_is_built_later(
    bare: EmbeddedCluster, operator: OperatorStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status says that it was refused; nothing in the cluster changes until the next try."""
    monkeypatch.setattr(ownership, "REFUSED_SECONDS", 0.5)
    bare.create(manifest(owned({"driver": DRIVER})))
    bare.faults.fail("POST", "devicetaintrules", status=403)
    await operator()

    await bare.wait_for("DeviceOwnership", lambda body: condition(body, "Fenced").get("status") == "True")


def mapping(name: str) -> Body:
    """A mapping that holds."""
    return {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "DerivedAttribute",
        "metadata": {"name": name},
        "spec": {"attribute": f"example.com/{name}", "rules": [{"driver": DRIVER, "expression": "1"}]},
    }


async def test_a_mapping_whose_status_is_refused_keeps_no_other_waiting(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The first one is refused: the second is written next."""
    bare.create(mapping("first"))
    bare.create(mapping("second"))
    bare.faults.fail("PATCH", "derivedattributes/status", status=403)

    await operator()

    await bare.wait_for("DerivedAttribute", lambda body: body.get("status"))
    writes = bare.writes("derivedattributes/status")
    assert [request.name for request in writes[:2]] == ["first", "second"]


async def test_a_write_without_an_answer_does_not_outlive_its_pod(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The pod is deleted before anybody found out: its claim, and its devices, go to the next pod."""
    cluster.load(*pairs())
    await operator()
    cluster.create(claim("mine"))
    cluster.faults.fail("PUT", "resourceclaims/status", status=500, times=100)
    cluster.faults.fail("get", "resourceclaims", status=500, times=100)
    cluster.create(pod("first", claim="mine"))
    await cluster.wait_for("Pod", lambda _: cluster.writes("resourceclaims/status"))

    cluster.delete("Pod", "first", now=True)
    cluster.faults.clear()
    cluster.create(pod("next", claim="mine"))

    await cluster.wait_for("Pod", running_pod("next"), timeout_seconds=20)


async def test_a_node_is_told_of_although_the_first_look_failed(
    cluster: EmbeddedCluster, operator: OperatorStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was to be looked at is looked at again."""
    look, failures = dual_modes._dual_modes, [RuntimeError("not today")]

    def fail_first(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return look(*arguments)

    monkeypatch.setattr(dual_modes, "_dual_modes", fail_first)
    cluster.load(*plugged())

    await operator()

    await cluster.wait_for("Event", is_told_of("n1"))
    assert not failures


async def test_a_gate_that_is_on_again_is_used_again(
    cluster: EmbeddedCluster,
    operator: OperatorStarter,
    monkeypatch: pytest.MonkeyPatch,
    unused_tcp_port: int,
) -> None:
    """The API server dropped shares until it was started anew: then a second pod gets its share."""
    monkeypatch.setattr(workshop, "RESYNCS_PER_SURVEY", 1)
    cluster.load(*world())
    cluster.faults.drop_fields("shareID", "consumedCapacity")
    address = f"127.0.0.1:{unused_tcp_port}"
    await operator(listen=address, resync_seconds=1.0, release="always")
    cluster.create(mapping("any"))
    cluster.create(pod("p1"))
    await cluster.wait_for("Event", lambda body: body["reason"] == "FeatureGateOff")
    cluster.delete("Pod", "p1", now=True)
    await cluster.wait_gone("Pod", "p1")

    cluster.faults.clear()

    await cluster.wait_for(
        "DerivedAttribute", lambda body: condition(body, "Permitted").get("status") == "True"
    )
    for name in ("p2", "p3"):
        cluster.create(pod(name))
    for name in ("p2", "p3"):
        await cluster.wait_for("Pod", running_pod(name), timeout_seconds=30)
    async with aiohttp.ClientSession(f"http://{address}") as session, session.get("/readyz") as answer:
        assert (answer.status, await answer.text()) == (200, "ok\n")


class Gates:
    """A mind, what it takes for on, and what is said of gates."""

    def __init__(self) -> None:
        self.said: list[tuple[str, bool]] = []
        self.mind = Mind(
            World(Features()),
            plan=PlanSettings(),
            limits=Limits(1000, 1.0),
            now=lambda: "2026-01-01T00:00:00Z",
        )
        self.off = GatesOff(
            mind=self.mind, features=Features(), found=lambda gate, is_off: self.said.append((gate, is_off))
        )

    async def are_shares_on(self) -> bool:
        """Whether decisions rely on shares."""
        return await self.mind.ask(lambda world: world.features.consumable_capacity)

    async def survey(self, features: Features) -> None:
        """An examination found this."""
        await self.off.survey(features)

    async def surveys_until_on(self) -> int:
        """How many examinations pass before the gate is tried again."""
        count = 0
        while not await self.are_shares_on():
            await self.off.survey(Features())
            count += 1
        return count


async def test_a_gate_that_stays_off_is_tried_ever_more_rarely() -> None:
    """Twice as long each time, to a limit; each time it is said."""
    gates = Gates()
    lost = [Dropped(("default", "c"), ("shareID",))]
    found = []
    for _ in range(8):
        await gates.off.learn(lost)
        found.append(await gates.surveys_until_on())
    gates.mind.close()

    assert found == [1, 2, 4, 8, 16, 32, 32, 32]
    assert gates.said == [(SHARED, True), (SHARED, False)] * 8


async def test_gates_follow_an_api_server_that_is_started_anew(bare: EmbeddedCluster, tmp_path: Path) -> None:
    """What its metrics say counts; metrics that cannot be read for once change nothing."""

    class Telling(Reader):
        """A server with metrics."""

        text = f'kubernetes_feature_enabled{{name="{SHARED}",stage="BETA"}} 1'

        @override
        async def read_text(self, path: str) -> str:
            if not self.text:
                raise Unavailable("GET /metrics", "busy")
            return self.text

    gates = Gates()
    async with connected() as wire:
        reader = Telling(wire)
        first: Cluster = await examine(reader, Settings(listen=""))
        survey = Survey(
            examine=lambda: examine(reader, Settings(listen="")),
            cluster=first,
            found=gates.survey,
            seconds=600,
        )
        heard = []
        for text in (reader.text, reader.text.replace("} 1", "} 0"), ""):
            reader.text = text
            await survey.look()
            heard.append(await gates.are_shares_on())
    gates.mind.close()

    assert first.features.consumable_capacity
    assert heard == [True, False, False]
