"""Who is served first, and pods that need nothing from us."""

from functools import partial

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import (
    CLASSES,
    Body,
    claim,
    gpus,
    is_gated,
    nics,
    node,
    pairs,
    pod,
    running_pod,
    waits_for,
)


async def test_waiting_pods_are_served_by_priority_then_age(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Two pairs appear for three waiting pods: the urgent one and the older of the others get them."""
    bare.load(node(), *CLASSES, gpus(), nics())
    for name, priority in (("a-older", 0), ("b-younger", 0), ("c-urgent", 100)):
        bare.create(claim(name))
        bare.create(pod(name, claim=name, priority=priority))
    await operator()
    for name in ("a-older", "b-younger", "c-urgent"):
        await bare.wait_for("Pod", partial(waits, name))

    for published in (nics(0, 0), gpus(0, 0)):
        there = bare.get("ResourceSlice", published["metadata"]["name"])
        pool = there["spec"]["pool"] | {"generation": 2}
        bare.replace(there | {"spec": published["spec"] | {"pool": pool}})

    for name in ("c-urgent", "a-older"):
        await bare.wait_for("Pod", partial(is_open, name))
    assert is_gated(bare.get("Pod", "b-younger"))


async def test_a_gated_pod_without_claims_is_ungated_with_an_event(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Somebody gated it by mistake: it runs, and an event says why the gate went."""
    cluster.load(*pairs())
    await operator()

    cluster.create(pod(resourceClaims=[], containers=[{"name": "main", "image": "pause"}]))

    await cluster.wait_for("Pod", running_pod("p"))
    event = await cluster.wait_for("Event", lambda body: body["reason"] == "GateRemoved")
    assert event["type"] == "Normal"


def waits(name: str, body: Body) -> bool:
    """The pod of this name says that it waits."""
    return bool(body["metadata"]["name"] == name and waits_for()(body))


def is_open(name: str, body: Body) -> bool:
    """The pod of this name has lost our gate."""
    return bool(body["metadata"]["name"] == name and not is_gated(body))
