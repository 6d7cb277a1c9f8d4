"""Beside kube-scheduler on the same devices: what both may take at the same moment (R1, R2, V-21)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic

from e2e.harness import Cluster, Object, Operator, Webhook, allocated, objects, running
from e2e.tests.claims import devices, gated, held_twice, reserved_for, waits
from e2e.tests.test_ownership import (
    DRIVER,
    MAPPING,
    audit,
    fence,
    plain_pod,
    prepare,
    unschedulable,
)

SCHEDULER = "system:kube-scheduler"
QUICK = {"lease_seconds": 3, "claim_generation": "never"}
PATIENT = {"claim_generation": "never"}
"""A burst on a busy machine must not cost the operator its Lease."""

OURS_BY_CONFIGURATION = {
    "opaque": {
        "driver": "dovetail.dev",
        "parameters": {"apiVersion": "dovetail.dev/v1alpha1", "kind": "ClaimParameters"},
    }
}


def ours(name: str) -> Object:
    """A gated pod with a claim of ours."""
    return objects.pod(name, templates={"gpu": "ours"})


def both(name: str) -> Object:
    """A claim that kube-scheduler and Dovetail can both allocate (V-22)."""
    return objects.claim(name, objects.claim_spec({"gpu": DRIVER}, config=[OURS_BY_CONFIGURATION]))


async def scheduler_held(cluster: Cluster, resource: str) -> Webhook:
    """Hold the writes of kube-scheduler to a resource, and nobody else's."""
    webhook = await cluster.webhook(resource, "UPDATE")
    condition = {"name": "scheduler", "expression": f"request.userInfo.username == '{SCHEDULER}'"}
    path = "/webhooks/0/matchConditions"
    await cluster.kube.patch(
        "ValidatingWebhookConfiguration",
        webhook.name,
        [{"op": "add", "path": path, "value": [condition]}],
        how="json",
    )
    webhook.hold()
    return webhook


async def claim_of(cluster: Cluster, pod: str, namespace: str) -> Object:
    """The claim that was made for a pod, once it has its devices."""

    def is_mine(claim: Object) -> bool:
        owners = claim["metadata"].get("ownerReferences") or ()
        return any(owner["name"] == pod for owner in owners) and allocated(claim)

    found = await cluster.kube.wait_all("ResourceClaim", lambda claims: any(map(is_mine, claims)), namespace)
    return next(filter(is_mine, found))


async def beaten_by_kube_scheduler(cluster: Cluster, operator: Operator, namespace: str) -> None:
    """Pod `ours` gets the only device, then kube-scheduler writes that `theirs` has it: `ours` gives way.

    `theirs` runs at the end, and `ours` waits behind its gate.
    """
    webhook = await scheduler_held(cluster, "resourceclaims/status")
    await cluster.kube.create(plain_pod("theirs"), namespace)
    await webhook.arrived(lambda request: request["userInfo"]["username"] == SCHEDULER)

    await cluster.kube.create(ours("ours"), namespace)
    await claim_of(cluster, "ours", namespace)
    assert gated(await cluster.kube.get("Pod", "ours", namespace))
    webhook.release()

    await cluster.kube.wait_for("Pod", "theirs", running, namespace)
    await operator.event("device_clash", lambda event: event["gated"])
    waiting = await cluster.kube.wait_for("Pod", "ours", waits("NothingFits"), namespace)
    assert gated(waiting)


async def test_what_kube_scheduler_has_in_hand_is_left_to_it(cluster: Cluster) -> None:
    """Its write comes after ours, for the same device: our gated pod gives way (R2 a, R-A15).

    kube-scheduler then thinks that its device is free: a taint keeps it from giving the device to a third.
    """
    namespace = await prepare(cluster, devices=1)
    operator = await cluster.operator(**QUICK)

    await beaten_by_kube_scheduler(cluster, operator, namespace)

    await cluster.kube.create(plain_pod("third"), namespace)
    await cluster.kube.wait_for("Pod", "third", unschedulable, namespace)
    assert held_twice(await cluster.kube.list("ResourceClaim", namespace)) == []
    await cluster.kube.delete("Pod", "third", namespace)
    await cluster.kube.delete("Pod", "theirs", namespace)
    await cluster.kube.wait_for("Pod", "ours", running, namespace)
    await cluster.kube.wait_all("DeviceTaintRule", lambda rules: not rules)


async def test_what_dovetail_has_written_kube_scheduler_leaves_alone(cluster: Cluster) -> None:
    """The other order: our allocation is in kube-scheduler's picture when it looks (R2 b)."""
    namespace = await prepare(cluster, devices=1)
    await cluster.operator(**QUICK)
    await cluster.kube.create(ours("ours"), namespace)
    await cluster.kube.wait_for("Pod", "ours", running, namespace)

    await cluster.kube.create(plain_pod("theirs"), namespace)

    await cluster.kube.wait_for("Pod", "theirs", unschedulable, namespace)
    assert held_twice(await cluster.kube.list("ResourceClaim", namespace)) == []


async def seconds_until_ungated(cluster: Cluster, name: str, namespace: str) -> float:
    """How long a pod that has its devices stays gated."""
    await claim_of(cluster, name, namespace)
    began = monotonic()
    await cluster.kube.wait_for("Pod", name, lambda pod: not gated(pod), namespace)
    return monotonic() - began


async def test_a_fence_saves_the_wait(cluster: Cluster) -> None:
    """With a pending plain pod about, a gate stays shut for some seconds; behind a fence it opens at once."""
    namespace = await prepare(cluster, devices=3)
    impossible = {"deviceClassName": DRIVER, "count": 32}
    await cluster.apply(
        objects.template("never", objects.claim_spec({"gpu": impossible})), namespace=namespace
    )
    await cluster.kube.create(objects.pod("theirs", templates={"gpu": "never"}, gates=()), namespace)
    await cluster.kube.wait_for("Pod", "theirs", unschedulable, namespace)
    await cluster.operator(**QUICK)
    await cluster.kube.create(ours("open"), namespace)
    in_the_open = await seconds_until_ungated(cluster, "open", namespace)

    await fence(cluster)
    await cluster.kube.create(ours("early"), namespace)
    behind_a_new_fence = await seconds_until_ungated(cluster, "early", namespace)
    await cluster.kube.create(ours("late"), namespace)
    fenced = await seconds_until_ungated(cluster, "late", namespace)

    assert 3 < in_the_open < 8
    assert 2 < behind_a_new_fence < 8
    assert fenced < 2


async def test_the_same_claim_dovetail_first(cluster: Cluster) -> None:
    """kube-scheduler's write comes after ours to the same claim: it is refused, and ours stands (R1)."""
    namespace = await prepare(cluster)
    proxy = await cluster.proxy()
    operator = await cluster.operator(server=proxy.url, **QUICK)
    webhook = await scheduler_held(cluster, "resourceclaims/status")
    await cluster.kube.create(both("shared"), namespace)
    late = proxy.delay(3, method="PUT", path="/resourceclaims/shared/status")
    await cluster.kube.create(objects.pod("gated", claims={"gpu": "shared"}), namespace)
    await proxy.struck(late)

    await cluster.kube.create(objects.pod("open", claims={"gpu": "shared"}, gates=()), namespace)
    await webhook.arrived(lambda request: request["userInfo"]["username"] == SCHEDULER)
    claim = await cluster.kube.wait_for("ResourceClaim", "shared", allocated, namespace)
    webhook.release()

    await both_run_on(cluster, namespace, claim)
    await operator.event("pod_allocated")


async def test_the_same_claim_kube_scheduler_first(cluster: Cluster) -> None:
    """Our write comes after kube-scheduler's: it is a conflict, and the pod joins what is there (R1)."""
    namespace = await prepare(cluster)
    proxy = await cluster.proxy()
    await cluster.operator(server=proxy.url, **QUICK)
    await cluster.kube.create(both("shared"), namespace)
    late = proxy.delay(3, method="PUT", path="/resourceclaims/shared/status")
    await cluster.kube.create(objects.pod("gated", claims={"gpu": "shared"}), namespace)
    await proxy.struck(late)

    await cluster.kube.create(objects.pod("open", claims={"gpu": "shared"}, gates=()), namespace)

    claim = await cluster.kube.wait_for("ResourceClaim", "shared", allocated, namespace)
    await proxy.passed(lambda seen: seen.method == "PUT" and seen.status == 409)
    await both_run_on(cluster, namespace, claim)


async def both_run_on(cluster: Cluster, namespace: str, claim: Object) -> None:
    """Both pods run, as consumers of the claim, which has the devices that it had."""
    pods = [
        await cluster.kube.wait_for("Pod", name, running, namespace, within=60) for name in ("open", "gated")
    ]
    now = await cluster.kube.get("ResourceClaim", "shared", namespace)
    assert devices(now) == devices(claim)
    assert sorted(reserved_for(now)) == sorted(pod["metadata"]["uid"] for pod in pods)


async def test_bursts_of_both_without_a_fence(cluster: Cluster) -> None:
    """150 plain pods and 150 of ours on 200 devices, all at once: what clashes is backed out or reported."""
    namespace = await prepare(cluster, nodes=20, devices=10)
    operator = await cluster.operator(audit_seconds=1, **PATIENT)
    burst = [pod for number in range(150) for pod in (plain_pod(f"plain-{number}"), ours(f"ours-{number}"))]

    await cluster.create_all(burst, namespace)
    await cluster.kube.wait_all("Pod", is_over, namespace, within=120, what="200 running pods, the rest idle")

    claims = await cluster.kube.list("ResourceClaim", namespace)
    twice = held_twice(claims)
    holders = list(filter(allocated, claims))
    assert len({device for claim in holders for device in devices(claim)}) == len(holders) - len(twice) == 200
    await assert_reported(cluster, operator, claims, twice)
    for name in ("plain", "ours"):
        pods = [pod for pod in await cluster.kube.list("Pod", namespace) if running(pod)]
        assert any(pod["metadata"]["name"].startswith(name) for pod in pods)


def is_over(pods: Sequence[Object]) -> bool:
    """All devices are in use, and every pod of ours runs or has been told that nothing is left."""
    mine = [pod for pod in pods if pod["metadata"]["name"].startswith("ours")]
    return sum(map(running, pods)) >= 200 and all(running(pod) or waits("NothingFits")(pod) for pod in mine)


async def assert_reported(
    cluster: Cluster, operator: Operator, claims: Sequence[Object], twice: list[tuple[str, str, str]]
) -> None:
    """Each device that is held twice is held by kube-scheduler's choice and ours, and the audit says so."""
    for device in twice:
        holders = [claim for claim in claims if allocated(claim) and device in devices(claim)]
        alignments = ["dovetail.dev/alignment" in claim["metadata"]["annotations"] for claim in holders]
        assert sorted(alignments) == [False, True]
    found = (await audit(cluster))["findings"]
    assert sorted(finding["device"]["device"] for finding in found) == sorted(name for _, _, name in twice)
    if twice:
        await operator.event("device_clash", lambda event: not event["gated"])


async def test_a_burst_with_a_late_watch(cluster: Cluster) -> None:
    """Watches are up to two seconds late: 800 claims get 800 devices of 100 nodes, and one waits (R-A14)."""
    await cluster.add_nodes([f"n{number}" for number in range(100)])
    for number in range(100):
        found = [objects.device(f"d{index}", numa=index % 2) for index in range(8)]
        await cluster.apply(objects.resource_slice(f"n{number}", DRIVER, found))
    await cluster.apply(objects.device_class(DRIVER), MAPPING)
    namespace = await cluster.namespace()
    spec = objects.claim_spec({"gpu": DRIVER}, match="dovetail.example/numa")
    await cluster.apply(objects.template("ours", spec), namespace=namespace)
    proxy = await cluster.proxy()
    await cluster.operator(server=proxy.url, **PATIENT)

    async def stutter() -> None:
        while True:
            proxy.silence()
            await asyncio.sleep(2)
            proxy.talk()
            await asyncio.sleep(0.1)

    stuttering = asyncio.create_task(stutter())
    try:
        await cluster.create_all([ours(f"p{number}") for number in range(801)], namespace)
        pods = await cluster.kube.wait_all(
            "Pod", lambda pods: sum(map(running, pods)) == 800, namespace, within=150, what="800 running pods"
        )
        (last,) = [pod["metadata"]["name"] for pod in pods if not running(pod)]
        await cluster.kube.wait_for("Pod", last, waits("NothingFits"), namespace)
    finally:
        stuttering.cancel()
        proxy.talk()
    claims = await cluster.kube.list("ResourceClaim", namespace)
    assert held_twice(claims) == []
    assert len([claim for claim in claims if allocated(claim)]) == 800
