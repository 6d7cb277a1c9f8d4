"""The stand-ins play the rest of the cluster by its rules."""

from collections.abc import AsyncIterator

import pytest

from dovetail.embedded import EmbeddedCluster
from dovetail.embedded.claim_controller import claim_prefix
from tests.embedded.objects import Body, allocation, claim, config_map, consumer, node, pod, template

FINALIZER = "resource.kubernetes.io/delete-protection"


@pytest.fixture
async def whole() -> AsyncIterator[EmbeddedCluster]:
    """A cluster with all stand-ins and one node."""
    async with EmbeddedCluster(claim_controller=True, scheduler=True, kubelet=True) as running:
        running.create(node("node-a"))
        yield running


def allocate(cluster: EmbeddedCluster, body: Body, *consumers: Body) -> None:
    """Do what Dovetail does with a claim: finalizer, then the allocation in one write."""
    name = body["metadata"]["name"]
    cluster.patch("ResourceClaim", name, {"metadata": {"finalizers": [FINALIZER]}})
    status = {"allocation": allocation(), "reservedFor": list(consumers)}
    cluster.patch("ResourceClaim", name, {"status": status}, status=True)


def ungate(cluster: EmbeddedCluster, name: str) -> None:
    """Remove all gates."""
    gates = cluster.get("Pod", name)["spec"]["schedulingGates"]
    gone = [{"$patch": "delete", "name": gate["name"]} for gate in gates]
    cluster.patch("Pod", name, {"spec": {"schedulingGates": gone}})


def is_running(body: Body) -> bool:
    """Whether the kubelet has started the pod."""
    return bool(body["status"]["phase"] == "Running")


async def test_a_claim_is_generated_as_the_controller_manager_does(whole: EmbeddedCluster) -> None:
    """Name, owner, annotation, labels and the pod's status are those of G10 to G25."""
    whole.create(template())
    owner = whole.create(pod("trainer"))
    made = await whole.wait_for("ResourceClaim", bool)
    metadata = made["metadata"]
    assert metadata["generateName"] == "trainer-gpu-"
    assert metadata["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert metadata["labels"] == {"team": "a"}
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "trainer",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
    ]
    status = whole.get("Pod", "trainer")["status"]
    assert status["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": metadata["name"]}]


def test_long_names_are_cut_as_upstream_cuts_them() -> None:
    """The test vector of G10: both names are shortened in proportion, without a trailing hyphen."""
    assert claim_prefix("p" * 63, "c" * 63) == "p" * 28 + "-" + "c" * 28


async def test_a_claim_made_by_somebody_else_is_adopted(whole: EmbeddedCluster) -> None:
    """An owned claim with the annotation is recorded, not doubled (G20)."""
    owner = whole.create(pod("trainer"))
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "trainer", "controller": True}
    made = claim(
        "mine",
        annotations={"resource.kubernetes.io/pod-claim-name": "gpu"},
        ownerReferences=[reference | {"uid": owner["metadata"]["uid"]}],
    )
    whole.create(made)
    seen = await whole.wait_for("Pod", lambda body: body["status"].get("resourceClaimStatuses"))
    assert seen["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": "mine"}]
    whole.create(template())
    whole.create(pod("second"))
    await whole.wait_for("ResourceClaim", lambda body: body["metadata"]["name"].startswith("second"))
    assert len(whole.objects("ResourceClaim")) == 2


async def test_a_missing_template_is_told_on_the_pod(whole: EmbeddedCluster) -> None:
    """The pod gets the Warning FailedResourceClaimCreation, once (G15)."""
    whole.create(pod("trainer"))
    told = await whole.wait_for("Event", bool)
    assert (told["reason"], told["involvedObject"]["name"]) == ("FailedResourceClaimCreation", "trainer")
    whole.create(template("other"))
    whole.create(template())
    await whole.wait_for("ResourceClaim", bool)
    assert len(whole.objects("Event")) == 1


async def test_an_allocated_pod_runs_once_it_is_ungated(whole: EmbeddedCluster) -> None:
    """The pod is bound to the node of the allocation, reserved by the scheduler, and runs."""
    whole.create(node("node-b"))
    whole.create(template())
    whole.create(pod("trainer"))
    made = await whole.wait_for("ResourceClaim", bool)
    allocate(whole, made)
    ungate(whole, "trainer")
    running = await whole.wait_for("Pod", is_running)
    assert running["spec"]["nodeName"] == "node-a"
    reserved = whole.get("ResourceClaim", made["metadata"]["name"])["status"]["reservedFor"]
    assert [entry["uid"] for entry in reserved] == [running["metadata"]["uid"]]


async def test_a_pod_without_devices_is_unschedulable(whole: EmbeddedCluster) -> None:
    """kube-scheduler's stand-in allocates nothing: the condition says so."""
    whole.create(template())
    whole.create(pod("trainer", schedulingGates=[]))
    waiting = await whole.wait_for("Pod", lambda body: body["status"].get("conditions"))
    assert waiting["status"]["conditions"][0]["reason"] == "Unschedulable"


async def test_a_cordoned_node_takes_no_pod(whole: EmbeddedCluster) -> None:
    """A pod whose devices are on a cordoned node waits until the node is back."""
    whole.patch("Node", "node-a", {"spec": {"unschedulable": True}})
    whole.create(template())
    whole.create(pod("trainer"))
    allocate(whole, await whole.wait_for("ResourceClaim", bool))
    ungate(whole, "trainer")
    await whole.wait_for("Pod", lambda body: body["status"]["conditions"][0]["reason"] == "Unschedulable")
    whole.patch("Node", "node-a", {"spec": {"unschedulable": None}})
    await whole.wait_for("Pod", is_running)


async def test_the_last_consumer_frees_the_devices(whole: EmbeddedCluster) -> None:
    """A user's claim loses reservation, allocation and finalizer with its last pod, and stays (L10, L22)."""
    shared = whole.create(claim("shared"))
    user = [{"name": "gpu", "resourceClaimName": "shared"}]
    trainer = whole.create(pod("trainer", resourceClaims=user, schedulingGates=[]))
    allocate(whole, shared, consumer(trainer["metadata"]["uid"]))
    await whole.wait_for("Pod", is_running)
    whole.delete("Pod", "trainer")
    freed = await whole.wait_for("ResourceClaim", lambda body: "allocation" not in body["status"])
    freed = await whole.wait_for("ResourceClaim", lambda body: not body["metadata"].get("finalizers"))
    assert freed["status"] == {}


async def test_one_of_two_consumers_leaves_the_devices(whole: EmbeddedCluster) -> None:
    """While another pod uses the claim, only the reservation of the pod that ended goes."""
    shared = whole.create(claim("shared"))
    user = [{"name": "gpu", "resourceClaimName": "shared"}]
    pods = [whole.create(pod(name, resourceClaims=user, schedulingGates=[])) for name in ("first", "second")]
    allocate(whole, shared, *(consumer(body["metadata"]["uid"], body["metadata"]["name"]) for body in pods))
    await whole.wait_for("Pod", lambda body: body["metadata"]["name"] == "second" and is_running(body))
    whole.delete("Pod", "first")
    left = await whole.wait_for("ResourceClaim", lambda body: len(body["status"].get("reservedFor", [])) == 1)
    assert left["status"]["reservedFor"][0]["name"] == "second"
    assert left["status"]["allocation"] == allocation()


async def test_a_generated_claim_goes_with_its_pod(whole: EmbeddedCluster) -> None:
    """Deleting the pod frees the claim and deletes it."""
    whole.create(template())
    whole.create(pod("trainer"))
    made = await whole.wait_for("ResourceClaim", bool)
    allocate(whole, made, consumer(whole.get("Pod", "trainer")["metadata"]["uid"]))
    ungate(whole, "trainer")
    await whole.wait_for("Pod", is_running)
    whole.delete("Pod", "trainer")
    await whole.wait_gone("Pod", "trainer")
    await whole.wait_gone("ResourceClaim", made["metadata"]["name"])


async def test_a_bound_pod_is_reserved_for(whole: EmbeddedCluster) -> None:
    """A pod with `nodeName` is reserved for by the claim controller once there is an allocation (G28)."""
    whole.create(template())
    whole.create(pod("trainer", nodeName="node-a", schedulingGates=[]))
    made = await whole.wait_for("ResourceClaim", bool)
    allocate(whole, made)
    await whole.wait_for("Pod", is_running)
    assert len(whole.get("ResourceClaim", made["metadata"]["name"])["status"]["reservedFor"]) == 1


async def test_whatever_lost_its_owners_is_collected(cluster: EmbeddedCluster) -> None:
    """An object whose last owner is gone goes too; one with a living owner stays."""
    owners = [cluster.create(config_map(name)) for name in ("first", "second")]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}
    owned = config_map("owned")
    owned["metadata"]["ownerReferences"] = [reference | {"uid": owner["metadata"]["uid"]} for owner in owners]
    cluster.create(owned)
    cluster.delete("ConfigMap", "first")
    cluster.create(config_map("later"))
    assert cluster.find("ConfigMap", "owned") is not None
    cluster.delete("ConfigMap", "second")
    await cluster.wait_gone("ConfigMap", "owned")


async def test_a_namespace_goes_with_all_that_is_in_it(cluster: EmbeddedCluster) -> None:
    """Deleting a namespace deletes its objects; finalizers hold it up."""
    body = config_map("kept")
    body["metadata"] |= {"namespace": "team", "finalizers": ["example.com/hold"]}
    cluster.create(body)
    cluster.delete("Namespace", "team")
    assert cluster.get("Namespace", "team")["status"]["phase"] == "Terminating"
    released = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/hold"]}}
    cluster.patch("ConfigMap", "kept", released, "team")
    await cluster.wait_gone("Namespace", "team")
