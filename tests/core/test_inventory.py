"""The inventory follows changes by deltas, and always answers as if it had been made anew."""

import copy
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.api.claims import DeviceClass, ResourceClaim
from dovetail.api.nodes import Node
from dovetail.api.slices import DeviceTaintRule, ResourceSlice
from dovetail.core.allocator import place
from dovetail.core.budget import Budget
from dovetail.core.inventory import Holder, Inventory
from dovetail.core.outcome import Cut, DoesNotFit, Fits, RequestInvalid
from dovetail.core.refusals import PoolCause
from dovetail.core.values import DeviceKey, PoolKey
from dovetail.errors import ObjectInvalid
from tests.support.builders import (
    ALL_FEATURES,
    GPU,
    NIC,
    NUMA,
    allocated,
    ask,
    claim,
    device,
    held,
    inventory,
    names,
    request,
    sentence,
    slice_of,
)
from tests.support.cases import features_of, holders_of
from tests.support.worlds import make_world

Json = dict[str, Any]


class Script:
    """A world that changes step by step: objects by kind and name, as the API server would have them."""

    def __init__(self, world: Mapping[str, Any], random: Random) -> None:
        self.random = random
        self.features = features_of(world["features"])
        self.pending: list[tuple[str, Json]] = [
            *(("node", node) for node in world["nodes"]),
            *(("slice", one) for one in world["slices"]),
            *(("claim", holder) for holder in holders_of(world["allocated"])),
        ]
        self.classes = world["classes"]
        self.present: dict[tuple[str, str], Json] = {}

    def step(self, followed: Inventory) -> None:
        """One object appears, changes or vanishes."""
        if self.pending and self.random.random() < 0.7:
            kind, body = self.pending.pop(self.random.randrange(len(self.pending)))
            self.present[kind, body["metadata"]["name"]] = body
            put(followed, kind, body)
        elif self.present:
            kind, name = self.random.choice(sorted(self.present))
            self.pending.append((kind, self.present.pop((kind, name))))
            drop(followed, kind, name)

    def anew(self) -> Inventory:
        """An inventory made of what is there now, in another order."""
        made = Inventory(self.features)
        objects = sorted(self.present.items(), key=lambda item: item[0][::-1], reverse=True)
        for (kind, _), body in objects:
            put(made, kind, body)
        add_classes(made, self.classes)
        return made


def put(given: Inventory, kind: str, body: Json) -> None:
    """An object appears or changes."""
    match kind:
        case "node":
            given.put_node(Node.parse(body))
        case "slice":
            given.put_slice(ResourceSlice.parse(body))
        case _:
            given.put_claim(ResourceClaim.parse(body))


def drop(given: Inventory, kind: str, name: str) -> None:
    """An object vanishes."""
    match kind:
        case "node":
            given.drop_node(name)
        case "slice":
            given.drop_slice(name)
        case _:
            given.drop_claim("", name)


def add_classes(given: Inventory, classes: list[Json]) -> None:
    """The classes of a world."""
    for body in classes:
        given.put_class(DeviceClass.parse(body))


def told(given: Inventory, claims: list[ResourceClaim], nodes: tuple[str, ...]) -> object:
    """An answer in a form that can be compared."""
    try:
        outcome = place(given, claims, nodes, budget=Budget.unlimited())
    except RequestInvalid as invalid:
        return str(invalid)
    return outcome


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**48))
def test_answers_after_any_changes_are_those_of_a_fresh_inventory(seed: int) -> None:
    """Slices, nodes and claims come, change and go; outcome, devices and reasons never depend on the way."""
    random = Random(seed)
    world = make_world(random)
    script, followed = Script(world, random), Inventory(features_of(world["features"]))
    add_classes(followed, world["classes"])
    claims = [ResourceClaim.parse(body) for body in world["claims"]]
    nodes = tuple(node["metadata"]["name"] for node in world["nodes"])

    for _ in range(4):
        for _ in range(random.randint(1, 8)):
            script.step(followed)
        # A ledger of what was paid remembers withdrawn devices, which a fresh inventory cannot know.
        if any(one.get("spec", {}).get("sharedCounters") for one in script.present.values()):
            continue
        assert told(followed, claims, nodes) == told(script.anew(), claims, nodes)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**48))
def test_the_order_of_arrival_never_shows(seed: int) -> None:
    """The same objects in another order give the same answer, counters and groups included."""
    random = Random(seed)
    world = make_world(random)
    objects = Script(world, random).pending
    claims = [ResourceClaim.parse(body) for body in world["claims"]]
    nodes = tuple(node["metadata"]["name"] for node in world["nodes"])
    answers = []

    for _ in range(2):
        made = Inventory(features_of(world["features"]))
        for kind, body in random.sample(objects, len(objects)):
            put(made, kind, body)
        add_classes(made, random.sample(world["classes"], len(world["classes"])))
        answers.append(told(made, claims, nodes))

    assert answers[0] == answers[1]


def test_a_claim_takes_its_devices_and_gives_them_back() -> None:
    """Devices of an allocated claim are taken until it goes, and who holds them can be told."""
    world = inventory(slice_of([device("a")]))
    first = claim(request(), name="first")
    outcome = ask(world, first)
    assert isinstance(outcome, Fits)

    world.put_claim(allocated(first, outcome))
    key = DeviceKey(GPU, "pool", "a")

    assert isinstance(ask(world, claim(request())), DoesNotFit)
    assert world.holders(key) == (Holder("default", "first", "r"),)
    world.drop_claim("default", "first")
    assert names(ask(world, claim(request()))) == ["a"]
    assert world.holders(key) == ()


def test_a_claim_that_lost_its_allocation_gives_its_devices_back() -> None:
    """Somebody cleared `status.allocation`: the device is free."""
    world = inventory(slice_of([device("a")]), holders=[held((GPU, "pool", "a"), name="h")])

    world.put_claim(ResourceClaim.parse({"metadata": {"name": "h", "namespace": "default"}}))

    assert names(ask(world, claim(request()))) == ["a"]


def test_two_claims_that_hold_one_device_must_both_go() -> None:
    """R-A15: a device that two claims hold by mistake is free when the second is gone as well."""
    world = inventory(
        slice_of([device("a")]),
        holders=[held((GPU, "pool", "a"), name="one"), held((GPU, "pool", "a"), name="two")],
    )

    world.drop_claim("default", "one")
    assert isinstance(ask(world, claim(request())), DoesNotFit)
    world.drop_claim("default", "two")
    assert names(ask(world, claim(request()))) == ["a"]


def test_putting_the_same_claim_again_changes_nothing() -> None:
    """A repeated event leaves the version as it is, so that nobody is retried for it."""
    world = inventory(slice_of([device("a")]))
    holder = held((GPU, "pool", "a"))
    world.put_claim(holder)
    version = world.version

    world.put_claim(holder)

    assert world.version == version
    world.drop_claim("default", "holder")
    assert names(ask(world, claim(request()))) == ["a"]


def test_a_shared_device_is_free_again_after_its_last_share() -> None:
    """Capacity in use is the sum over shares, and goes with them."""
    shared = device("a", allowMultipleAllocations=True, capacity={"memory": {"value": "2Gi"}})
    world = inventory(slice_of([shared]))
    wanted = request(capacity={"requests": {"memory": "1Gi"}})

    for name in ("one", "two"):
        each = claim(wanted, name=name)
        outcome = ask(world, each)
        assert isinstance(outcome, Fits)
        world.put_claim(allocated(each, outcome))

    assert isinstance(ask(world, claim(wanted)), DoesNotFit)
    world.drop_claim("default", "one")
    assert names(ask(world, claim(wanted))) == ["a"]


def test_a_device_that_is_no_longer_shareable_waits_for_its_last_share() -> None:
    """Switched to dedicated while shared: not given away until all shares are gone (allocation-rules 2.8)."""
    world = inventory(slice_of([device("a")]), holders=[held((GPU, "pool", "a"), shareID="x")])

    assert isinstance(ask(world, claim(request())), DoesNotFit)
    world.drop_claim("default", "holder")
    assert names(ask(world, claim(request()))) == ["a"]


def test_an_incomplete_generation_is_never_used() -> None:
    """R-A16: generation 2 is partly there and generation 1 whole: neither is used, and the reason says so."""
    old = slice_of([device("a")], name="old", generation=1)
    new = slice_of([device("b")], name="new", generation=2, count=2)
    world = inventory(old, new)

    assert "pool gpu.example.com/pool is incomplete (1 of 2 slices of generation 2)" in sentence(
        ask(world, claim(request()))
    )
    world.put_slice(ResourceSlice.parse(slice_of([device("c")], name="newer", generation=2, count=2)))
    assert names(ask(world, claim(request(count=2)))) == ["b", "c"]


def test_slices_that_disagree_on_their_number_are_not_used() -> None:
    """R-A16: two slices of one generation with different counts wait until the driver has decided."""
    world = inventory(
        slice_of([device("a")], name="one", count=2), slice_of([device("b")], name="two", count=3)
    )

    assert "slices disagree on their number: 2 and 3" in sentence(ask(world, claim(request())))


def test_the_status_of_every_pool_can_be_told() -> None:
    """Complete, incomplete and contradictory pools are told apart, each with its reason."""
    world = inventory(
        slice_of([device("a")], pool="good"),
        slice_of([device("a")], pool="half", count=2),
        slice_of([device("a"), device("a")], pool="bad"),
    )

    assert [(pool.key.pool, pool.cause) for pool in world.pools()] == [
        ("bad", PoolCause.INVALID),
        ("good", None),
        ("half", PoolCause.INCOMPLETE),
    ]
    assert world.pools()[0].key == PoolKey(GPU, "bad")


def test_a_slice_moves_from_node_to_node() -> None:
    """A slice that is published again for another node is gone from the first."""
    world = inventory(slice_of([device("a")], name="s", node="here"))
    assert names(ask(world, claim(request()), node="here")) == ["a"]

    world.put_slice(ResourceSlice.parse(slice_of([device("a")], name="s", node="there")))

    assert isinstance(ask(world, claim(request()), node="here"), DoesNotFit)
    assert names(ask(world, claim(request()), node="there")) == ["a"]


def test_labels_decide_which_devices_a_node_reaches() -> None:
    """Devices behind a node selector come and go with the node's labels."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}
    selector = {"nodeSelectorTerms": [term]}
    world = inventory(slice_of([device("a")], node=None, nodeSelector=selector))
    assert isinstance(ask(world, claim(request())), DoesNotFit)

    world.put_node(Node.parse({"metadata": {"name": "node", "labels": {"zone": "z"}}}))
    assert names(ask(world, claim(request()))) == ["a"]

    world.drop_node("node")
    assert isinstance(ask(world, claim(request())), DoesNotFit)


def test_a_taint_rule_comes_and_goes() -> None:
    """A rule of an administrator blocks the devices that it selects, as long as it is there."""
    world = inventory(slice_of([device("a"), device("b")]))
    rule = DeviceTaintRule.parse(
        {
            "metadata": {"name": "drain"},
            "spec": {
                "deviceSelector": {"driver": GPU, "device": "a"},
                "taint": {"key": "drain", "effect": "NoExecute"},
            },
        }
    )

    world.put_taint_rule(rule)
    assert names(ask(world, claim(request()))) == ["b"]
    tolerated = request(tolerations=[{"key": "drain", "operator": "Exists"}])
    assert names(ask(world, claim(tolerated))) == ["a"]
    world.drop_taint_rule("drain")
    assert names(ask(world, claim(request()))) == ["a"]


def test_a_class_may_come_later_and_change() -> None:
    """A class that is missing is an error of the claim; its selectors count as they are now."""
    world = inventory(slice_of([device("a", {"model": "old"}), device("b", {"model": "new"})]))
    world.drop_class(GPU)
    with pytest.raises(RequestInvalid, match="which does not exist"):
        ask(world, claim(request()))

    expression = f'device.attributes["{GPU}"].model == "new"'
    body = {"metadata": {"name": GPU}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
    world.put_class(DeviceClass.parse(body))

    assert names(ask(world, claim(request()))) == ["b"]


def test_switching_features_counts_at_once() -> None:
    """A gate that is switched off by hand changes the next answer."""
    lists = [device("a", numa=[0, 1]), device("b", numa=[1, 2])]
    world = inventory(slice_of(lists))
    pair = claim(request(count=2), match=NUMA)
    assert names(ask(world, pair)) == ["a", "b"]

    world.set_features(ALL_FEATURES.with_gates({"DRAListTypeAttributes": False}))

    assert isinstance(ask(world, pair), DoesNotFit)


def test_a_slice_with_a_broken_quantity_is_an_error_of_the_slice() -> None:
    """The slice's owner is told, and what was there before stays."""
    world = inventory(slice_of([device("a")]))

    with pytest.raises(ObjectInvalid, match="ResourceSlice"):
        world.put_slice(ResourceSlice.parse(slice_of([device("b", capacity={"memory": {"value": "much"}})])))

    assert names(ask(world, claim(request()))) == ["a"]


def test_what_was_read_stays_as_it_was() -> None:
    """Neither slices nor claims are changed by an allocation."""
    body = slice_of([device("a", numa=[0, 1]), device("b", numa=[1])])
    published, wanted = ResourceSlice.parse(copy.deepcopy(body)), claim(request(count=2), match=NUMA)
    before = (published.model_copy(deep=True), wanted.model_copy(deep=True))
    world = inventory()

    world.put_slice(published)
    ask(world, wanted)

    assert (published, wanted) == before


def test_names_that_slices_mention_can_be_told() -> None:
    """Nodes of slices and of single devices, and all attributes by qualified name."""
    per_device = slice_of(
        [device("a", {"model": "x"}, nodeName="n2")], node=None, perDeviceNodeSelection=True, driver=NIC
    )
    world = inventory(slice_of([device("a", numa=1)], node="n1"), per_device)

    assert world.slice_nodes() == {"n1", "n2"}
    assert world.published_attributes() == {NUMA, f"{NIC}/model"}
    assert {view.key for view in world.devices()} == {
        DeviceKey(GPU, "pool", "a"),
        DeviceKey(NIC, "pool", "a"),
    }


def test_a_spent_budget_is_an_outcome_of_its_own() -> None:
    """R-D5: a search that was cut is never called impossible, and finds its answer when it may go on."""
    world = inventory(slice_of([device(f"d{i}", {"slot": i}) for i in range(6)]))
    wanted = claim(request(count=6))

    assert isinstance(place(world, [wanted], ["node"], budget=Budget(steps=2)), Cut)
    assert isinstance(place(world, [wanted], ["node"], budget=Budget(steps=100)), Fits)
