"""A pod goes where its volumes can be reached and attached, as kube-scheduler says."""

from typing import Any

import pytest

from dovetail.core.node_refusals import NodeCause
from tests.nodes.asking import candidates, cause, usable
from tests.planner.worlds import Body, node, pod, world_of

ZONE = "topology.kubernetes.io/zone"
NODES = [node("a1", labels={ZONE: "a"}), node("b1", labels={ZONE: "b"})]


def with_volume(name: str = "pod", claim: str = "data", **spec: Any) -> Body:
    """A pod with a volume."""
    return pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}], **spec)


def volume_claim(
    name: str = "data", *, volume: str | None = "disk", storage: str | None = None, **spec: Any
) -> Body:
    """A claim that is bound to a volume, unless that is None."""
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume else {}
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", **bound},
        "spec": {**wanted, "storageClassName": storage, **({"volumeName": volume} if volume else {}), **spec},
    }


def volume(name: str = "disk", *, zone: str | None = None, labels: Body | None = None, **spec: Any) -> Body:
    """A volume that the nodes of a zone reach."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if zone else {}
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], **affinity, **spec},
    }


def storage_class(name: str = "late", *, provisioner: str = "csi.example.com", **more: Any) -> Body:
    """A class that binds once the node is known."""
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    return {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner, **late, **more}


def test_a_bound_volume_ties_the_pod_to_the_nodes_that_reach_it() -> None:
    """By its node affinity, or by the zone labels that older volumes have."""
    world = world_of(*NODES, volume_claim(), volume(zone="a"), with_volume())
    assert usable(world) == ("a1",)
    assert cause(world, "b1") is NodeCause.VOLUME
    assert usable(world_of(*NODES, volume_claim(), volume(labels={ZONE: "b__c"}), with_volume())) == ("b1",)
    assert usable(world_of(*NODES, volume_claim(), volume(), with_volume())) == ("a1", "b1")


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([], "PersistentVolumeClaim data does not exist"),
        ([volume_claim()], "PersistentVolume disk does not exist"),
        ([volume_claim(volume=None)], "PersistentVolumeClaim data is not bound"),
        (
            [volume_claim(volume=None, storage="now"), storage_class("now", volumeBindingMode="Immediate")],
            "PersistentVolumeClaim data is not bound",
        ),
    ],
)
def test_what_is_wrong_with_a_volume_is_said(objects: list[Body], words: str) -> None:
    """No node can be used before that is mended."""
    assert {
        refusal.detail for refusal in candidates(world_of(*NODES, *objects, with_volume())).refused.values()
    } == {words}


def test_a_volume_that_is_made_late_follows_the_node() -> None:
    """Within the topologies that its class allows."""
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]
    claim = volume_claim(volume=None, storage="late")
    assert usable(world_of(*NODES, claim, storage_class(), with_volume())) == ("a1", "b1")
    assert usable(world_of(*NODES, claim, storage_class(allowedTopologies=topologies), with_volume())) == (
        "b1",
    )


def test_a_volume_that_is_bound_late_has_to_be_available_on_the_node() -> None:
    """One that fits the claim: class, size, access, and not promised to another."""
    claim = volume_claim(volume=None, storage="local")
    local = storage_class("local", provisioner="kubernetes.io/no-provisioner")
    fitting = volume(zone="a", storageClassName="local")
    others = [
        volume("small", zone="b", storageClassName="local", capacity={"storage": "1Gi"}),
        volume("other-class", zone="b", storageClassName="fast"),
        volume("taken", zone="b", storageClassName="local", claimRef={"namespace": "default", "name": "x"}),
        volume("read-only", zone="b", storageClassName="local", accessModes=["ReadOnlyMany"]),
    ]
    assert usable(world_of(*NODES, claim, local, *others, with_volume())) == ()
    assert usable(world_of(*NODES, claim, local, *others, fitting, with_volume())) == ("a1",)


def test_an_ephemeral_volume_has_a_claim_of_the_pods_name() -> None:
    """It is judged like any other."""
    ephemeral = pod(volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}])
    assert usable(world_of(*NODES, volume_claim("pod-scratch"), volume(zone="b"), ephemeral)) == ("b1",)


def test_a_claim_for_one_pod_serves_one_pod() -> None:
    """ReadWriteOncePod: another pod that has a node has it."""
    claim = volume_claim(accessModes=["ReadWriteOncePod"])
    world = world_of(*NODES, claim, volume(), with_volume())
    assert usable(world) == ("a1", "b1")
    world.put("Pod", with_volume("other", gated=False, nodeName="a1"))
    assert usable(world) == ()


def attachable(node_name: str, count: int | None) -> Body:
    """A node whose driver attaches so many volumes."""
    driver = {"name": "csi.example.com", **({"allocatable": {"count": count}} if count is not None else {})}
    return {"kind": "CSINode", "metadata": {"name": node_name}, "spec": {"drivers": [driver]}}


def csi(name: str) -> Body:
    """A volume of the driver."""
    return volume(name, csi={"driver": "csi.example.com", "volumeHandle": f"handle-{name}"})


def test_a_driver_attaches_only_so_many_volumes_to_a_node() -> None:
    """A volume that is attached already costs nothing; without a count there is no limit."""
    world = world_of(
        *NODES,
        attachable("a1", 1),
        attachable("b1", None),
        csi("disk"),
        csi("disk2"),
        volume_claim(),
        volume_claim("data2", volume="disk2"),
        with_volume("other", "data", gated=False, nodeName="a1"),
        with_volume("same", "data"),
        with_volume("pod", "data2"),
    )
    assert usable(world) == ("b1",)
    assert cause(world, "a1") is NodeCause.VOLUME_LIMIT
    assert usable(world, "same") == ("a1", "b1")


def test_a_malformed_size_is_a_problem_of_the_object() -> None:
    """It never disturbs a decision."""
    world = world_of(*NODES, volume(capacity={"storage": "big"}))
    assert "no quantity" in world.problems["PersistentVolume", ("", "disk")].reason
