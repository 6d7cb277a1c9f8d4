"""Freeing the claims of pods that are done, where no claim controller does (L1-L22, L30-L34)."""

from collections.abc import Callable

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import (
    Body,
    bind,
    claim,
    condition,
    gpus,
    nics,
    our_writes,
    pairs,
    pod,
    running_pod,
    waits_for,
)

FINALIZER = "resource.kubernetes.io/delete-protection"


def is_free(name: str) -> Callable[[Body], bool]:
    """A condition to wait for: the claim has neither consumers, devices nor our finalizer."""

    def check(body: Body) -> bool:
        status = body.get("status") or {}
        return (
            body["metadata"]["name"] == name
            and not status.get("reservedFor")
            and "allocation" not in status
            and FINALIZER not in body["metadata"].get("finalizers", [])
        )

    return check


async def test_devices_of_a_finished_pod_are_free_and_its_claim_stays(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A claim that a user made loses consumer, devices and finalizer, and stays (L3, L10, L12, L22)."""
    cluster.load(*pairs())
    await operator(release="always")
    cluster.create(claim("mine"))
    cluster.create(pod(claim="mine"))
    await cluster.wait_for("Pod", running_pod("p"))

    cluster.patch("Pod", "p", {"status": {"phase": "Succeeded"}}, status=True)

    await cluster.wait_for("ResourceClaim", is_free("mine"))


async def test_a_generated_claim_goes_with_its_finished_pod(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The claim of a pod that succeeded is deleted while the pod stays (L20)."""
    cluster.load(*pairs())
    await operator(release="always")
    cluster.create(pod())
    await cluster.wait_for("Pod", running_pod("p"))
    (made,) = cluster.objects("ResourceClaim")

    cluster.patch("Pod", "p", {"status": {"phase": "Failed"}}, status=True)

    await cluster.wait_gone("ResourceClaim", made["metadata"]["name"])
    assert cluster.find("Pod", "p") is not None


async def test_a_deleted_pods_devices_go_to_the_next(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The garbage collector deletes the claim, Dovetail takes devices and finalizer from it (L14, L21)."""
    cluster.load(*pairs())
    await operator(release="always")
    cluster.create(pod("first"))
    await cluster.wait_for("Pod", running_pod("first"))
    cluster.create(pod("second"))
    await cluster.wait_for("Pod", waits_for("NothingFits"))

    cluster.delete("Pod", "first", now=True)

    await cluster.wait_for("Pod", running_pod("second"))


async def test_a_claim_in_use_is_freed_once_by_one_write(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Of two consumers one ends: it is taken out, the other and the devices stay (R-B4)."""
    cluster.load(*pairs())
    await operator(release="always")
    cluster.create(claim("shared"))
    for name in ("a", "b"):
        cluster.create(pod(name, claim="shared"))
        await cluster.wait_for("Pod", running_pod(name))
    before = our_writes(cluster).count(("PUT", "resourceclaims/status"))

    cluster.patch("Pod", "a", {"status": {"phase": "Succeeded"}}, status=True)

    await cluster.wait_for("ResourceClaim", lambda body: len(body["status"]["reservedFor"]) == 1)
    shared = cluster.get("ResourceClaim", "shared")
    assert [entry["name"] for entry in shared["status"]["reservedFor"]] == ["b"]
    assert "allocation" in shared["status"]
    assert our_writes(cluster).count(("PUT", "resourceclaims/status")) == before + 1


async def test_consumers_of_other_kinds_stay(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """Whoever put them there removes them: only the pod's entry goes, the devices stay (L5)."""
    cluster.load(*pairs())
    await operator(release="always")
    cluster.create(claim("mine"))
    cluster.create(pod(claim="mine"))
    await cluster.wait_for("Pod", running_pod("p"))
    held = cluster.get("ResourceClaim", "mine")
    foreign = {"apiGroup": "example.com", "resource": "holds", "name": "h", "uid": "u-1"}
    held["status"]["reservedFor"].append(foreign)
    cluster.replace(held, status=True)

    cluster.patch("Pod", "p", {"status": {"phase": "Succeeded"}}, status=True)

    kept = await cluster.wait_for("ResourceClaim", lambda body: len(body["status"]["reservedFor"]) == 1)
    assert kept["status"]["reservedFor"] == [foreign]
    assert "allocation" in kept["status"]


async def test_a_claim_without_our_finalizer_keeps_its_devices(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """As kube-controller-manager does: without the finalizer only the reservation goes (L11)."""
    bare.load(*pairs())
    await operator(release="always")
    made = bare.create(claim("mine"))
    status = {
        "allocation": {"devices": {"results": []}},
        "reservedFor": [{"resource": "pods", "name": "gone", "uid": "u-1"}],
    }

    bare.replace(made | {"status": status}, status=True)

    kept = await bare.wait_for("ResourceClaim", lambda body: not body.get("status", {}).get("reservedFor"))
    assert "allocation" in kept["status"]


async def test_the_claim_of_a_pods_namesake_is_deleted(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A new pod has the name of the owner that is gone: the old claim goes, and the new pod gets its own."""
    bare.load(*pairs())
    old = claim("p-devices-old")
    old["metadata"] |= {
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "old", "controller": True}
        ],
        "annotations": {"resource.kubernetes.io/pod-claim-name": "devices"},
    }
    bare.create(pod())
    bare.load(old | {"metadata": old["metadata"] | {"uid": "u-2"}})

    await operator(release="always")

    await bare.wait_gone("ResourceClaim", "p-devices-old")
    await bare.wait_for("Pod", lambda body: not body["spec"].get("schedulingGates"))


async def test_auto_leaves_claims_to_a_controller(
    controlled: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Where the claim controller frees a claim within the grace time, Dovetail writes nothing."""
    controlled.load(*pairs())
    await operator(release="auto", release_grace_seconds=5, claim_generation="never")
    controlled.create(pod("first"))
    await controlled.wait_for("Pod", running_pod("first"))
    controlled.create(pod("second"))
    await controlled.wait_for("Pod", waits_for("NothingFits"))
    before = our_writes(controlled).count(("PUT", "resourceclaims/status"))

    controlled.delete("Pod", "first", now=True)

    await controlled.wait_for("Pod", running_pod("second"))
    assert our_writes(controlled).count(("PUT", "resourceclaims/status")) == before + 1


async def test_auto_frees_what_nobody_touches(cluster: EmbeddedCluster, operator: OperatorStarter) -> None:
    """Without a controller the devices are free after the grace time."""
    cluster.load(*pairs())
    await operator(release="auto", release_grace_seconds=0.3)
    cluster.create(claim("mine"))
    cluster.create(pod(claim="mine"))
    await cluster.wait_for("Pod", running_pod("p"))

    cluster.delete("Pod", "p", now=True)

    await cluster.wait_for("ResourceClaim", is_free("mine"))


async def test_a_pod_being_deleted_that_has_a_node_keeps_its_devices(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """It may still be running: only when it is gone are its devices given to another (L1)."""
    bare.load(
        *pairs(),
    )
    await operator(release="always")
    bare.create(pod("first"))
    await bare.wait_for("Pod", lambda body: not body["spec"].get("schedulingGates"))
    bind(bare, "first")
    bare.delete("Pod", "first")
    bare.create(pod("second"))
    await bare.wait_for("Pod", waits_for("NothingFits"))
    assert bare.get("ResourceSlice", gpus(0)["metadata"]["name"])
    assert bare.get("ResourceSlice", nics(0)["metadata"]["name"])

    bare.delete("Pod", "first", now=True)

    await bare.wait_for(
        "Pod", lambda body: body["metadata"]["name"] == "second" and not body["spec"].get("schedulingGates")
    )


async def test_a_dying_claim_that_somebody_else_keeps_is_still_known(
    cluster: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Dovetail's finalizer goes, another one stays: so does the claim, and the pod that names it hears so."""
    cluster.load(*pairs())
    await operator(release="always", resync_seconds=600)
    kept = claim("mine")
    kept["metadata"]["finalizers"] = ["example.com/keep"]
    cluster.create(kept)
    cluster.create(pod("first", claim="mine"))
    await cluster.wait_for("Pod", running_pod("first"))

    cluster.delete("ResourceClaim", "mine")
    cluster.delete("Pod", "first", now=True)
    await cluster.wait_for("ResourceClaim", is_free("mine"))
    cluster.create(pod("second", claim="mine"))

    told = await cluster.wait_for("Pod", waits_for())
    assert "being deleted" in condition(told)["message"]
