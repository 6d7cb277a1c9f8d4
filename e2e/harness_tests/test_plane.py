"""The control plane is real, and does what tests of the operator rely on."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest

from e2e.harness import objects
from e2e.harness.cluster import OPERATOR_USER, Cluster, ClusterFactory
from e2e.harness.errors import ApiError, NotSeen, ProgramEnded
from e2e.harness.kube import allocated, condition, running
from e2e.harness.operators import Operator
from e2e.harness.programs import Options

GPU = "gpu.example.com"


async def one_gpu(cluster: Cluster, node: str = "n1", count: int = 1) -> None:
    """A node with GPUs that publish where they sit."""
    await cluster.add_node(node)
    devices = [objects.device(f"gpu-{number}", numa=number % 2) for number in range(count)]
    await cluster.apply(objects.resource_slice(node, GPU, devices), objects.device_class(GPU))


async def plain_pod(cluster: Cluster, name: str = "plain") -> str:
    """A pod that kube-scheduler serves alone, in a namespace of its own."""
    namespace = await cluster.namespace()
    await cluster.apply(objects.template("gpu", objects.claim_spec({"gpu": GPU})), namespace=namespace)
    await cluster.kube.create(objects.pod(name, templates={"gpu": "gpu"}, gates=()), namespace)
    return namespace


async def test_a_pod_with_a_device_runs(cluster: Cluster) -> None:
    """Controller manager, scheduler and KWOK bring a pod with a claim template to Running."""
    await one_gpu(cluster)

    namespace = await plain_pod(cluster)

    pod = await cluster.kube.wait_for("Pod", "plain", running, namespace)
    assert pod["spec"]["nodeName"] == "n1"
    claims = await cluster.kube.list("ResourceClaim", namespace)
    assert [allocated(claim) for claim in claims] == [True]


async def test_what_one_test_made_is_gone_in_the_next(cluster: Cluster) -> None:
    """A cluster starts empty, whatever ran before."""
    for kind in ("Node", "ResourceSlice", "DeviceClass", "DerivedAttribute", "ResourceClaim"):
        assert await cluster.kube.list(kind) == ()


async def test_a_worlds_slices_are_published_by_the_node_that_a_test_names(cluster: Cluster) -> None:
    """The slices of the test data stand on a node that the test chose, with a class per driver."""
    await cluster.add_world(objects.AZURE_GB300, "gb1")

    slices = await cluster.kube.list("ResourceSlice")
    assert {item["spec"]["nodeName"] for item in slices} == {"gb1"}
    drivers = {item["spec"]["driver"] for item in slices}
    assert {item["metadata"]["name"] for item in await cluster.kube.list("DeviceClass")} == drivers


async def test_a_new_node_takes_pods(cluster: Cluster) -> None:
    """The taint that admission gives to new nodes is gone, those of the test stay."""
    taint = {"key": "special", "value": "yes", "effect": "NoSchedule"}

    await cluster.add_node("plain")
    tainted = await cluster.add_node("tainted", taints=[taint])

    assert (await cluster.kube.get("Node", "plain"))["spec"].get("taints") is None
    assert tainted["spec"]["taints"] == [taint]


@pytest.mark.parametrize("name", ["apiserver", "controller_manager", "scheduler"])
async def test_a_program_that_was_killed_does_its_work_again(cluster: Cluster, name: str) -> None:
    """Each program comes back on its port with the state that etcd keeps."""
    await one_gpu(cluster)

    await getattr(cluster.plane, name).restart()

    namespace = await plain_pod(cluster)
    await cluster.kube.wait_for("Pod", "plain", running, namespace)


async def test_history_is_gone_after_compaction_and_restart(cluster: Cluster) -> None:
    """A watch from before the compaction is answered with 410 once the API server has no cache of it."""
    before = (await cluster.kube.listing("Pod")).resource_version
    namespace = await plain_pod(cluster)
    await cluster.kube.wait_for("Pod", "plain", lambda pod: bool(condition(pod, "PodScheduled")), namespace)

    await cluster.plane.compact()
    await cluster.plane.apiserver.restart()

    with pytest.raises(ApiError) as refusal:
        await anext(cluster.kube.watch("Pod", since=before))
    assert refusal.value.status == 410


async def test_a_service_account_may_do_what_its_role_says(cluster: Cluster) -> None:
    """RBAC applies to the token of an account: what the chart does not grant is refused."""
    token = await cluster.plane.account_token("dovetail-system", "dovetail")
    async with cluster.plane.client(token) as client:
        assert await client.list("Node") == ()
        with pytest.raises(ApiError) as refusal:
            await client.list("Secret")

    assert refusal.value.status == 403


async def test_the_audit_log_has_each_write_of_an_account(cluster: Cluster) -> None:
    """Writes are told by user, with the refused ones; reads are not told."""
    mark = cluster.plane.audit.mark()
    token = await cluster.plane.account_token("dovetail-system", "dovetail")
    async with cluster.plane.client(token) as client:
        await client.list("Pod")
        with pytest.raises(ApiError):
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "no"}})

    writes = await cluster.plane.audit.seen(OPERATOR_USER, bool, since=mark)

    assert [(write.verb, write.resource, write.code) for write in writes] == [("create", "namespaces", 403)]


async def test_a_wait_that_fails_says_what_was_seen(cluster: Cluster) -> None:
    """The error of a wait shows the object as it was last."""
    await cluster.add_node("lonely")

    with pytest.raises(NotSeen, match="lonely"):
        await cluster.kube.wait_for("Node", "lonely", lambda _: False, within=0.5)


async def test_a_bind_waits_for_the_test_that_holds_it(cluster: Cluster) -> None:
    """A webhook sees the bind and keeps the pod unbound until it is let go."""
    await one_gpu(cluster)
    webhook = await cluster.webhook("pods/binding")
    webhook.hold()

    namespace = await plain_pod(cluster)
    await webhook.arrived(lambda request: request["namespace"] == namespace)

    pod = await cluster.kube.get("Pod", "plain", namespace)
    assert "nodeName" not in pod["spec"]
    webhook.release()
    await cluster.kube.wait_for("Pod", "plain", running, namespace)


async def test_a_cluster_with_gates_of_its_own_has_them(cluster_with: ClusterFactory) -> None:
    """Native derived attributes are kept and served by kube-scheduler where their gate is on."""
    gates = {"DRADerivedAttributes": True, "DRAListTypeAttributes": True}
    cluster = await cluster_with(Options(gates=gates, audit=False))
    await one_gpu(cluster, count=2)
    derived = {"name": "derived/numa", "expression": f'device.attributes["{GPU}"].numa'}
    wish = {"deviceClassName": GPU, "derivedAttributes": [derived]}
    spec = objects.claim_spec({"a": wish}, match="derived/numa")
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.claim("mine", spec), namespace)

    await cluster.kube.create(objects.pod("p", claims={"mine": "mine"}, gates=()), namespace)

    claim = await cluster.kube.wait_for("ResourceClaim", "mine", allocated, namespace)
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["derivedAttributes"] == [derived]


async def test_a_controller_can_be_left_out(cluster_with: ClusterFactory) -> None:
    """Without the claim controller nobody makes a claim from a template."""
    cluster = await cluster_with(Options(audit=False).without("resourceclaim-controller"))
    await one_gpu(cluster)

    namespace = await plain_pod(cluster)

    # The other controllers of the same program work: this one is known to have had its chance.
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    await cluster.kube.create(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": job}, namespace
    )
    await cluster.kube.wait_all("Pod", lambda pods: len(pods) == 2, namespace)
    assert await cluster.kube.list("ResourceClaim", namespace) == ()


def fake_operator(cluster: Cluster, script: str) -> Operator:
    """A program that prints what the script prints."""
    log = cluster.plane.log("fake-operator")
    command = (sys.executable, "-u", "-c", script)
    mine = Operator("fake", cluster.plane.kubeconfig, log, settings={}, command=command, arguments=())
    cluster.operators.append(mine)
    return mine


SLEEPER = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print('{"event": "operator_ready"}')
print('not JSON')
time.sleep(60)
"""


TICKER = """
import time
print('{"event": "operator_ready"}')
while True:
    print('{"event": "tick"}')
    time.sleep(0.01)
"""


async def test_events_of_an_operator_are_read_as_they_come(cluster: Cluster) -> None:
    """Start returns at the ready event, and each run has its own."""
    operator = fake_operator(cluster, SLEEPER)
    await operator.start()
    assert await operator.stop() < 5

    await operator.start()
    await operator.kill()

    assert [event.get("event") for event in operator.events if "event" in event] == ["operator_ready"] * 2


async def test_an_operator_that_ends_too_early_is_told_with_its_log(cluster: Cluster) -> None:
    """A crash at start is an error at once, with the last words."""
    operator = fake_operator(cluster, "raise SystemExit('last words')")
    start = time.monotonic()

    with pytest.raises(ProgramEnded, match="last words"):
        await operator.start()

    assert time.monotonic() - start < 10


async def test_a_frozen_operator_says_nothing_until_it_wakes(cluster: Cluster) -> None:
    """SIGSTOP holds every thread, SIGCONT lets it go on."""
    operator = fake_operator(cluster, TICKER)
    await operator.start()
    await operator.event("tick")

    operator.freeze()
    await asyncio.sleep(0.2)
    frozen = len(operator.events)
    with pytest.raises(NotSeen):
        await operator.event("tick", after=frozen, within=0.3)
    operator.wake()

    await operator.event("tick", after=frozen)
