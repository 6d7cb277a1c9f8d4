"""Refusals come at once and say what is in the way and what would help (R-D1, R-E1, R-E2)."""

from typing import Any

import pytest

from dovetail.core.allocator import allocate, place
from dovetail.core.budget import Budget
from dovetail.core.outcome import DoesNotFit
from tests.support.builders import (
    GPU,
    NIC,
    NUMA,
    Json,
    ask,
    claim,
    device,
    held,
    inventory,
    request,
    sentence,
    slice_of,
)

ROOT = "resource.kubernetes.io/pcieRoot"


def eight(name: str, driver: str, skip: int | None = None) -> Json:
    """Eight devices, one per PCIe root; one may be missing."""
    return slice_of(
        [device(f"{name}{i}", {ROOT: f"pci{i}"}) for i in range(8) if i != skip], driver=driver, name=name
    )


def pairs(count: int) -> Any:
    """A claim for so many pairs, each on a PCIe root of its own."""
    requests = [request(f"{k}{i}", driver=d) for i in range(count) for k, d in (("g", GPU), ("n", NIC))]
    constraints = [{"matchAttribute": ROOT, "requests": [f"g{i}", f"n{i}"]} for i in range(count)]
    return claim(*requests, constraints=constraints)


def gpus_on(*places: int) -> Json:
    """GPUs on these NUMA nodes."""
    return slice_of([device(f"d{i}", numa=place) for i, place in enumerate(places)])


REFUSALS = {
    "32 of 31": (inventory(gpus_on(*[0] * 31)), claim(request(count=32))),
    "9 of 8 + 8": (inventory(gpus_on(*[0] * 8, *[1] * 8)), claim(request(count=9), match=NUMA)),
    "4 x 8 of 31": (
        inventory(gpus_on(*[0] * 31)),
        claim(*(request(f"r{i}", 8) for i in range(4))),
    ),
    "8 pairs, one missing": (inventory(eight("g", GPU), eight("n", NIC, skip=3)), pairs(8)),
    "4 + 3 pairs for 8, by NUMA node": (
        inventory(
            gpus_on(*[0] * 4, *[1] * 4),
            slice_of([device(f"n{i}", numa=int(i > 4)) for i in range(8)], driver=NIC),
        ),
        claim(
            *(request(f"g{i}") for i in range(8)),
            *(request(f"n{i}", driver=NIC) for i in range(8)),
            constraints=[{"matchAttribute": NUMA, "requests": [f"g{i}", f"n{i}"]} for i in range(8)],
        ),
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_a_glance_refuses_costs_no_search(name: str) -> None:
    """R-D1: claims that counting refuses are refused within a few hundred steps."""
    world, wanted = REFUSALS[name]
    budget = Budget(steps=500)

    assert isinstance(allocate(world, [wanted], "node", budget=budget), DoesNotFit)


def test_nodes_with_the_same_story_are_told_together() -> None:
    """R-E1: eighteen nodes in two sentences: twelve without a NIC beside the GPUs, six with half a pool."""
    slices = []
    for index in range(18):
        node = f"node-{index:02}"
        gpus = [device(f"g{i}", {ROOT: "pci0"}) for i in range(4)]
        slices.append(slice_of(gpus, node=node, pool=node, count=2 if index >= 12 else 1))
        slices.append(slice_of([device("n", {ROOT: "pci1"})], driver=NIC, node=node, pool=node))
    wanted = claim(request("g", 4), request("n", driver=NIC), match=ROOT)
    nodes = [f"node-{index:02}" for index in range(18)]

    outcome = place(inventory(*slices), [wanted], nodes, budget=Budget.unlimited())

    assert isinstance(outcome, DoesNotFit)
    assert sorted(len(story.nodes) for story in outcome.stories) == [6, 12]
    why = sentence(outcome)
    assert (
        "12 nodes (node-00, node-01, node-02 and 9 more): at best 4 of 4 devices of gpu.example.com (g)"
        in why
    )
    assert "is incomplete (1 of 2 slices of generation 1)" in why


def test_the_smallest_release_is_named() -> None:
    """R-E2: of eight devices held by five claims, the one that holds enough by itself is named."""
    holders = [
        held(*((GPU, "pool", f"d{i}") for i in range(4)), name="large"),
        *(held((GPU, "pool", f"d{i}"), name=f"small-{i}") for i in range(4, 8)),
    ]
    world = inventory(gpus_on(*[0] * 8), holders=holders)

    two = sentence(ask(world, claim(request(count=2))))
    one = sentence(ask(world, claim(request(count=1))))

    assert "8 in use" in two
    assert "it would fit on node node if claim default/large gave back d0 and d1" in two
    assert "if claim default/large gave back d0" in one


def test_the_constraint_in_the_way_is_named() -> None:
    """The refusal says that the claim would fit without one constraint, and without which."""
    world = inventory(gpus_on(0, 1))

    assert f"it would fit on node node without the constraint of claim default/claim on {NUMA}" in sentence(
        ask(world, claim(request(count=2), match=NUMA))
    )
