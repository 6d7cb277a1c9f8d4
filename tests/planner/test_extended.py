"""Devices for extended resources: until kube-scheduler gives them, nothing says that they are taken."""

import pytest

from dovetail.core.decisions import Decision, DoesNotFit, Place
from dovetail.core.extended_holds import settle
from dovetail.core.world import World
from tests.planner.worlds import (
    Body,
    allocated,
    claim,
    decide,
    device_class,
    devices_spec,
    hardware,
    named,
    node,
    pod,
    request,
    world_of,
)

GPU, NIC = "gpu.example.com", "nic.example.com"
RESOURCE = "example.com/gpu"
ONE_NIC = devices_spec(request("nic", NIC))


def backing() -> Body:
    """The class of the GPUs, which serves the resource."""
    return device_class(GPU, extendedResourceName=RESOURCE)


def asking(name: str, count: int = 1, **more: object) -> Body:
    """A pod with a NIC by claim and GPUs by resource."""
    main = {"name": "main", "resources": {"requests": {RESOURCE: str(count)}}}
    return pod(name, claims=[named(f"of-{name}")], containers=[main], **more)  # type: ignore[arg-type]


def placed_first(*bodies: Body, count: int = 1, **more: object) -> World:
    """Two GPUs and two NICs on one node; the first pod has its NIC there, and no GPU yet."""
    status = allocated("n1", "dev-0", driver=NIC, reserved=["first"])
    return world_of(
        *hardware("n1"),
        backing(),
        claim("of-first", spec=ONE_NIC, status=status),
        claim("of-second", spec=ONE_NIC),
        asking("first", count, **more),
        asking("second"),
        *bodies,
    )


def second(world: World) -> Decision:
    settle(world)
    return decide(world, "second")


def test_a_pod_that_is_about_to_get_its_gpus_holds_them() -> None:
    """Nothing is left for the second pod, whose node would turn out to be useless."""
    assert isinstance(second(placed_first(count=1)), Place)
    refused = second(placed_first(count=2))
    assert isinstance(refused, DoesNotFit)
    assert "first-extended-resources-*" in refused.sentence


def test_what_kube_scheduler_has_given_is_not_held_twice() -> None:
    """The claim that it made holds the devices; ours lets go."""
    made = claim("made", spec=devices_spec(request("gpu", GPU), match=None), status=allocated("n1", "dev-0"))
    world = placed_first(count=1)
    settle(world)

    world.put("ResourceClaim", made)
    bound = asking(
        "first", status={"extendedResourceClaimStatus": {"resourceClaimName": "made"}}, nodeName="n1"
    )
    world.put("Pod", bound)

    assert isinstance(second(world), Place)


@pytest.mark.parametrize("how", ["deleted", "done", "given up"])
def test_devices_are_let_go_with_their_pod(how: str) -> None:
    """Whatever ends the pod's hope for the node frees the devices for others."""
    world = placed_first(count=2)
    assert isinstance(second(world), DoesNotFit)

    if how == "deleted":
        world.drop("Pod", "default", "first")
    elif how == "done":
        world.put("Pod", asking("first", 2, status={"phase": "Failed"}))
    else:
        world.put("ResourceClaim", claim("of-first", spec=ONE_NIC))

    assert isinstance(second(world), Place)
    assert not world.extended_holds


def test_a_node_whose_plugin_serves_the_resource_holds_no_devices_for_it() -> None:
    """Such a resource is capacity of the node."""
    plugin = node("n1", plugins={RESOURCE: "4"})
    world = placed_first(plugin, count=2)
    settle(world)

    assert not world.extended_holds


def test_a_pod_is_not_in_the_way_of_its_own_devices() -> None:
    """What is held for it counts as served when it is decided about again."""
    world = placed_first(count=2)
    settle(world)
    more = claim("more", spec=ONE_NIC)
    main = {"name": "main", "resources": {"requests": {RESOURCE: "2"}}}
    world.put("ResourceClaim", more)
    world.put("Pod", pod("first", claims=[named("of-first", "a"), named("more", "b")], containers=[main]))
    settle(world)

    assert isinstance(decide(world, "first"), Place)


def test_the_decision_names_what_kube_scheduler_chooses_itself() -> None:
    """Those devices need not be aligned with the claim's."""
    world = placed_first(count=1)
    decision = second(world)

    assert isinstance(decision, Place)
    assert decision.extended == (RESOURCE,)


def test_pods_that_cannot_be_served_cost_decisions_nothing() -> None:
    """What was tried in vain is not tried again at every decision, only when the pod changes."""
    world = placed_first(count=3)
    settle(world)

    assert not world.extended_holds
    assert not world.extended_due
    world.put("Pod", asking("first", 2))
    settle(world)
    assert world.extended_holds


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize(("count", "fits"), [(2, True), (3, False)])
def test_a_pod_that_has_its_claim_is_told_of_the_gpus_that_its_node_lacks(
    gated: bool, count: int, fits: bool
) -> None:
    """Its claim ties it to the node, where kube-scheduler would look for the GPUs in vain."""
    status = allocated("n1", "dev-0", driver=NIC)
    world = world_of(
        *hardware("n1"),
        backing(),
        claim("of-first", spec=ONE_NIC, status=status),
        asking("first", count, gated=gated),
    )

    decision = decide(world, "first")

    assert isinstance(decision, DoesNotFit) is not fits
    assert fits or "needs 3 devices of gpu.example.com" in decision.sentence  # type: ignore[union-attr]


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize(("count", "fits"), [(1, True), (2, False)])
def test_a_pod_that_has_its_claim_is_told_of_a_plain_claim_that_its_node_cannot_serve(
    gated: bool, count: int, fits: bool
) -> None:
    """One of the two GPUs is held."""
    plain = devices_spec(request("gpu", GPU, count=count), match=None)
    world = world_of(
        *hardware("n1"),
        claim("ours", status=allocated("n1", "dev-0")),
        claim("plain", spec=plain),
        pod("first", claims=[named("ours", "a"), named("plain", "b")], gated=gated),
    )

    assert isinstance(decide(world, "first"), DoesNotFit) is not fits
