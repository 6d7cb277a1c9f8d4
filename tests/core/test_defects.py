"""Where kube-scheduler 1.37.2 or its forerunners go wrong, we do not (allocation-rules 2.15)."""

from itertools import permutations

import pytest

from dovetail.api.claims import ResourceClaim
from dovetail.api.slices import ResourceSlice
from dovetail.core.outcome import DoesNotFit, Fits
from tests.support.builders import (
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

Json = dict[str, object]


def counters(name: str = "shared", pool: str = "pool", driver: str = GPU, **amounts: str) -> Json:
    """The slice that declares a counter set."""
    sets = [{"name": name, "counters": {key: {"value": value} for key, value in amounts.items()}}]
    return slice_of(
        [], driver=driver, pool=pool, name=f"{driver}-{pool}-counters", count=2, sharedCounters=sets
    )


def partition(
    name: str, *, groups: list[str] | None = None, counter_set: str = "shared", **amounts: str
) -> Json:
    """A device that draws from a counter set."""
    consumption: Json = {
        "counterSet": counter_set,
        "counters": {key: {"value": value} for key, value in amounts.items()},
    }
    if groups:
        consumption["compatibilityGroups"] = groups
    return device(name, consumesCounters=[consumption])


@pytest.mark.parametrize("order", list(permutations("abcd")))
def test_turning_back_restores_what_lists_have_in_common(order: tuple[str, ...]) -> None:
    """R-A1: three of four devices share a value, and are found in whatever order the driver lists them."""
    lists = {"a": [1, 2], "b": [1], "c": [2], "d": [2]}
    world = inventory(slice_of([device(name, numa=lists[name]) for name in order]))

    outcome = ask(world, claim(request(count=3), match=NUMA))

    assert sorted(names(outcome)) == ["a", "c", "d"]


def test_all_devices_of_one_request_are_distinct() -> None:
    """R-A2: a request for three devices of different values never gets two with the same."""
    world = inventory(slice_of([device(f"d{i}", numa=value) for i, value in enumerate([1, 2, 1, 3])]))

    assert names(ask(world, claim(request(count=3), distinct=NUMA))) == ["d0", "d1", "d3"]


def test_too_few_distinct_values_are_counted() -> None:
    """R-A2: the refusal says how many values there are and how many are needed."""
    world = inventory(slice_of([device(f"d{i}", numa=value) for i, value in enumerate([1, 2, 1])]))

    outcome = ask(world, claim(request(count=3), distinct=NUMA))

    assert f"{NUMA} has 2 distinct values, 3 needed" in sentence(outcome)


def test_a_value_of_another_type_does_not_hide_an_equal_one() -> None:
    """Distinct values are compared with those of all devices, not only with the first."""
    attribute = f"{GPU}/slot"
    world = inventory(
        slice_of([device("a", {"slot": 1}), device("b", {"slot": "x"}), device("c", {"slot": "x"})])
    )

    assert isinstance(ask(world, claim(request(count=3), distinct=attribute)), DoesNotFit)
    assert names(ask(world, claim(request(count=2), distinct=attribute))) == ["a", "b"]


def test_pools_of_one_name_keep_their_own_counters() -> None:
    """R-A12: what one driver's pool has used up is not missing in another driver's pool of the same name."""
    world = inventory(
        counters(driver=GPU, memory="1"),
        slice_of([partition("a", memory="1"), partition("b", memory="1")], count=2),
        counters(driver=NIC, memory="1"),
        slice_of([partition("a", memory="1")], driver=NIC, count=2),
        holders=[held((GPU, "pool", "a"))],
    )

    assert isinstance(ask(world, claim(request())), DoesNotFit)
    assert names(ask(world, claim(request(driver=NIC)))) == ["a"]


@pytest.mark.parametrize("against", ["taint", "constraint"])
def test_a_refused_device_gives_its_counters_back(against: str) -> None:
    """Counters of a device that is refused after paying are there for the next device."""
    refused = partition("a", memory="1")
    refused |= {"taints": [{"key": "k", "effect": "NoSchedule"}]} if against == "taint" else {}
    taken = {**partition("b", memory="1"), "attributes": {NUMA: {"int": 0}}}
    world = inventory(counters(memory="1"), slice_of([refused, taken], count=2))

    match = NUMA if against == "constraint" else None

    assert names(ask(world, claim(request(), match=match))) == ["b"]


def test_a_shared_device_gives_its_counters_back_when_it_is_put_aside() -> None:
    """A shareable device that was tried first leaves its counters to the one that is taken in the end."""
    shared = {
        **partition("a", memory="1"),
        "allowMultipleAllocations": True,
        "attributes": {NUMA: {"int": 0}},
    }
    other = {**partition("b", memory="1"), "attributes": {NUMA: {"int": 1}}}
    nic = slice_of([device("n", numa=1)], driver=NIC)
    world = inventory(counters(memory="1"), slice_of([shared, other], count=2), nic)

    outcome = ask(world, claim(request("g"), request("n", driver=NIC), match=NUMA))

    assert names(outcome) == ["b", "n"]


def test_a_shared_device_pays_once_however_many_share_it() -> None:
    """Counters are paid with the first share of a device, and come back with the last."""
    shared = {**partition("a", memory="1"), "allowMultipleAllocations": True}
    world = inventory(counters(memory="1"), slice_of([shared, partition("b", memory="1")], count=2))
    first, second = claim(request(), name="one"), claim(request(), name="two")

    for each in (first, second):
        outcome = ask(world, each)
        assert names(outcome) == ["a"]
        assert isinstance(outcome, Fits)
        world.put_claim(allocated(each, outcome))
    selected = [{"cel": {"expression": "!device.allowMultipleAllocations"}}]
    dedicated = claim(request(selectors=selected), name="three")

    assert isinstance(ask(world, dedicated), DoesNotFit)
    world.drop_claim("default", "one")
    assert isinstance(ask(world, dedicated), DoesNotFit)
    world.drop_claim("default", "two")
    assert names(ask(world, dedicated)) == ["b"]


def test_admin_access_pays_nothing() -> None:
    """An administrator sees a partition that others have no counters left for, and takes none from them."""
    world = inventory(
        counters(memory="1"), slice_of([partition("a", memory="1"), partition("b", memory="1")], count=2)
    )
    admin = claim(request(count=2, adminAccess=True), name="admin")

    together = ask(world, admin, claim(request(), name="user"))

    # In one attempt a device that is chosen for an administrator is chosen, as in kube-scheduler.
    assert isinstance(together, DoesNotFit)
    alone = ask(world, admin)
    assert names(alone) == ["a", "b"]
    assert isinstance(alone, Fits)
    world.put_claim(allocated(admin, alone))
    assert names(ask(world, claim(request()))) == ["a"]


def test_admin_access_finds_room_on_a_full_device() -> None:
    """An administrator takes no capacity, so that a full device serves as well."""
    full = device("a", allowMultipleAllocations=True, capacity={"memory": {"value": "1Gi"}})
    world = inventory(
        slice_of([full]),
        holders=[held((GPU, "pool", "a"), shareID="x", consumedCapacity={"memory": "1Gi"})],
    )

    assert isinstance(ask(world, claim(request())), DoesNotFit)
    assert names(ask(world, claim(request(adminAccess=True)))) == ["a"]


@pytest.mark.parametrize("change", ["withdrawn", "cheaper"])
def test_what_was_paid_stays_paid(change: str) -> None:
    """A driver that withdraws a partition in use, or says that it costs less, makes no room by that."""
    world = inventory(
        counters(memory="2"), slice_of([partition("a", memory="2"), partition("b", memory="1")], count=2)
    )
    holder = claim(request(), name="holder")
    outcome = ask(world, holder)
    assert isinstance(outcome, Fits)
    world.put_claim(allocated(holder, outcome))
    assert isinstance(ask(world, claim(request())), DoesNotFit)

    left = (
        [partition("b", memory="1")]
        if change == "withdrawn"
        else [
            partition("a", memory="1"),
            partition("b", memory="1"),
        ]
    )
    world.put_slice(ResourceSlice.parse(slice_of(left, count=2)))

    assert isinstance(ask(world, claim(request())), DoesNotFit)
    world.drop_claim("default", "holder")
    assert isinstance(ask(world, claim(request())), Fits)


def test_groups_of_a_withdrawn_partition_still_count() -> None:
    """A partition in use that its driver no longer lists keeps incompatible ones away."""
    apart = [partition("a", groups=["x"], memory="1"), partition("b", groups=["y"], memory="1")]
    world = inventory(counters(memory="9"), slice_of(apart, count=2), holders=[held((GPU, "pool", "a"))])
    assert isinstance(ask(world, claim(request())), DoesNotFit)

    world.put_slice(ResourceSlice.parse(slice_of(apart[1:], count=2)))

    assert isinstance(ask(world, claim(request())), DoesNotFit)


def test_an_overdrawn_counter_blocks_only_those_who_draw_from_it() -> None:
    """A driver that shrank one counter set leaves the partitions of the other set usable."""
    sets = [
        {"name": name, "counters": {"memory": {"value": value}}}
        for name, value in (("small", "1"), ("big", "9"))
    ]
    declared = slice_of([], name="counters", count=2, sharedCounters=sets)
    devices = [
        partition("a", counter_set="small", memory="2"),
        partition("b", counter_set="small", memory="1"),
        partition("c", counter_set="big", memory="1"),
    ]
    world = inventory(declared, slice_of(devices, count=2), holders=[held((GPU, "pool", "a"))])

    assert names(ask(world, claim(request()))) == ["c"]


def test_a_group_is_not_transitive() -> None:
    """A goes with B and with C, but not with both: the intersection over all counts (KEP-5963)."""
    devices = [
        partition("a", groups=["x", "y"], memory="1"),
        partition("b", groups=["x"], memory="1"),
        partition("c", groups=["y"], memory="1"),
    ]
    world = inventory(counters(memory="9"), slice_of(devices, count=2))

    assert names(ask(world, claim(request(count=2)))) == ["a", "b"]
    assert isinstance(ask(world, claim(request(count=3))), DoesNotFit)


def test_a_claim_is_never_left_half_read() -> None:
    """A holder whose recorded capacity cannot be read keeps its device."""
    body = held((GPU, "pool", "a"), shareID="x", consumedCapacity={"memory": "plenty"})
    world = inventory(slice_of([device("a")]), holders=[body])

    assert isinstance(body, ResourceClaim)
    assert isinstance(ask(world, claim(request())), DoesNotFit)


def test_requests_that_share_devices_pay_their_counters_once() -> None:
    """Two requests for both of two shareable devices fit, though counters have room for two devices only."""
    shareable = [partition(name, slots="1") | {"allowMultipleAllocations": True} for name in ("a", "b")]
    world = inventory(counters(slots="2"), slice_of(shareable, count=2))

    outcome = ask(world, claim(request("first", count=2), request("second", count=2)))

    assert names(outcome) == ["a", "b", "a", "b"]
