"""Trouble with the API server: refused, repeated, unanswered and half-done writes, and watches that fail."""

import asyncio
from functools import partial
from typing import Any

import pytest

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import (
    Body,
    claim,
    condition,
    gpus,
    is_gated,
    nics,
    node,
    our_writes,
    pairs,
    pod,
    running_pod,
    waits_for,
)

SHORT = {"request_timeout_seconds": 5.0, "resync_seconds": 2.0}


@pytest.mark.parametrize("status", [409, 429, 500, 503])
@pytest.mark.parametrize(
    "write",
    [
        ("POST", "resourceclaims"),
        ("PATCH", "pods/status"),
        ("PUT", "resourceclaims"),
        ("PUT", "resourceclaims/status"),
        ("PATCH", "pods"),
    ],
)
async def test_a_passing_refusal_of_any_write_delays_a_pod_only(
    cluster: EmbeddedCluster, operator: OperatorStarter, write: tuple[str, str], status: int
) -> None:
    """Each write is refused once with each status that passes; the pod runs all the same."""
    cluster.load(*pairs())
    await operator(**SHORT)
    cluster.faults.fail(*write, status=status, retry_after_seconds=0 if status == 429 else None)

    cluster.create(pod())

    await cluster.wait_for("Pod", running_pod("p"))
    assert len(cluster.objects("ResourceClaim")) == 1


@pytest.mark.parametrize(
    "write",
    [
        ("PATCH", "pods/status"),
        ("PUT", "resourceclaims"),
        ("PUT", "resourceclaims/status"),
        ("PATCH", "pods"),
    ],
)
async def test_a_write_that_took_place_without_an_answer_is_found_out(
    cluster: EmbeddedCluster, operator: OperatorStarter, write: tuple[str, str]
) -> None:
    """The pod runs, and its claim is allocated once."""
    cluster.load(*pairs())
    await operator(**SHORT)
    cluster.faults.drop_answer(*write)

    cluster.create(pod())

    await cluster.wait_for("Pod", running_pod("p"))
    accepted = [request for request in cluster.writes("resourceclaims/status") if request.status < 300]
    assert len(accepted) == 1


async def test_a_claim_that_changes_before_the_write_is_planned_anew(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Somebody labels the claim between decision and write: the label stays, and the pod runs."""
    cluster.load(*pairs())
    await operator()
    cluster.create(claim("mine"))
    cluster.faults.before(
        "PUT",
        "resourceclaims",
        lambda: cluster.patch("ResourceClaim", "mine", {"metadata": {"labels": {"by": "another"}}}),
    )

    cluster.create(pod(claim="mine"))

    await cluster.wait_for("Pod", running_pod("p"))
    assert cluster.get("ResourceClaim", "mine")["metadata"]["labels"] == {"by": "another"}


async def test_a_missing_right_is_said_on_the_pod(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Without `resourceclaims/binding` nothing is allocated, the condition names it, and tries are few."""
    cluster.load(*pairs())
    cluster.faults.deny("update", "resourceclaims/binding", "resource.k8s.io")
    await operator()

    cluster.create(pod())

    waiting = await cluster.wait_for("Pod", waits_for("WriteRefused"))
    assert "resourceclaims/binding" in condition(waiting)["message"]
    assert is_gated(waiting)
    cluster.faults.clear()
    await cluster.wait_for("Pod", running_pod("p"), timeout_seconds=20)
    assert our_writes(cluster).count(("PUT", "resourceclaims/status")) <= 6


async def test_a_half_written_pod_is_finished(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """The second of two claims is refused once: it is written later, for the same node (R-B9)."""
    cluster.load(*pairs(2), node("n2"), gpus(0, 0, node="n2"), nics(0, 0, node="n2"))
    await operator()
    cluster.create(claim("a"))
    cluster.create(claim("b"))
    cluster.faults.fail("PUT", "resourceclaims/status", status=500)

    cluster.create(two_claims("p"))

    running = await cluster.wait_for("Pod", running_pod("p"))
    nodes = {node_of(cluster.get("ResourceClaim", name)) for name in ("a", "b")}
    assert nodes == {running["spec"]["nodeName"]}


async def test_a_half_written_pod_that_cannot_be_finished_gives_back(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The devices for the second claim vanish between its writes: the first claim's are free again (R-B9)."""
    cluster.load(*pairs(2))
    await operator()
    cluster.create(claim("a"))
    cluster.create(claim("b"))
    cluster.faults.fail("PUT", "resourceclaims/status", status=409)
    cluster.faults.before("PUT", "resourceclaims/status", lambda: cluster.replace(newer(cluster, gpus())))

    cluster.create(two_claims("p"))

    await cluster.wait_for("Pod", waits_for("NothingFits"))
    for name in ("a", "b"):
        await cluster.wait_for("ResourceClaim", partial(is_free, name))
    cluster.replace(newer(cluster, gpus(0, 0)))
    await cluster.wait_for("Pod", running_pod("p"))


async def test_watches_that_end_are_taken_up_again(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A pod that arrives after all watches were closed is served."""
    cluster.load(*pairs())
    await operator()
    cluster.watches.close()

    cluster.create(pod())

    await cluster.wait_for("Pod", running_pod("p"))


async def test_an_expired_history_is_listed_anew(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """While watches said nothing a claim went and the history was compacted: its devices are free (R-B6)."""
    cluster.load(*pairs())
    await operator(resync_seconds=60)
    cluster.create(claim("first"))
    cluster.create(pod("first", claim="first"))
    await cluster.wait_for("Pod", running_pod("first"))
    cluster.create(pod("second"))
    await cluster.wait_for("Pod", waits_for("NothingFits"))

    with cluster.watches.silenced(lose=True):
        cluster.delete("Pod", "first", now=True)
        cluster.patch("ResourceClaim", "first", {"metadata": {"finalizers": None}})
        cluster.delete("ResourceClaim", "first")
        cluster.compact()
        cluster.watches.close()

    await cluster.wait_for("Pod", running_pod("second"))


async def test_what_a_silent_watch_withholds_is_found_by_the_next_list(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Watches stay open and lose everything: the pod that arrived meanwhile is served by the resync."""
    cluster.load(*pairs())
    await operator(resync_seconds=1)

    with cluster.watches.silenced(lose=True):
        cluster.create(pod())
        await cluster.wait_for("Pod", lambda body: not is_gated(body), timeout_seconds=15)


async def test_nothing_is_decided_before_the_picture_is_complete(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """While the list of claims is held back, no pod is given devices that are taken (R8)."""
    cluster.load(*pairs())
    cluster.create(claim("taken"))
    holder = await operator()
    cluster.create(pod("holder", claim="taken"))
    await cluster.wait_for("Pod", running_pod("holder"))
    holder.request_stop()
    await cluster.wait_for("Lease", lambda body: not body["spec"]["holderIdentity"])
    held = cluster.faults.hold("list", "resourceclaims", times=1)

    starting = asyncio.ensure_future(operator())
    await held.arrived.wait()
    cluster.create(pod("late"))
    await cluster.wait_for("ResourceClaim", lambda _: True)
    assert not cluster.objects("Pod")[1]["status"].get("resourceClaimStatuses")
    held.release()
    await starting

    await cluster.wait_for("Pod", waits_for("NothingFits"))


async def test_devices_that_are_taken_away_again_and_again_cost_few_writes(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Somebody clears every allocation at once: the pod is given devices a few times a minute (R-B11)."""
    bare.load(*pairs())
    await operator(attempts_per_minute=3, avoid_seconds=0)
    bare.create(claim("mine"))
    cleared = 0

    bare.create(pod(claim="mine"))
    for _ in range(3):
        body = await bare.wait_for("ResourceClaim", lambda body: "allocation" in (body.get("status") or {}))
        bare.replace(body | {"status": {}}, status=True)
        cleared += 1

    with pytest.raises(TimeoutError):
        await bare.wait_for(
            "ResourceClaim", lambda body: "allocation" in (body.get("status") or {}), timeout_seconds=2
        )
    assert our_writes(bare).count(("PUT", "resourceclaims/status")) == cleared


async def test_no_gate_opens_on_an_allocation_that_was_undone(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """All that is heard before the write is answered is the claim as others cleared it: it is given again."""
    bare.load(*pairs())
    await operator(avoid_seconds=0)
    bare.create(claim("mine"))
    bare.faults.delay_answer("PUT", "resourceclaims/status", seconds=2)

    bare.create(pod(claim="mine"))
    with bare.watches.silenced(lose=True):
        first = await bare.wait_for("ResourceClaim", is_allocated)
        bare.replace(first | {"status": {}}, status=True)
    bare.patch("ResourceClaim", "mine", {"metadata": {"labels": {"seen": "cleared"}}})

    await bare.wait_for("Pod", lambda body: not is_gated(body))
    assert is_allocated(bare.get("ResourceClaim", "mine"))
    writes = our_writes(bare)
    allocations = [index for index, write in enumerate(writes) if write == ("PUT", "resourceclaims/status")]
    assert writes.index(("PATCH", "pods")) > allocations[1]


def is_allocated(body: Body) -> bool:
    """The claim has devices."""
    return "allocation" in (body.get("status") or {})


async def test_a_pod_replaced_under_its_name_is_not_told_of_the_old_one(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Between decision and ungating another pod takes the name: it is served, and no refusal is reported."""
    cluster.load(*pairs(2))
    await operator()

    def replace() -> None:
        cluster.delete("Pod", "p", now=True)
        cluster.create(pod())

    cluster.faults.before("PATCH", "pods", replace)

    cluster.create(pod())

    await cluster.wait_for("Pod", running_pod("p"))
    assert [body["reason"] for body in cluster.objects("Event")].count("WriteRefused") == 0


async def test_a_malformed_slice_is_named_and_harms_no_other(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The slice gets an event with the field; devices of other slices are given."""
    broken: dict[str, Any] = nics(0, node="n9")
    broken["spec"]["devices"] = "none"
    cluster.load(*pairs(), broken)
    await operator()

    cluster.create(pod())

    await cluster.wait_for("Pod", running_pod("p"))
    event = await cluster.wait_for("Event", lambda body: body["reason"] == "Malformed")
    assert event["involvedObject"]["name"] == "n9-dra.net"
    assert "devices" in event["message"]


def two_claims(name: str) -> Body:
    """A pod that uses the claims `a` and `b`."""
    entries = [{"name": entry, "resourceClaimName": entry} for entry in ("a", "b")]
    return pod(name, resourceClaims=entries, containers=[{"name": "main", "image": "pause"}])


def newer(cluster: EmbeddedCluster, published: Body) -> Body:
    """A slice as its driver publishes it next: the next generation of its pool."""
    there = cluster.get("ResourceSlice", published["metadata"]["name"])
    pool = there["spec"]["pool"] | {"generation": there["spec"]["pool"]["generation"] + 1}
    return there | {"spec": published["spec"] | {"pool": pool}}


def is_free(name: str, body: Body) -> bool:
    """The claim of this name has no devices."""
    return body["metadata"]["name"] == name and "allocation" not in (body.get("status") or {})


def node_of(body: Body) -> str:
    """The node that a claim's allocation is for."""
    (term,) = body["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    return str(term["matchFields"][0]["values"][0])
