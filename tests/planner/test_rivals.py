"""Which pods could be given a device that a claim of ours has (V-21)."""

from time import process_time
from typing import Any

import pytest

from dovetail.core.overcommitment import is_overcommitted
from dovetail.core.rivals import first_rival
from dovetail.core.world import World
from tests.planner.worlds import (
    Body,
    allocated,
    claim,
    device_class,
    devices,
    devices_spec,
    hardware,
    named,
    pod,
    request,
    template,
    world_of,
)

GPU, NIC = "gpu.example.com", "nic.example.com"
MINE, SUSPECT = ("default", "mine"), ("default", "suspect")
MOST_SECONDS = 1.0
FENCE = {"key": "dovetail.dev/owned", "value": "gpus", "effect": "NoSchedule"}


def plain(driver: str = GPU, **more: Any) -> Body:
    """A request for one device without any constraint."""
    return devices_spec(request("device", driver, **more), match=None)


def world_with(
    spec: Body | None = None, *bodies: Body, status: Body | None = None, **of_suspect: Any
) -> World:
    """Our claim holds dev-0 of n1; a pod without a gate has a claim with this specification."""
    mine = claim("mine", owner="pod", status=allocated("n1", "dev-0", reserved=["pod"]))
    suspect = pod("suspect", gated=False, claims=[named("theirs")], **of_suspect)
    theirs = claim("theirs", spec=spec or plain(), status=status)
    return world_of(
        *hardware("n1", "n2"), template(), mine, pod(template="template"), theirs, suspect, *bodies
    )


def rival(world: World, *young: str) -> bool:
    """Whether the suspect is a rival."""
    return first_rival(world, [MINE], [SUSPECT], young_rules=young) == SUSPECT


def rule(name: str = "fence", **selector: str) -> Body:
    """A DeviceTaintRule that fences the GPUs."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": {"deviceSelector": selector or {"driver": GPU}, "taint": FENCE},
    }


def test_a_selector_that_costs_too_much_may_take_anything() -> None:
    """Another's expressions are tried for a bounded number of steps; what they say beyond is not known."""
    cheap, dear = (f"lists.range({count}).exists(x, x < 0)" for count in (100, 60_000))
    assert not rival(world_with(plain(selectors=[{"cel": {"expression": cheap}}])))
    assert rival(world_with(plain(selectors=[{"cel": {"expression": dear}}])))


def test_a_plain_claim_for_the_same_class_is_a_rivals() -> None:
    """kube-scheduler could give it the very device."""
    assert rival(world_with())


@pytest.mark.parametrize(
    "spec",
    [
        plain(NIC),
        plain(selectors=[{"cel": {"expression": f'device.attributes["{GPU}"].numaNode == 1'}}]),
        plain(selectors=[{"cel": {"expression": f'device.attributes["{GPU}"].nothing == 1'}}]),
        plain(adminAccess=True),
        devices_spec(request("device", "no.such.class"), match=None),
        devices_spec(request("gpu", GPU), request("nic", NIC)),
    ],
    ids=["other class", "other NUMA node", "failing selector", "admin access", "no class", "ours alone"],
)
def test_who_cannot_take_the_device_is_no_rival(spec: Body) -> None:
    """Class, selectors and whose the claim is are looked at, as kube-scheduler does."""
    assert not rival(world_with(spec))


def test_an_alternative_is_enough() -> None:
    """A prioritized list may end at its last alternative, which takes the device."""
    alternatives = [
        {"name": "best", "deviceClassName": NIC, "count": 1},
        {"name": "else", "deviceClassName": GPU, "count": 1},
    ]
    assert rival(world_with(devices_spec({"name": "device", "firstAvailable": alternatives}, match=None)))


def test_a_claim_that_both_can_allocate_is_a_rivals() -> None:
    """Ours by configuration alone: kube-scheduler allocates it as well (V-22)."""
    config = [{"opaque": {"driver": "dovetail.dev", "parameters": {}}}]
    assert rival(world_with(devices_spec(request("gpu", GPU), match=None, config=config)))


def test_an_allocated_claim_takes_nothing_more() -> None:
    """What kube-scheduler has written is seen by everybody."""
    assert not rival(world_with(status=allocated("n2", "dev-1")))


def test_a_claim_that_is_still_to_be_made_counts() -> None:
    """A template says what its claim will ask for."""
    suspect = pod("suspect", gated=False, template="plain")
    assert rival(world_with(plain(NIC), template("plain", spec=plain()), suspect))


def test_a_pod_that_cannot_use_the_node_is_no_rival() -> None:
    """Its node selector keeps kube-scheduler from the device's node."""
    assert not rival(world_with(nodeSelector={"kubernetes.io/hostname": "n2"}))


def test_a_pod_for_an_extended_resource_is_a_rival() -> None:
    """The class serves the resource with devices (KEP-5004)."""
    gpus = device_class(GPU, extendedResourceName="example.com/gpu")
    suspect = pod("suspect", gated=False)
    suspect["spec"]["containers"][0]["resources"] = {"requests": {"example.com/gpu": "1"}}
    assert rival(world_with(plain(NIC), gpus, suspect))


def test_behind_a_fence_there_is_no_rival() -> None:
    """A taint that the request does not tolerate keeps kube-scheduler off (M1), once it knows the taint."""
    world = world_with(plain(), rule())
    assert not rival(world)
    assert rival(world, "fence")
    assert rival(world_with(plain(), rule(pool="n2")))


def test_a_toleration_passes_the_fence() -> None:
    """Who tolerates everything is a rival on fenced devices too."""
    assert rival(world_with(plain(tolerations=[{"operator": "Exists"}]), rule()))


def partitions() -> list[Body]:
    """Two halves and the whole of one device: the counters of the slice allow one whole or two halves."""
    slice_of = devices(GPU, "n1", (0, 0, 0))
    for device, slots in zip(slice_of["spec"]["devices"], ("2", "1", "1"), strict=True):
        device["consumesCounters"] = [{"counterSet": "card", "counters": {"slots": {"value": slots}}}]
    counters = devices(GPU, "n1", ())
    counters["metadata"]["name"] = "n1-counters"
    counters["spec"]["sharedCounters"] = [{"name": "card", "counters": {"slots": {"value": "2"}}}]
    for each in (slice_of, counters):
        each["spec"]["pool"]["resourceSliceCount"] = 2
    return [slice_of, counters]


def test_a_device_on_the_same_counters_is_at_stake() -> None:
    """A rival for another partition of the card can spend what ours is made of."""
    other = f'device.attributes["{GPU}"].numaNode == 0'
    world = world_with(plain(selectors=[{"cel": {"expression": other}}]))
    halves = partitions()
    halves[0]["spec"]["devices"][0]["attributes"]["numaNode"]["int"] = 7
    for each in halves:
        world.put("ResourceSlice", each)
    assert rival(world)


def test_counters_spent_twice_are_noticed() -> None:
    """The whole card and a half of it are held by two claims: more than there is."""
    world = world_with()
    for each in partitions():
        world.put("ResourceSlice", each)
    assert not is_overcommitted(world, MINE)

    world.put("ResourceClaim", claim("theirs", spec=plain(), status=allocated("n1", "dev-1")))

    assert is_overcommitted(world, MINE)


def test_what_can_take_the_device_is_looked_for_in_a_bounded_number_of_steps() -> None:
    """Hundreds of suspects with all the requests that a claim may have keep nobody waiting for an answer."""
    parts = [{"name": f"p{index}", "deviceClassName": NIC} for index in range(8)]
    wanted = {
        "devices": {"requests": [{"name": f"r{index}", "firstAvailable": parts} for index in range(32)]}
    }
    world = world_with(wanted, device_class(NIC))
    suspects = [f"suspect-{index}" for index in range(500)]
    for name in suspects:
        world.put("Pod", pod(name, gated=False, claims=[named("theirs")] * 8))
    began = process_time()
    assert first_rival(world, [MINE], [("default", name) for name in suspects]) is not None
    assert process_time() - began < MOST_SECONDS
