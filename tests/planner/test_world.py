"""The picture of the cluster is what was put into it last, and says what a change means."""

import copy
from time import process_time

import pytest

from dovetail.core.features import Features
from dovetail.core.values import DeviceKey
from dovetail.core.world import Change, Effect, World
from tests.planner.worlds import (
    Body,
    allocated,
    claim,
    device_class,
    devices,
    hardware,
    mapping,
    named,
    node,
    pod,
    template,
    world_of,
)

GPU = "gpu.example.com"
LATER = {"resourceVersion": "2", "generation": 7, "managedFields": [{"manager": "x"}], "finalizers": ["f"]}


def effect(change: Change | None) -> Effect | None:
    """What a change means, None where it means nothing."""
    return change.effect if change is not None else None


def holders(world: World, device: str, node_name: str = "n1") -> list[str]:
    """The claims that hold a device."""
    return [holder.claim for holder in world.inventory.holders(DeviceKey(GPU, node_name, device))]


@pytest.mark.parametrize(
    "body",
    [node("n1"), device_class(GPU), devices(GPU, "n1", [0]), mapping(), template(), claim(), pod()],
    ids=lambda body: body["kind"],
)
def test_a_change_that_no_decision_reads_means_nothing(body: Body) -> None:
    """Versions, managed fields and finalizers; a node's heartbeat is such a change."""
    world = World(Features())
    assert world.put(body["kind"], body) is not None
    again = copy.deepcopy(body)
    again["metadata"].update(LATER)
    assert world.put(body["kind"], again) is None


def test_other_kinds_are_ignored() -> None:
    """They mean nothing, and are no problem."""
    world = World(Features())
    assert world.put("Deployment", {"metadata": {"name": "d"}}) is None
    assert world.drop("Deployment", "default", "d") is None
    assert world.problems == {}


def test_what_frees_or_brings_devices_concerns_everyone() -> None:
    """So does what frees a node; a claim that is taken concerns its pods."""
    world = world_of(*hardware("n1"))
    assert effect(world.put("ResourceClaim", claim())) is Effect.CONSUMERS
    assert effect(world.put("ResourceClaim", claim(status=allocated("n1", "dev-0")))) is Effect.CONSUMERS
    assert effect(world.put("ResourceClaim", claim())) is Effect.EVERYONE
    world.put("ResourceClaim", claim(status=allocated("n1", "dev-0")))
    assert effect(world.drop("ResourceClaim", "default", "claim")) is Effect.EVERYONE
    assert effect(world.put("ResourceSlice", devices(GPU, "n1", [0, 0]))) is Effect.EVERYONE
    assert effect(world.put("Pod", pod())) is Effect.POD
    assert effect(world.put("Pod", pod(claims=[named("claim")]))) is Effect.CONSUMERS
    world.put("Pod", pod(nodeName="n1"))
    assert effect(world.put("Pod", pod(nodeName="n1", status={"phase": "Failed"}))) is Effect.EVERYONE
    world.put("Pod", pod(nodeName="n1"))
    assert effect(world.drop("Pod", "default", "pod")) is Effect.EVERYONE
    assert effect(world.drop("Node", "", "n1")) is Effect.EVERYONE
    assert world.drop("Node", "", "n1") is None


def test_the_json_is_kept_as_it_was_read() -> None:
    """For what is written back; fields that no model knows are in it."""
    body = claim()
    body["spec"]["fieldOfTomorrow"] = 1
    world = world_of(body)
    assert world.raw("ResourceClaim", "default", "claim") is body
    world.drop("ResourceClaim", "default", "claim")
    assert world.raw("ResourceClaim", "default", "claim") is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({**node("n1"), "status": {"allocatable": {"cpu": "lots"}}}, "no quantity"),
        ({**node("n1"), "spec": {"taints": [{"value": "x"}]}}, "key"),
        (devices(GPU, "n1", [0]) | {"spec": {"driver": 5}}, "driver"),
        (pod(containers=[{"resources": {"requests": {"cpu": "x"}}}]), "no quantity"),
        (mapping() | {"spec": {"attribute": "a/b", "rule": []}}, "rule"),
        ({"kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "default"}, "spec": 1}, "spec"),
        ({"kind": "Pod", "metadata": {"namespace": "default"}}, "name"),
        ({"kind": "Pod", "metadata": []}, "metadata"),
    ],
)
def test_a_malformed_object_is_a_problem_and_counts_as_absent(body: Body, words: str) -> None:
    """The reason names what is wrong; mended, it is a problem no longer."""
    world = World(Features())
    assert world.put(body["kind"], body) is not None
    (problem,) = world.problems.values()
    assert problem.kind == body["kind"]
    assert words in problem.reason
    assert not any((world.pods, world.claims, len(world.nodes)))
    world.drop(*(problem.kind, *problem.key))
    assert world.problems == {}


def test_an_object_that_becomes_malformed_no_longer_counts() -> None:
    """What it was before is gone until it is mended."""
    world = world_of(node("n1"))
    broken = {**node("n1"), "status": {"allocatable": {"cpu": "lots"}}}
    assert effect(world.put("Node", broken)) is Effect.EVERYONE
    assert world.nodes.find("n1") is None
    assert effect(world.put("Node", node("n1"))) is Effect.EVERYONE
    assert world.nodes.find("n1") is not None
    assert world.problems == {}


def broken_claim(*results: Body, **more: object) -> Body:
    """A claim whose spec is malformed and which holds devices."""
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": "claim", "namespace": "default"},
        "spec": {"devices": "all of them"},
        "status": {"allocation": {"devices": {"results": list(results)}, **more}},
    }


def result(device: str, **more: object) -> Body:
    """One allocated device."""
    return {"request": "gpu", "driver": GPU, "pool": "n1", "device": device, **more}


def test_the_devices_of_a_malformed_claim_stay_taken() -> None:
    """As far as its allocation can be read: also those of a result that is itself malformed elsewhere."""
    world = world_of(*hardware("n1"), broken_claim(result("dev-0"), result("dev-1", tolerations=5)))
    assert ("ResourceClaim", ("default", "claim")) in world.problems
    assert holders(world, "dev-0") == ["claim"]
    assert holders(world, "dev-1") == ["claim"]


def test_what_a_claim_held_before_it_broke_stays_taken_where_it_cannot_be_read() -> None:
    """And is free again once the claim is mended, or gone."""
    world = world_of(*hardware("n1"), claim(status=allocated("n1", "dev-0")))
    for unreadable in (broken_claim(5), broken_claim(devices="x"), broken_claim() | {"status": "allocated"}):  # type: ignore[arg-type]
        world.put("ResourceClaim", unreadable)
        assert holders(world, "dev-0") == ["claim"], unreadable
    world.put("ResourceClaim", claim())
    assert holders(world, "dev-0") == []
    world.put("ResourceClaim", broken_claim(result("dev-0")))
    assert effect(world.drop("ResourceClaim", "default", "claim")) is Effect.EVERYONE
    assert holders(world, "dev-0") == []


def test_the_pods_of_a_claim_are_those_that_name_it_or_own_it() -> None:
    """Not those that are done, nor another pod whose status names a claim that it does not own."""
    foreign = {"resourceClaimStatuses": [{"name": "devices", "resourceClaimName": "made"}]}
    world = world_of(
        template(),
        claim("shared"),
        claim("made", owner="owner"),
        pod("first", claims=[named("shared")]),
        pod("second", claims=[named("shared")]),
        pod("done", claims=[named("shared")], status={"phase": "Succeeded"}),
        pod("owner", template="template"),
        pod("thief", template="template", status=foreign),
    )
    assert [each.metadata.name for each in world.pods_of_claim("default", "shared")] == ["first", "second"]
    assert [each.metadata.name for each in world.pods_of_claim("default", "made")] == ["owner"]


def test_the_order_of_arrival_does_not_matter() -> None:
    """Claims before their pods, or after: the same picture."""
    bodies = [
        *hardware("n1"),
        template(),
        claim(owner="pod", status=allocated("n1", "dev-0")),
        pod(template="template", cpu="2"),
    ]
    for order in (bodies, bodies[::-1]):
        world = world_of(*order)
        state = world.nodes.find("n1")
        assert state is not None
        assert state.used == {"cpu": 2000}
        assert [entry.key for entry in world.claims_of_pod(world.pods["default", "pod"])] == [
            ("default", "claim")
        ]


def test_nothing_is_left_of_what_came_and_went() -> None:
    """Nodes, pods and claims that are gone leave no trace in the books."""
    world = World(Features())
    for body in (
        *hardware("n1"),
        template(),
        claim(owner="pod", status=allocated("n1", "dev-0")),
        pod(nodeName="n1"),
    ):
        world.put(body["kind"], body)
    world.drop("Node", "", "n1")
    world.drop("ResourceSlice", "", f"n1-{GPU}")
    world.drop("ResourceSlice", "", "n1-nic.example.com")
    world.drop("ResourceClaim", "default", "claim")
    world.drop("Pod", "default", "pod")
    assert world.nodes._states == {}
    assert world.nodes._homes == {}
    assert world._references._made_for == {}
    assert world._references._named_by == {}
    assert world._references._pods_by_uid == {}


def test_parameters_that_nest_without_end_make_their_claim_malformed() -> None:
    """In spec or status; the devices stay taken, and reading it costs no more than any other claim."""
    deep: object = "x"
    for _ in range(5000):
        deep = [deep]
    config = [{"opaque": {"driver": GPU, "parameters": {"p": deep}}}]
    held = claim(status=allocated("n1", "dev-0"))
    in_spec = held | {"spec": {"devices": {"config": config}}}
    in_status = copy.deepcopy(held)
    in_status["status"]["allocation"]["devices"]["config"] = config
    for body in (in_spec, in_status):
        world = world_of(*hardware("n1"), body)
        assert "nested more than" in world.problems["ResourceClaim", ("default", "claim")].reason
        assert holders(world, "dev-0") == ["claim"]


def test_a_claim_that_many_entries_name_is_taken_in_at_once() -> None:
    """Its author has devices by none of them yet, and changes it as often as he likes."""
    world = world_of(*hardware("n1"))
    entries = [named(f"none-{index}", f"e{index}") for index in range(1_000)]
    for index in range(50):
        world.put("Pod", pod(f"p{index}", claims=[named("claim"), *entries]))
    began = process_time()
    for index in range(20):
        assert (
            world.put("ResourceClaim", claim("claim", metadata={"annotations": {"a": str(index)}}))
            is not None
        )
        world.drop("ResourceClaim", "default", "claim")
    assert process_time() - began < 1.0
