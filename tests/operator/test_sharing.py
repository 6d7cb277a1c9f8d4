"""Claims with several consumers: each is added, none is lost, and there is a limit."""

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import (
    Body,
    bind,
    claim,
    condition,
    is_gated,
    our_writes,
    pairs,
    pod,
    running_pod,
    waits_for,
)


def consumers(body: Body) -> list[str]:
    """The names in `reservedFor`."""
    return [entry["name"] for entry in body["status"].get("reservedFor") or ()]


async def test_a_further_consumer_costs_two_writes(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """One for its reservation and one for its gate; the first consumer stays (V67)."""
    cluster.load(*pairs())
    await operator()
    cluster.create(claim("shared"))
    cluster.create(pod("a", claim="shared"))
    await cluster.wait_for("Pod", running_pod("a"))
    before = len(our_writes(cluster))

    cluster.create(pod("b", claim="shared"))

    await cluster.wait_for("Pod", running_pod("b"))
    assert consumers(cluster.get("ResourceClaim", "shared")) == ["a", "b"]
    assert our_writes(cluster)[before:] == [("PATCH", "resourceclaims/status"), ("PATCH", "pods")]


async def test_consumers_that_arrive_together_are_all_added(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Ten pods at once on one claim: conflicts among their writes lose nobody."""
    cluster.load(*pairs())
    cluster.create(claim("shared"))
    names = [f"p{number}" for number in range(10)]
    for name in names:
        cluster.create(pod(name, claim="shared"))

    await operator()

    for name in names:
        await cluster.wait_for("Pod", running_pod(name), timeout_seconds=20)
    assert sorted(consumers(cluster.get("ResourceClaim", "shared"))) == names


async def test_an_ungated_consumer_that_cannot_use_the_node_is_told_and_warned(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The condition names the claim and its node, a Warning the gate; nothing is written to the claim."""
    bare.load(*pairs())
    await operator()
    bare.create(claim("shared"))
    bare.create(pod("first", claim="shared"))
    await bare.wait_for("Pod", lambda body: not is_gated(body))
    before = bare.get("ResourceClaim", "shared")["metadata"]["resourceVersion"]

    bare.create(pod("late", claim="shared", gates=(), nodeSelector={"zone": "elsewhere"}))

    waiting = await bare.wait_for("Pod", waits_for("NoNodeUsable"))
    assert "'shared' is allocated on node" in condition(waiting)["message"]
    event = await bare.wait_for("Event", lambda body: body["reason"] == "NotGated")
    assert event["involvedObject"]["name"] == "late"
    assert bare.get("ResourceClaim", "shared")["metadata"]["resourceVersion"] == before


async def test_a_full_claim_is_a_reason(bare: EmbeddedCluster, operator: OperatorStarter) -> None:
    """With 256 consumers the next pod is told so, and nothing is written to the claim (S65)."""
    bare.load(*pairs())
    bare.create(claim("shared"))
    await operator()
    bare.create(pod("first", claim="shared"))
    await bare.wait_for("Pod", lambda body: not is_gated(body))
    bind(bare, "first")
    full = bare.get("ResourceClaim", "shared")
    others = [{"resource": "pods", "name": f"o{number}", "uid": f"u{number}"} for number in range(255)]
    full["status"]["reservedFor"] += others
    bare.replace(full, status=True)
    before = bare.get("ResourceClaim", "shared")["metadata"]["resourceVersion"]

    bare.create(pod("late", claim="shared"))

    waiting = await bare.wait_for("Pod", waits_for("ConsumerLimit"))
    assert "256" in condition(waiting)["message"]
    assert bare.get("ResourceClaim", "shared")["metadata"]["resourceVersion"] == before
