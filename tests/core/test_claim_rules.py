"""Where the values of a constraint come from: the claim, mappings, drivers (design, section 3)."""

import pytest

from dovetail.api.slices import ResourceSlice
from dovetail.core.allocator import place
from dovetail.core.budget import Budget
from dovetail.core.outcome import DoesNotFit, RequestInvalid
from tests.support.builders import (
    GPU,
    NIC,
    Json,
    ask,
    cel,
    claim,
    device,
    held,
    inventory,
    mapping,
    names,
    parameters,
    request,
    sentence,
    slice_of,
)


def test_a_claim_may_bring_its_own_mapping() -> None:
    """Derived attributes of the claim's parameters count per request, and before mappings."""
    gpu = slice_of([device("gpu-0"), device("gpu-1")])
    nic = slice_of([device("n", {"place": "1"})], driver=NIC)
    of_gpu = {"name": "dovetail.dev/x", "requests": ["g"], "expression": 'device.name.split("-")[1]'}
    of_nic = {
        "name": "dovetail.dev/x",
        "requests": ["n"],
        "expression": f'device.attributes["{NIC}"].place',
    }
    wrong = mapping("dovetail.dev/x", {GPU: '"nowhere"', NIC: '"elsewhere"'})
    wanted = claim(
        request("g"), request("n", driver=NIC), match="dovetail.dev/x", config=[parameters(of_gpu, of_nic)]
    )

    assert names(ask(inventory(gpu, nic, mappings=[wrong]), wanted)) == ["gpu-1", "n"]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (parameters({"name": "dovetail.dev/x", "expression": "device.("}), "does not compile"),
        (parameters({"name": "dovetail.dev/x"}), "expression"),
        (parameters(kind="Other"), "kind"),
        (parameters(typo=1), "typo"),
    ],
)
def test_malformed_parameters_are_an_error_of_the_claim(broken: Json, why: str) -> None:
    """Whoever wrote the claim is told which field is wrong, and nothing is allocated."""
    with pytest.raises(RequestInvalid, match=why):
        ask(inventory(slice_of([device("a")])), claim(request(), config=[broken]))


def test_native_rules_come_first_and_shadow_everything() -> None:
    """R-C7: a native derived attribute wins over what is published under the same name."""
    rules = [{"name": f"{GPU}/numa", "expression": '"here"'}]
    world = inventory(slice_of([device("a", {"numa": 1}), device("b", {"numa": 2})]))

    outcome = ask(world, claim(request(count=2, derivedAttributes=rules), match=f"{GPU}/numa"))

    assert names(outcome) == ["a", "b"]


def test_a_mapping_decides_even_where_it_gives_nothing() -> None:
    """There is no fall-through to what the driver publishes under the same name (design, section 3)."""
    silent = mapping("dovetail.dev/x", {"other.example.com": '"x"'})
    world = inventory(slice_of([device("a", {"dovetail.dev/x": "x"})]), mappings=[silent])

    assert "no rule applies" in sentence(ask(world, claim(request(), match="dovetail.dev/x")))


def test_a_mapping_may_forbid_to_go_on_after_an_error() -> None:
    """`onError: Fail` ends the attempt as KEP-6080 does; by default the device is left out."""
    devices = slice_of([device("a"), device("b", {"x": 1})])
    rules = {GPU: f'device.attributes["{GPU}"].x + device.attributes["{GPU}"].missing'}
    strict = mapping("dovetail.dev/x", rules, onError="Fail")

    wanted = claim(request(), match="dovetail.dev/x")

    lenient = inventory(devices, mappings=[mapping("dovetail.dev/x", rules)])

    assert isinstance(ask(lenient, wanted), DoesNotFit)
    with pytest.raises(RequestInvalid, match=r"dovetail.dev/x of gpu.example.com/pool/a"):
        ask(inventory(devices, mappings=[strict]), wanted)


STRICT_RULE = f'device.attributes["{GPU}"].x'
GOOD, BAD = device("good", {"x": 1}), device("bad")

STRICT_WORLDS = {
    "after": [slice_of([GOOD, BAD])],
    "before": [slice_of([BAD, GOOD])],
    "last by name": [slice_of([GOOD, device("z-bad")])],
    "in a later pool": [slice_of([GOOD], pool="a"), slice_of([BAD], pool="z")],
    "in an earlier pool": [slice_of([GOOD], pool="z"), slice_of([BAD], pool="a")],
}
"""A device that lacks the value, wherever it comes in the order."""


@pytest.mark.parametrize("slices", STRICT_WORLDS.values(), ids=STRICT_WORLDS)
@pytest.mark.parametrize("is_mapping", [True, False], ids=["mapping", "parameters"])
@pytest.mark.parametrize("is_held", [True, False], ids=["held", "free"])
def test_a_strict_failure_counts_wherever_its_device_stands(
    slices: list[Json], is_mapping: bool, is_held: bool
) -> None:
    """One answer for every order of devices and pools: nothing is allocated while a device fails."""
    strict = mapping("dovetail.dev/x", {GPU: STRICT_RULE}, onError="Fail")
    own = parameters({"name": "dovetail.dev/x", "expression": STRICT_RULE})
    wanted = claim(request(), match="dovetail.dev/x", config=[] if is_mapping else [own])
    pools = {(each["spec"]["pool"]["name"], d["name"]) for each in slices for d in each["spec"]["devices"]}
    holders = [held(*((GPU, pool, name) for pool, name in pools if "bad" in name))] if is_held else []
    world = inventory(*slices, mappings=[strict] if is_mapping else [], holders=holders)

    with pytest.raises(RequestInvalid, match=r"dovetail.dev/x of gpu.example.com/.*bad"):
        ask(world, wanted)


def test_a_strict_failure_on_another_node_counts_as_well() -> None:
    """Which node is looked at first does not matter; nodes that the pod cannot use do not count."""
    strict = mapping("dovetail.dev/x", {GPU: STRICT_RULE}, onError="Fail")
    good, bad = slice_of([GOOD], pool="p1", node="n1"), slice_of([BAD], pool="p2", node="n2")
    world = inventory(good, bad, mappings=[strict])
    wanted = claim(request(), match="dovetail.dev/x")

    for nodes in (("n1", "n2"), ("n2", "n1")):
        with pytest.raises(RequestInvalid, match="bad"):
            place(world, [wanted], nodes, budget=Budget.unlimited())
    assert names(place(world, [wanted], ("n1",), budget=Budget.unlimited())) == ["good"]


def test_strict_failures_are_judged_anew_when_slices_change() -> None:
    """What passed is not believed for ever, nor what failed."""
    strict = mapping("dovetail.dev/x", {GPU: STRICT_RULE}, onError="Fail")
    whole, broken = slice_of([GOOD]), slice_of([GOOD, BAD])
    world, wanted = inventory(whole, mappings=[strict]), claim(request(), match="dovetail.dev/x")

    for _ in range(2):
        assert names(ask(world, wanted)) == ["good"]
        world.put_slice(ResourceSlice.parse(broken))
        with pytest.raises(RequestInvalid):
            ask(world, wanted)
        world.put_slice(ResourceSlice.parse(whole))


def test_a_strict_failure_on_a_device_that_no_request_takes_does_not_count() -> None:
    """Only devices that the selectors take matter."""
    strict = mapping("dovetail.dev/x", {GPU: STRICT_RULE}, onError="Fail")
    world = inventory(slice_of([BAD, GOOD]), mappings=[strict])
    wanted = claim(request(**cel(f'"x" in device.attributes["{GPU}"]')), match="dovetail.dev/x")

    assert names(ask(world, wanted)) == ["good"]
