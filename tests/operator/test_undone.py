"""Whatever others undo again and again costs few writes, whoever undoes it, and however (R-B11)."""

from collections.abc import Callable
from math import ceil
from typing import Any

import pytest
import structlog

from dovetail.api.kinds import CLAIM
from dovetail.core.decisions import Reserve
from dovetail.embedded import EmbeddedCluster
from dovetail.embedded.answers import StatusError
from dovetail.embedded.patching import json_patch, merge_patch
from dovetail.handlers.context import Context
from dovetail.services import serving
from dovetail.services.attempts import LONGEST_PAUSE_SECONDS, REFUSED, Attempts, of_needs
from dovetail.services.claims import consumers, joining
from dovetail.services.mind import Verdict
from dovetail.services.picture import Picture
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import Body, bind, claim, is_gated, pairs, pod, waits_for

LIMIT = 3
MOST_WRITES = 4 * LIMIT
"""Two writes to give devices, two to take them back."""

BOUND = 40
"""Where a test stops anyway: an operator that goes on for so long never ends."""

MINE = ("default", "mine")

Undo = Callable[[EmbeddedCluster, Body], Any]


def has_devices(body: Body) -> bool:
    """The claim is allocated."""
    return "allocation" in (body.get("status") or {})


def deallocate(cluster: EmbeddedCluster, body: Body) -> None:
    """As kube-scheduler does for a pod that fits nowhere."""
    cluster.replace(body | {"status": {}}, status=True)


def strip(cluster: EmbeddedCluster, body: Body) -> None:
    """As kube-controller-manager does when the last consumer is gone: the finalizer goes as well."""
    deallocate(cluster, body)
    cluster.patch("ResourceClaim", body["metadata"]["name"], {"metadata": {"finalizers": None}})


def forget(cluster: EmbeddedCluster, body: Body) -> None:
    """A user takes the annotation away besides."""
    strip(cluster, body)
    cluster.patch("ResourceClaim", body["metadata"]["name"], {"metadata": {"annotations": None}})


def make_anew(cluster: EmbeddedCluster, body: Body) -> None:
    """A user deletes the claim and makes it again under its name."""
    strip(cluster, body)
    cluster.delete("ResourceClaim", "mine")
    cluster.create(claim("mine"))


def replace_pod(cluster: EmbeddedCluster, body: Body) -> None:
    """A controller makes the pod again under its name, with its gate."""
    cluster.delete("Pod", "p", now=True)
    deallocate(cluster, body)
    cluster.create(pod(claim="mine"))


def pass_on(cluster: EmbeddedCluster, body: Body) -> None:
    """Another pod, of another name, comes for the same claim."""
    for old in cluster.objects("Pod"):
        cluster.delete("Pod", old["metadata"]["name"], now=True)
    deallocate(cluster, body)
    cluster.create(pod(f"p{body['metadata']['resourceVersion']}", claim="mine"))


async def undo_again_and_again(cluster: EmbeddedCluster, predicate: Any, undo: Undo, kind: str) -> int:
    """Undo what the operator does until it does it no more; how often that was."""
    for times in range(BOUND):
        try:
            body = await cluster.wait_for(kind, predicate, timeout_seconds=2.5)
        except TimeoutError:
            return times
        undo(cluster, body)
    return BOUND


def writes_to_claims(cluster: EmbeddedCluster) -> int:
    """The operator's, refused ones included."""
    ours = [request for request in cluster.writes() if request.user_agent == "dovetail"]
    return sum(request.resource.startswith("resourceclaims") for request in ours)


def refused_attempts(cluster: EmbeddedCluster) -> int:
    """What attempts may count that lost a race: to whoever undoes, or to the release of a pod."""
    ours = [request for request in cluster.writes() if request.user_agent == "dovetail"]
    refused = sum(request.status >= 400 and request.resource.startswith("resourceclaims") for request in ours)
    return ceil(refused * REFUSED)


@pytest.mark.parametrize("gates", [("dovetail.dev/allocation",), ()], ids=["gated", "ungated"])
@pytest.mark.parametrize("undo", [deallocate, strip, forget, make_anew, replace_pod, pass_on])
async def test_devices_that_others_take_are_given_a_few_times(
    bare: EmbeddedCluster, operator: OperatorStarter, undo: Undo, gates: tuple[str, ...]
) -> None:
    """A claim counts by its name, whatever becomes of it and of the pods that want it."""
    bare.load(*pairs())
    await operator(attempts_per_minute=LIMIT, avoid_seconds=0)
    bare.create(claim("mine"))
    bare.create(pod(claim="mine", gates=gates))

    times = await undo_again_and_again(bare, has_devices, undo, "ResourceClaim")

    assert LIMIT - refused_attempts(bare) <= times <= LIMIT
    assert writes_to_claims(bare) <= MOST_WRITES


async def test_devices_of_a_bound_pod_are_given_a_few_times(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """That the pod has its node ends nothing: somebody takes its devices again and again."""
    bare.load(*pairs())
    await operator(attempts_per_minute=LIMIT)
    bare.create(claim("mine"))
    bare.create(pod(claim="mine", gates=(), nodeName="n1"))

    assert await undo_again_and_again(bare, has_devices, deallocate, "ResourceClaim") == LIMIT
    assert writes_to_claims(bare) <= MOST_WRITES


async def test_a_reservation_of_a_bound_pod_is_restored_a_few_times(
    bare: EmbeddedCluster, operator: OperatorStarter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody takes it away each time."""
    monkeypatch.setattr(serving, "RESTORE_AFTER_SECONDS", 0.05)
    bare.load(*pairs())
    await operator(attempts_per_minute=LIMIT)
    bare.create(claim("mine"))
    bare.create(pod(claim="mine"))
    await bare.wait_for("Pod", lambda body: not is_gated(body))
    bind(bare)

    def unreserve(cluster: EmbeddedCluster, body: Body) -> None:
        cluster.replace(body | {"status": {"allocation": body["status"]["allocation"]}}, status=True)

    reserved = lambda body: body["status"].get("reservedFor")  # noqa: E731

    assert await undo_again_and_again(bare, reserved, unreserve, "ResourceClaim") == LIMIT + 1
    assert writes_to_claims(bare) <= MOST_WRITES


async def test_a_taking_back_that_others_undo_is_begun_a_few_times(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The pod is Unschedulable for ever, and somebody reserves again between the two steps."""
    bare.load(*pairs())
    await operator(attempts_per_minute=1, unschedulable_seconds=1, take_back_pause_seconds=0.5)
    bare.create(claim("mine"))
    made = bare.create(pod(claim="mine"))
    await bare.wait_for("Pod", lambda body: not is_gated(body))
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    bare.patch("Pod", "p", {"status": {"conditions": [refusal]}}, status=True)

    def reserve(cluster: EmbeddedCluster, body: Body) -> None:
        entry = {"resource": "pods", "name": "p", "uid": made["metadata"]["uid"]}
        cluster.replace(body | {"status": body["status"] | {"reservedFor": [entry]}}, status=True)

    unreserved = lambda body: has_devices(body) and not body["status"].get("reservedFor")  # noqa: E731

    assert await undo_again_and_again(bare, unreserved, reserve, "ResourceClaim") == 1
    assert has_devices(bare.get("ResourceClaim", "mine"))


async def test_claims_that_others_delete_are_made_a_few_times(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The generated claim of a pod goes as soon as it is there."""
    bare.load(*pairs())
    await operator(attempts_per_minute=LIMIT)
    bare.faults.deny("update", "resourceclaims", "resource.k8s.io")
    bare.create(pod())

    def delete(cluster: EmbeddedCluster, body: Body) -> None:
        cluster.delete("ResourceClaim", body["metadata"]["name"])

    assert await undo_again_and_again(bare, lambda _: True, delete, "ResourceClaim") <= LIMIT
    assert len(bare.writes("resourceclaims", "POST")) <= LIMIT


async def test_a_gate_that_comes_back_is_opened_a_few_times(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A pod without a claim of ours is made again under its name, gated, as soon as its gate is open."""
    await operator(attempts_per_minute=LIMIT)
    gated = pod(claim="none", resourceClaims=[], containers=[{"name": "main", "image": "pause"}])
    bare.create(gated)

    def make_again(cluster: EmbeddedCluster, _: Body) -> None:
        cluster.delete("Pod", "p", now=True)
        cluster.create(gated)

    assert await undo_again_and_again(bare, lambda body: not is_gated(body), make_again, "Pod") == LIMIT


async def test_a_pod_that_had_its_node_leaves_nothing_to_count(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """One pod after another uses the same claim and goes: none waits."""
    bare.load(*pairs())
    await operator(attempts_per_minute=1, release="always")
    bare.create(claim("mine"))

    for _ in range(3):
        bare.create(pod(claim="mine"))
        await bare.wait_for("Pod", lambda body: not is_gated(body), timeout_seconds=5)
        bind(bare)
        bare.delete("Pod", "p", now=True)
        await bare.wait_for("ResourceClaim", lambda body: not has_devices(body))


def waiting(context: Context) -> dict[str, float]:
    """The pods that wait by reason, as the metric tells it."""
    assert context.operation is not None
    return {
        sample.labels["reason"]: sample.value
        for metric in context.operation.metrics.registry.collect()
        for sample in metric.samples
        if sample.name == "dovetail_waiting_pods"
    }


@pytest.mark.parametrize("status", [403, 409, 422, 500])
async def test_a_pod_whose_write_is_refused_waits_once(
    bare: EmbeddedCluster, operator: OperatorStarter, status: int
) -> None:
    """Tried again with pauses, it is one waiting pod, with one line in the log and one Event."""
    bare.load(*pairs())
    context = await operator()
    bare.faults.fail("PUT", "resourceclaims/status", status=status, times=4)
    bare.create(claim("mine"))
    is_told = status in (403, 422)

    with structlog.testing.capture_logs() as lines:
        bare.create(pod(claim="mine"))
        if is_told:
            await bare.wait_for("Pod", waits_for("WriteRefused"))
            assert waiting(context) == {"WriteRefused": 1.0}
        await bare.wait_for("Pod", lambda body: not is_gated(body), timeout_seconds=20)

    assert len(bare.writes("resourceclaims/status")) == 5
    told = [body["count"] for body in bare.objects("Event") if body["reason"] == "WriteRefused"]
    assert told == [1] * is_told
    failures = [line["log_level"] for line in lines if line["event"] == "tried_again_later"]
    assert len(failures) == 4
    assert failures.count("debug") == 3
    assert [line["event"] for line in lines].count("pod_waits") == is_told


@pytest.mark.parametrize("is_moved", [False, True])
async def test_a_pod_joins_a_claim_that_somebody_else_keeps_writing_to(
    bare: EmbeddedCluster, operator: OperatorStarter, is_moved: bool
) -> None:
    """A write in between does no harm, unless it took the devices away: then all is new."""
    bare.load(*pairs())
    await operator(avoid_seconds=0)
    bare.create(claim("mine"))
    bare.create(pod("first", claim="mine"))
    await bare.wait_for("Pod", lambda body: not is_gated(body))

    def write_first() -> None:
        if is_moved:
            deallocate(bare, bare.get("ResourceClaim", "mine"))
        bare.patch("ResourceClaim", "mine", {"metadata": {"labels": {"by": "another"}}})

    bare.faults.before("PATCH", "resourceclaims/status", write_first)
    with structlog.testing.capture_logs() as lines:
        bare.create(pod("second", claim="mine"))
        await bare.wait_for("Pod", lambda body: body["metadata"]["name"] == "second" and not is_gated(body))

    failures = [line for line in lines if line["event"] == "tried_again_later"]
    assert bool(failures) == is_moved
    assert has_devices(bare.get("ResourceClaim", "mine"))


async def test_a_pod_joins_a_claim_to_which_the_api_server_applies_no_patch(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """It refuses one where it spells parameters of the allocation anew: the status is put instead."""
    bare.load(*pairs())
    await operator()
    bare.create(claim("mine"))
    bare.create(pod("first", claim="mine"))
    await bare.wait_for("Pod", lambda body: not is_gated(body))
    bare.faults.fail("PATCH", "resourceclaims/status", status=422)

    bare.create(pod("second", claim="mine"))
    await bare.wait_for("Pod", lambda body: body["metadata"]["name"] == "second" and not is_gated(body))

    entries = bare.get("ResourceClaim", "mine")["status"]["reservedFor"]
    assert [entry["name"] for entry in entries] == ["first", "second"]


@pytest.mark.parametrize("others", [(), ("another",)], ids=["alone", "beside another"])
def test_joining_holds_on_to_the_claim_and_its_devices(others: tuple[str, ...]) -> None:
    """The patch applies to the claim that was read while it has the devices that it had, and only there."""
    newcomer = pod("late", claim="mine")
    newcomer["metadata"]["uid"] = "late"
    results = [{"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]
    entries = [{"resource": "pods", "name": name, "uid": name} for name in others]
    status: Body = {"allocation": {"devices": {"results": results}}} | (
        {"reservedFor": entries} if entries else {}
    )
    shared = {"metadata": {"name": "mine", "uid": "mine"}, "status": status}
    patch = joining(shared, newcomer)

    joined = json_patch(shared, list(patch))

    assert consumers(joined) == {*others, "late"}
    assert joining(joined, newcomer) == ()
    moved = {"allocation": {"devices": {"results": [results[0] | {"device": "gpu-1"}]}}}
    confined = {"allocation": {**status["allocation"], "nodeSelector": {"nodeSelectorTerms": []}}}
    changes = [{"metadata": {"uid": "new"}}, {"status": {"allocation": None}}, {"status": moved}]
    changes += [{"status": confined}, {"status": {"reservedFor": None if others else [{"uid": "other"}]}}]
    for change in changes:
        with pytest.raises(StatusError):
            json_patch(merge_patch(shared, change), list(patch))


def test_after_the_free_attempts_pauses_double() -> None:
    """Up to the longest one; a long quiet forgets all, and another subject is not concerned."""
    now = 0.0
    attempts = Attempts(LIMIT, lambda: now)
    pauses = []
    for _ in range(LIMIT + 6):
        rest = attempts.wait([("claim",)])
        pauses.append(rest)
        now += rest
        assert attempts.wait([("claim",)]) == 0.0
        attempts.count([("claim",)])

    assert pauses[:LIMIT] == [0.0] * LIMIT
    assert pauses[LIMIT] == 60.0
    assert pauses[-4:-1] == [60.0, 120.0, 120.0]
    assert pauses[-1] == LONGEST_PAUSE_SECONDS
    assert attempts.wait([("other",)]) == 0.0
    now += 601.0
    assert attempts.wait([("claim",)]) == 0.0


def test_refused_writes_of_all_who_join_a_claim_count_together() -> None:
    """Many pods may join one claim, each at its first try; refused writes to it are limited for all."""
    attempts = Attempts(LIMIT, lambda: 0.0)
    picture = Picture()
    newcomer = pod("late", claim="mine")
    newcomer["metadata"] |= {"uid": "late", "resourceVersion": "2"}
    shared = claim("mine")
    shared["metadata"] |= {"uid": "mine", "resourceVersion": "1"}
    picture.see(CLAIM, shared | {"status": {"allocation": {"devices": {}}}})
    verdict = Verdict(Reserve((MINE,)), {MINE: shared})

    for index in range(10 * LIMIT):
        attempts.record(("default", f"joins-{index}"), verdict, is_refused=False)
    assert attempts.wait(of_needs(picture, newcomer)) == 0.0

    for index in range(LIMIT * int(1 / REFUSED)):
        attempts.record(("default", f"refused-{index}"), verdict, is_refused=True)
    assert attempts.wait(of_needs(picture, newcomer)) > 0.0


def test_a_refused_attempt_counts_less() -> None:
    """It is one write, where one that is undone may be four."""
    attempts = Attempts(1, lambda: 0.0)
    for _ in range(int(1 / REFUSED)):
        assert attempts.wait([("claim",)]) == 0.0
        attempts.count([("claim",)], REFUSED)
    assert attempts.wait([("claim",)]) == 60.0
