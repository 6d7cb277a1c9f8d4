"""kube-controller-manager makes a second claim for a pod that has its devices, and names that one (G22).

This takes a crash of the API server between the two: the answer to the first create is lost with it.
"""

import pytest

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import Body, claim, condition, devices_of, pairs, pod, running_pod, waits_for

OWNER = {"apiVersion": "v1", "kind": "Pod", "controller": True, "name": "p"}


async def running_with(cluster: EmbeddedCluster, pair_count: int) -> tuple[Body, Body]:
    """A running pod and its claim, on a node with so many pairs of devices."""
    cluster.load(*pairs(pair_count))
    cluster.create(pod())
    running = await cluster.wait_for("Pod", running_pod("p"))
    (first,) = cluster.objects("ResourceClaim")
    return running, first


def make_second(cluster: EmbeddedCluster, running: Body) -> None:
    """What kube-controller-manager does: a claim for the same entry, named in the pod's status."""
    second = claim("second")
    second["metadata"] |= {
        "ownerReferences": [OWNER | {"uid": running["metadata"]["uid"]}],
        "annotations": {"resource.kubernetes.io/pod-claim-name": "devices"},
    }
    cluster.create(second)
    entry = {"name": "devices", "resourceClaimName": "second"}
    cluster.patch("Pod", "p", {"status": {"resourceClaimStatuses": [entry]}}, status=True)


async def test_both_claims_hold_devices_where_there_are_enough(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The second claim is that of a bound pod: it gets other devices of its node; the first keeps its own."""
    await operator()
    running, first = await running_with(cluster, 2)

    make_second(cluster, running)

    second = await cluster.wait_for(
        "ResourceClaim",
        lambda body: body["metadata"]["name"] == "second" and "allocation" in body.get("status", {}),
    )
    kept = cluster.get("ResourceClaim", first["metadata"]["name"])
    assert kept["status"] == first["status"]
    assert set(devices_of(first)).isdisjoint(devices_of(second))
    assert second["status"]["reservedFor"] == first["status"]["reservedFor"]


async def test_the_first_claim_keeps_its_devices_where_there_are_no_others(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The running pod may use them: they are not given to the second, and the pod says what is missing."""
    await operator()
    running, first = await running_with(cluster, 1)

    make_second(cluster, running)

    waiting = await cluster.wait_for("Pod", waits_for("NothingFits"))
    assert "1 in use" in condition(waiting)["message"]
    assert cluster.get("ResourceClaim", first["metadata"]["name"])["status"] == first["status"]
    assert "allocation" not in cluster.get("ResourceClaim", "second").get("status", {})


async def test_both_claims_go_with_the_pod(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """When the pod is done both are freed and deleted; the one that no pod names by the next list."""
    await operator(release="always", resync_seconds=1.0)
    running, first = await running_with(cluster, 2)
    make_second(cluster, running)
    await cluster.wait_for(
        "ResourceClaim",
        lambda body: body["metadata"]["name"] == "second" and "allocation" in body.get("status", {}),
    )

    cluster.patch("Pod", "p", {"status": {"phase": "Succeeded"}}, status=True)

    for name in (first["metadata"]["name"], "second"):
        await cluster.wait_gone("ResourceClaim", name)


async def test_a_claim_that_the_pod_does_not_name_yet_gets_no_devices(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """kube-controller-manager may still make, and name, another one: only then is it known which counts."""
    cluster.load(*pairs(2))
    await operator(claim_generation="never")
    waiting = cluster.create(pod("p"))
    unnamed = claim("first")
    unnamed["metadata"] |= {
        "ownerReferences": [OWNER | {"uid": waiting["metadata"]["uid"]}],
        "annotations": {"resource.kubernetes.io/pod-claim-name": "devices"},
    }
    cluster.create(unnamed)
    cluster.create(claim("others"))
    cluster.create(pod("other", claim="others"))
    await cluster.wait_for("Pod", running_pod("other"))

    make_second(cluster, waiting)
    await cluster.wait_for("Pod", running_pod("p"))

    assert "allocation" not in cluster.get("ResourceClaim", "first").get("status", {})
    assert "allocation" in cluster.get("ResourceClaim", "second")["status"]


@pytest.mark.parametrize("mode", ["auto", "always"])
async def test_a_claim_that_nobody_names_goes_when_its_pod_is_done(
    cluster: EmbeddedCluster, operator: OperatorStarter, mode: str
) -> None:
    """At once: not at the next comparison with complete lists."""
    cluster.load(*pairs())
    await operator(release=mode, release_grace_seconds=0.5, resync_seconds=600)
    cluster.create(pod())
    running = await cluster.wait_for("Pod", running_pod("p"))
    unnamed = claim("second")
    unnamed["metadata"]["ownerReferences"] = [OWNER | {"uid": running["metadata"]["uid"]}]
    cluster.create(unnamed)

    cluster.patch("Pod", "p", {"status": {"phase": "Succeeded"}}, status=True)

    await cluster.wait_gone("ResourceClaim", "second")
