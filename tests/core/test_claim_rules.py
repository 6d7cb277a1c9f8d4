"""Where the values of a constraint come from: the claim, mappings, drivers (design, section 3)."""

import pytest

from dovetail.core.outcome import DoesNotFit, RequestInvalid
from tests.support.builders import (
    GPU,
    NIC,
    Json,
    ask,
    claim,
    device,
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
