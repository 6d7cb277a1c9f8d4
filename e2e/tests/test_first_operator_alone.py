"""Life without the claim controller of kube-controller-manager: Dovetail generates, releases and deletes."""

from __future__ import annotations

from e2e.harness import objects
from e2e.harness.cluster import Cluster, ClusterFactory
from e2e.harness.kube import Object, running
from e2e.harness.programs import Options
from e2e.tests.claims import CLASSES, gpu_slice, nic_slice, numa_mapping, pair, reserved_for, waits

ALONE = Options().without("resourceclaim-controller")
QUICK = {"lease_seconds": 3, "claim_generation_grace_seconds": 0.5, "release_grace_seconds": 0.5}
FINALIZER = "resource.kubernetes.io/delete-protection"


async def one_pair(cluster: Cluster) -> str:
    """A node with one pair, the mapping, and a namespace with a template."""
    await cluster.add_node("n1")
    await cluster.apply(gpu_slice("n1", 0), nic_slice("n1", 0), *CLASSES, numa_mapping())
    namespace = await cluster.namespace()
    await cluster.kube.create(objects.template("pair", pair()), namespace)
    return namespace


def is_free(claim: Object) -> bool:
    """Neither consumer, devices nor finalizer."""
    status = claim.get("status") or {}
    finalizers = claim["metadata"].get("finalizers") or ()
    return not reserved_for(claim) and "allocation" not in status and FINALIZER not in finalizers


async def test_dovetail_generates_and_reserves(cluster_with: ClusterFactory) -> None:
    """After the grace time the pod has a claim as the controller would have made it, and runs."""
    cluster = await cluster_with(ALONE)
    namespace = await one_pair(cluster)
    await cluster.operator(**QUICK)

    await cluster.kube.create(objects.pod("p", templates={"devices": "pair"}), namespace)

    pod = await cluster.kube.wait_for("Pod", "p", running, namespace)
    (claim,) = await cluster.kube.list("ResourceClaim", namespace)
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", pod["metadata"]["uid"], True)
    assert claim["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] == "devices"
    assert claim["metadata"]["name"].startswith("p-devices-")
    assert reserved_for(claim) == [pod["metadata"]["uid"]]


async def test_devices_of_a_deleted_pod_are_released(cluster_with: ClusterFactory) -> None:
    """The pod and its claim go, and a waiting pod gets the devices (L14, L21)."""
    cluster = await cluster_with(ALONE)
    namespace = await one_pair(cluster)
    await cluster.operator(**QUICK)
    await cluster.kube.create(objects.pod("first", templates={"devices": "pair"}), namespace)
    await cluster.kube.wait_for("Pod", "first", running, namespace)
    await cluster.kube.create(objects.pod("second", templates={"devices": "pair"}), namespace)
    await cluster.kube.wait_for("Pod", "second", waits(), namespace)

    await cluster.kube.delete("Pod", "first", namespace)

    await cluster.kube.wait_for("Pod", "second", running, namespace)
    await cluster.kube.wait_all("ResourceClaim", lambda items: len(items) == 1, namespace)


async def test_a_finished_pods_claim_is_deleted_and_a_users_claim_stays(
    cluster_with: ClusterFactory,
) -> None:
    """L20 and L22: the generated claim goes while its pod stays; the user's is free again."""
    cluster = await cluster_with(ALONE)
    namespace = await one_pair(cluster)
    await cluster.apply(gpu_slice("n1", 0, 0), nic_slice("n1", 0, 0))
    await cluster.operator(**QUICK)
    await cluster.kube.create(objects.claim("mine", pair()), namespace)
    await cluster.kube.create(objects.pod("made", templates={"devices": "pair"}), namespace)
    await cluster.kube.create(objects.pod("named", claims={"devices": "mine"}), namespace)
    for name in ("made", "named"):
        await cluster.kube.wait_for("Pod", name, running, namespace)

    for name in ("made", "named"):
        done = {"status": {"phase": "Succeeded"}}
        await cluster.kube.patch("Pod", name, done, namespace, subresource="status")

    await cluster.kube.wait_all("ResourceClaim", lambda items: len(items) == 1, namespace)
    await cluster.kube.wait_for("ResourceClaim", "mine", is_free, namespace)


async def test_a_namesake_of_a_statefulset_gets_a_claim_of_its_own(cluster_with: ClusterFactory) -> None:
    """The old pod's claim is still there, held by a finalizer: the new pod of that name is not given it."""
    cluster = await cluster_with(ALONE)
    namespace = await one_pair(cluster)
    await cluster.apply(gpu_slice("n1", 0, 0), nic_slice("n1", 0, 0))
    await cluster.operator(**QUICK)
    await cluster.kube.create(stateful_set(), namespace)
    old = await cluster.kube.wait_for("Pod", "web-0", running, namespace)
    (first,) = await cluster.kube.list("ResourceClaim", namespace)
    kept = {"metadata": {"finalizers": [*first["metadata"]["finalizers"], "example.com/keep"]}}
    await cluster.kube.patch("ResourceClaim", first["metadata"]["name"], kept, namespace)

    await cluster.kube.delete("Pod", "web-0", namespace)

    new = await cluster.kube.wait_for(
        "Pod",
        "web-0",
        lambda pod: pod["metadata"]["uid"] != old["metadata"]["uid"] and running(pod),
        namespace,
    )
    claims = await cluster.kube.list("ResourceClaim", namespace)
    (second,) = [claim for claim in claims if claim["metadata"]["uid"] != first["metadata"]["uid"]]
    assert second["metadata"]["ownerReferences"][0]["uid"] == new["metadata"]["uid"]
    assert reserved_for(second) == [new["metadata"]["uid"]]
    assert new["status"]["resourceClaimStatuses"] == [
        {"name": "devices", "resourceClaimName": second["metadata"]["name"]}
    ]


def stateful_set() -> Object:
    """One replica, whose pod uses the template."""
    pod = objects.pod("ignored", templates={"devices": "pair"}, labels={"app": "web"})
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "serviceName": "web",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod["spec"]},
        },
    }
