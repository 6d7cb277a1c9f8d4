"""Small cases that people ran into, and what each of them needs (field-cases R-…, behaviours T-…)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.api.slices import ResourceSlice
from dovetail.core.attributes import Mappings
from dovetail.core.inventory import Inventory
from dovetail.core.outcome import DoesNotFit, Fits, RequestInvalid
from tests.support.builders import (
    ALL_FEATURES,
    GPU,
    NIC,
    NUMA,
    Json,
    allocated,
    ask,
    cel,
    claim,
    device,
    device_class,
    held,
    inventory,
    mapping,
    names,
    request,
    sentence,
    slice_of,
)

SLICES = Path(__file__).parent.parent / "data" / "slices"
ROOT = "resource.kubernetes.io/pcieRoot"


def published(*files: str) -> Iterator[Json]:
    """The slices of files in `tests/data/slices`."""
    for file in files:
        yield from yaml.safe_load_all((SLICES / f"{file}.yaml").read_text())


def world_of(*files: str, mappings: Mappings | None = None) -> tuple[Inventory, str]:
    """An inventory of real drivers' slices on one node, with a class per driver; and the node."""
    made = Inventory(ALL_FEATURES, mappings)
    bodies = list(published(*files))
    for body in bodies:
        made.put_slice(ResourceSlice.parse(body))
    for driver in {body["spec"]["driver"] for body in bodies}:
        made.put_class(device_class(driver))
    return made, next(body["spec"]["nodeName"] for body in bodies if "nodeName" in body["spec"])


# -- alignment ---------------------------------------------------------------------------------------


def test_drivers_without_a_common_name_are_told_apart() -> None:
    """R-A4: without a mapping the refusal names the key that each driver lacks."""
    gpu = slice_of([device("g", {"pciRoot": "pci0000:80"})], driver="gpu.intel.com")
    nic = slice_of([device("n", {ROOT: "pci0000:80"})], driver=NIC)
    wanted = claim(request("g", driver="gpu.intel.com"), request("n", driver=NIC), match=ROOT)

    why = sentence(ask(inventory(gpu, nic), wanted))

    assert f"{ROOT} is missing on all devices of gpu.intel.com (does not publish it)" in why
    assert NIC not in why


def test_a_mapping_bridges_names() -> None:
    """R-A4, T-14: with a mapping the same devices fit, and the common value is told."""
    gpu = slice_of([device("g", {"pciRoot": "pci0000:80"})], driver="gpu.intel.com")
    nic = slice_of([device("n", {ROOT: "pci0000:80"})], driver=NIC)
    bridge = mapping(
        "dovetail.dev/root",
        {
            "gpu.intel.com": 'device.attributes["gpu.intel.com"].pciRoot',
            NIC: 'device.attributes["resource.kubernetes.io"].pcieRoot',
        },
    )
    requests = (request("g", driver="gpu.intel.com"), request("n", driver=NIC))

    outcome = ask(inventory(gpu, nic, mappings=[bridge]), claim(*requests, match="dovetail.dev/root"))

    assert names(outcome) == ["g", "n"]
    assert isinstance(outcome, Fits)
    assert [entry.as_json() for entry in outcome.allocations[0].alignment] == [
        {"attribute": "dovetail.dev/root", "requests": ["g", "n"], "value": "pci0000:80"}
    ]


def test_a_bare_name_lies_in_the_drivers_domain() -> None:
    """R-A5: an unqualified attribute is found under the driver's name, and nowhere else."""
    world = inventory(slice_of([device("a", {"numaNode": 1})]))

    assert names(ask(world, claim(request(), match=f"{GPU}/numaNode"))) == ["a"]
    assert isinstance(ask(world, claim(request(), match="resource.kubernetes.io/numaNode")), DoesNotFit)


@pytest.mark.parametrize(
    ("values", "fit"),
    [
        (([5, 4, 6, 7], [6, 4, 5, 7], 4), True),
        (([5, 4, 6, 7], [6, 4, 5, 7], 0), False),
        ((5, 6, 4), False),
        (([7, 6, 4, 5], [5, 4, 6, 7], [4]), True),
    ],
)
def test_lists_match_when_all_have_a_value_in_common(values: tuple[Any, ...], fit: bool) -> None:
    """R-A6: quadrants of a socket match across drivers, in whatever order the lists are written."""
    drivers = ("gpu.x", "nic.x", "cpu.x")
    slices = [slice_of([device("d", numa=v)], driver=d) for d, v in zip(drivers, values, strict=True)]

    outcome = ask(inventory(*slices), claim(*(request(d[:3], driver=d) for d in drivers), match=NUMA))

    assert isinstance(outcome, Fits) is fit


def test_lists_need_the_intersection_of_all_not_of_pairs() -> None:
    """{1,2}, {2,3} and {1,3} have something in common two by two, and nothing together."""
    world = inventory(slice_of([device(f"d{i}", numa=v) for i, v in enumerate([[1, 2], [2, 3], [1, 3]])]))

    assert isinstance(ask(world, claim(request(count=2), match=NUMA)), Fits)
    assert isinstance(ask(world, claim(request(count=3), match=NUMA)), DoesNotFit)


def test_several_common_values_are_all_told() -> None:
    """A match that leaves more than one value says so (allocation-rules 2.10)."""
    world = inventory(slice_of([device("a", numa=[1, 0]), device("b", numa=[0, 1, 2])]))

    outcome = ask(world, claim(request(count=2), match=NUMA))

    assert isinstance(outcome, Fits)
    assert outcome.allocations[0].alignment[0].value == (0, 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"bool": True}, {"int": 1}),
        ({"string": "1"}, {"int": 1}),
        ({"version": "1.0.0"}, {"string": "1.0.0"}),
    ],
)
def test_values_of_different_types_never_match(one: Json, other: Json) -> None:
    """R-A7: what looks alike and has another type is not the same."""
    world = inventory(slice_of([device("a", {"x": one}), device("b", {"x": other})]))

    assert isinstance(ask(world, claim(request(count=2), match=f"{GPU}/x")), DoesNotFit)
    assert isinstance(ask(world, claim(request(count=2), distinct=f"{GPU}/x")), Fits)


def test_missing_never_equals_missing() -> None:
    """R-A8: two devices without the attribute are not aligned; each is refused for lacking it."""
    world = inventory(slice_of([device("a"), device("b")]))

    outcome = ask(world, claim(request(count=2), match=NUMA))

    assert "does not publish it" in sentence(outcome)


def test_an_unknown_place_is_no_place() -> None:
    """R-A8: a mapping that reads -1 as unknown leaves the device out, and a third one is taken."""
    rules = {GPU: f'device.attributes["{GPU}"].numa'}
    place = mapping("dovetail.dev/numa", rules, unknown=[-1])
    devices = [device("a", {"numa": -1}), device("b", {"numa": -1}), device("c", {"numa": 0})]
    world = inventory(slice_of(devices), mappings=[place])

    assert names(ask(world, claim(request(), match="dovetail.dev/numa"))) == ["c"]
    assert "-1 stands for unknown" in sentence(
        ask(inventory(slice_of(devices[:2]), mappings=[place]), claim(request(), match="dovetail.dev/numa"))
    )


def test_memory_only_numa_nodes_can_be_mapped() -> None:
    """R-A9: a GPU on a memory-only NUMA node matches with a mapping, and is refused honestly without."""
    gpu = slice_of([device("g", numa=2)])
    nic = slice_of([device("n", numa=0)], driver=NIC)
    wanted = (request("g"), request("n", driver=NIC))
    table = mapping(
        "dovetail.dev/place",
        {
            GPU: 'device.attributes["resource.kubernetes.io"].numaNode == 2 ? 0 : 1',
            NIC: 'device.attributes["resource.kubernetes.io"].numaNode',
        },
    )

    refused = ask(inventory(gpu, nic), claim(*wanted, match=NUMA))
    served = ask(inventory(gpu, nic, mappings=[table]), claim(*wanted, match="dovetail.dev/place"))

    assert f"on {NUMA} 0" in sentence(refused)
    assert names(served) == ["g", "n"]


def test_all_needs_a_device_and_every_one_of_them() -> None:
    """R-A19: "all" is not satisfied by none, nor while one of them is in use."""
    everything = {"allocationMode": "All"}
    body = request()
    body["exactly"] = {"deviceClassName": GPU, **everything}

    assert isinstance(ask(inventory(), claim(body)), DoesNotFit)
    world = inventory(slice_of([device("a"), device("b")]), holders=[held((GPU, "pool", "a"))])
    assert isinstance(ask(world, claim(body)), DoesNotFit)
    world.drop_claim("default", "holder")
    assert names(ask(world, claim(body))) == ["a", "b"]


# -- choosing ----------------------------------------------------------------------------------------


def test_a_request_selector_is_not_asked_about_devices_outside_the_class() -> None:
    """T-10: where the class says no, the request's selector never runs; where it fails, the claim is told."""
    world = inventory(slice_of([device("n")], driver=NIC), slice_of([device("a", {"size": 3})]))

    assert names(ask(world, claim(request(**cel(f'device.attributes["{GPU}"].size > 2'))))) == ["a"]
    with pytest.raises(RequestInvalid, match=r"request 'r', selector 0 on gpu.example.com/pool/a"):
        ask(world, claim(request(**cel(f'device.attributes["{GPU}"].weight > 2'))))


def test_class_configuration_comes_first_and_changes_no_choice() -> None:
    """T-11: entries of the class precede those of the claim; both say where they come from."""
    world = inventory(slice_of([device("a")]))
    body = device_class(GPU).model_dump(mode="json", by_alias=True, exclude_unset=True)
    body["spec"]["config"] = [{"opaque": {"driver": GPU, "parameters": {"from": "class"}}}]
    world.put_class(type(device_class(GPU)).parse(body))
    own = {"opaque": {"driver": GPU, "parameters": {"from": "claim"}}}

    outcome = ask(world, claim(request(), config=[own]))

    assert isinstance(outcome, Fits)
    assert outcome.allocations[0].body["devices"]["config"] == [
        {"source": "FromClass", "opaque": {"driver": GPU, "parameters": {"from": "class"}}},
        {"source": "FromClaim", "opaque": {"driver": GPU, "parameters": {"from": "claim"}}},
    ]


GB300 = ("azure-gb300__gpu-nvidia", "azure-gb300__dranet")


def gb300(gpus: int, nics: int) -> Any:
    """So many GPUs and NICs of a GB300 node on one NUMA node."""
    requests = [request("gpu", gpus, driver="gpu.nvidia.com"), request("nic", nics, driver="dra.net")]
    world, node = world_of(*GB300, mappings=Mappings.of(()))
    return ask(world, claim(*requests, match="dovetail.dev/numaNode"), node=node)


def test_gb300_serves_what_it_has() -> None:
    """T-13: one GPU and two NICs of one NUMA node fit; a third NIC is not there."""
    fitting = gb300(1, 2)

    assert len(names(fitting)) == 3
    assert isinstance(gb300(1, 3), DoesNotFit)


def test_gb300_refuses_with_numbers() -> None:
    """T-13: eight GPUs and a NIC on one NUMA node are refused with what there is of each."""
    why = sentence(gb300(8, 1))

    assert "request gpu needs 8 devices of gpu.nvidia.com, and 4 of 4 can be taken" in why
    assert "at best 2 of 4 devices of gpu.nvidia.com (gpu)" in sentence(gb300(4, 1))
    assert "dovetail.dev/numaNode 0" in sentence(gb300(4, 1))


def test_no_more_devices_are_counted_than_are_wanted() -> None:
    """Of the two NICs beside the GPUs that fall short, one is wanted and one is counted."""
    why = sentence(gb300(4, 1))

    assert "at best 2 of 4 devices of gpu.nvidia.com (gpu) and 1 of 1 device of dra.net (nic)" in why


def test_a_dgx_refuses_with_numbers() -> None:
    """T-13: of eight GPUs, four are on one NUMA node."""
    world, node = world_of("dgx-h100__gpu-nvidia__main", "dgx-h100__dranet__main", mappings=Mappings.of(()))
    wanted = claim(request("gpu", 8, driver="gpu.nvidia.com"), match="dovetail.dev/numaNode")

    assert "at best 4 of 8 devices of gpu.nvidia.com (gpu) on dovetail.dev/numaNode 0" in sentence(
        ask(world, wanted, node=node)
    )


def test_two_numa_names_need_a_mapping() -> None:
    """T-14: `numa` of one driver does not match `numaNode` of another; who lacks which name is told."""
    gpu = slice_of([device("g", {"numa": 0})])
    nic = slice_of([device("n", {"numaNode": 0})], driver=NIC)

    why = sentence(
        ask(inventory(gpu, nic), claim(request("g"), request("n", driver=NIC), match=f"{GPU}/numa"))
    )

    assert f"{GPU}/numa is missing on all devices of {NIC}" in why


def test_a_gpu_without_a_free_nic_beside_it_is_never_given() -> None:
    """T-15: the GPU on NUMA 0 stays where only NICs of NUMA 1 are free."""
    gpus = slice_of([device("g0", numa=0), device("g1", numa=1)])
    nics = slice_of([device("n0", numa=0), device("n1", numa=1)], driver=NIC)
    world = inventory(gpus, nics, holders=[held((NIC, "pool", "n0"))])

    assert names(ask(world, claim(request("g"), request("n", driver=NIC), match=NUMA))) == ["g1", "n1"]


def test_models_are_never_mixed() -> None:
    """T-16: a request for one model gets none of another, however few there are."""
    world = inventory(
        slice_of(
            [device("a", {"model": "A100"}), device("h", {"model": "H100"}), device("b", {"model": "A100"})]
        )
    )
    wanted = cel(f'device.attributes["{GPU}"].model == "A100"')

    assert names(ask(world, claim(request(count=2, **wanted)))) == ["a", "b"]
    assert isinstance(ask(world, claim(request(count=3, **wanted))), DoesNotFit)


def test_pods_of_one_template_do_not_share_and_are_told_how() -> None:
    """R-G1, T-17: the second claim of a template waits, with the hint how pods share a device."""
    world = inventory(slice_of([device("a")]))
    annotated = {"resource.kubernetes.io/pod-claim-name": "gpu"}

    def generated(name: str) -> Any:
        given = claim(request(), name=name)
        return given.model_copy(
            update={"metadata": given.metadata.model_copy(update={"annotations": annotated})}
        )

    first = ask(world, generated("one"))
    assert isinstance(first, Fits)
    world.put_claim(allocated(generated("one"), first))

    assert "must name one ResourceClaim" in sentence(ask(world, generated("two")))
    assert "must name one ResourceClaim" not in sentence(ask(world, claim(request(), name="other")))
