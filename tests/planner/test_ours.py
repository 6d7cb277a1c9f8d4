"""Which claims are ours, and which of those kube-scheduler could allocate as well."""

import pytest

from dovetail.api.claims import ResourceClaim
from dovetail.core.features import Features
from dovetail.core.ours import Ours, Unsupplied, judge_claim
from dovetail.core.world import World
from tests.planner.worlds import NUMA, Body, claim, devices, devices_spec, mapping, request, world_of
from tests.support.builders import parameters

GPU, NIC = "gpu.example.com", "nic.example.com"


def whose(world: World, spec: Body) -> Ours:
    """Whose a claim with this spec is."""
    return judge_claim(ResourceClaim.parse(claim(spec=spec)).spec, world)


def small(*more: Body, features: Features | None = None) -> World:
    """A mapping for numaNode, and a driver that publishes names of its own."""
    return world_of(mapping(), devices(GPU, "n1", [0]), *more, features=features, shipped=False)


def test_a_claim_is_ours_by_the_attribute_of_a_mapping() -> None:
    """Matching or distinct."""
    assert whose(small(), devices_spec()) == Ours(ours=True)
    distinct: Body = devices_spec(match=None) | {}
    distinct["devices"]["constraints"] = [{"distinctAttribute": NUMA}]
    assert whose(small(), distinct) == Ours(ours=True)


def test_a_claim_without_such_an_attribute_is_not_ours() -> None:
    """Whatever else it asks for."""
    assert whose(small(), devices_spec(match=None)) == Ours(ours=False)
    assert whose(small(), devices_spec(match=f"{GPU}/numaNode")) == Ours(ours=False)


def test_a_claim_is_ours_by_configuration_for_us() -> None:
    """kube-scheduler could allocate it as well (V-22), unless an attribute of its own keeps it from that."""
    bare = devices_spec(match=None, config=[parameters()])
    assert whose(small(), bare) == Ours(ours=True, shared=True)
    own = parameters({"name": "derived/x", "expression": "1"})
    assert whose(small(), devices_spec(match="derived/x", config=[own])) == Ours(ours=True)


@pytest.mark.parametrize(
    ("over", "shared"),
    [
        ((), False),
        (("gpu",), False),
        (("gpu/big", "gpu/small"), False),
        (("gpu/big",), True),
        (("nic",), False),
    ],
)
def test_an_alternative_without_the_constraint_is_open_to_kube_scheduler(
    over: tuple[str, ...], shared: bool
) -> None:
    """V-22: the claim is beyond kube-scheduler only if one of its requests is in each of its forms."""
    listed: Body = {
        "name": "gpu",
        "firstAvailable": [
            {"name": "big", "deviceClassName": GPU},
            {"name": "small", "deviceClassName": GPU},
        ],
    }
    spec = devices_spec(listed, request("nic", NIC), over=over)
    assert whose(small(), spec) == Ours(ours=True, shared=shared)


def test_two_constraints_may_close_two_alternatives() -> None:
    """Each alternative by one of them."""
    listed: Body = {"name": "gpu", "firstAvailable": [{"name": "a"}, {"name": "b"}]}
    spec = devices_spec(listed, match=None)
    spec["devices"]["constraints"] = [
        {"matchAttribute": NUMA, "requests": ["gpu/a"]},
        {"matchAttribute": NUMA, "requests": ["gpu/b"]},
    ]
    assert whose(small(), spec) == Ours(ours=True)


def test_an_attribute_that_a_driver_publishes_too_is_open_to_kube_scheduler() -> None:
    """Our mapping still holds for what we allocate."""
    shadow = devices(NIC, "n1", [0], attribute=NUMA)
    assert whose(small(shadow), devices_spec()) == Ours(ours=True, shared=True)


def test_a_native_derived_attribute_opens_the_claim_to_kube_scheduler_where_its_gate_is_on() -> None:
    """Only for the requests that carry it; with the gate off it changes nothing."""
    native = [{"name": NUMA, "expression": "1"}]
    both = devices_spec(
        request("gpu", GPU, derivedAttributes=native), request("nic", NIC, derivedAttributes=native)
    )
    one = devices_spec(request("gpu", GPU, derivedAttributes=native), request("nic", NIC))
    on = Features().with_gates({"DRADerivedAttributes": True})
    assert whose(small(features=on), both) == Ours(ours=True, shared=True)
    assert whose(small(features=on), one) == Ours(ours=True)
    assert whose(small(), both) == Ours(ours=True)


def test_an_attribute_that_nothing_supplies_is_told_with_the_nearest_name() -> None:
    """Mappings, published attributes and what the claim brings along count."""
    world = small()
    assert whose(world, devices_spec(match="dovetail.dev/numaNod")) == Ours(
        ours=False, unsupplied=(Unsupplied("dovetail.dev/numaNod", NUMA),)
    )
    assert whose(world, devices_spec(match=f"{GPU}/numanode")).unsupplied == (
        Unsupplied(f"{GPU}/numanode", f"{GPU}/numaNode"),
    )
    assert whose(world, devices_spec(match="other.example/colour")).unsupplied == (
        Unsupplied("other.example/colour"),
    )
    native = request("gpu", GPU, derivedAttributes=[{"name": "derived/x", "expression": "1"}])
    assert whose(world, devices_spec(native, match="derived/x")).unsupplied == ()


def test_parameters_that_cannot_be_read_are_not_judged_here() -> None:
    """They may define any attribute; the allocator says what is wrong with them."""
    broken = [{"opaque": {"driver": "dovetail.dev", "parameters": {"kind": "Nonsense"}}}]
    assert whose(small(), devices_spec(match="derived/x", config=broken)) == Ours(ours=True)


def test_a_mapping_makes_claims_ours_and_its_end_gives_them_back() -> None:
    """Claims are judged by the mappings of now."""
    world = small()
    world.drop("DerivedAttribute", "", "numa-node")
    assert whose(world, devices_spec()) == Ours(ours=False, unsupplied=(Unsupplied(NUMA),))
    world.put("DerivedAttribute", mapping())
    assert whose(world, devices_spec()) == Ours(ours=True)
