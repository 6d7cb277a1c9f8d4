"""A DeviceOwnership becomes taint rules that keep kube-scheduler off its devices, and says what they do."""

from typing import Any

import pytest

from dovetail.api.ownership import DeviceOwnership
from dovetail.api.slices import DeviceTaintRule, ResourceSlice
from dovetail.core.ownership import fence_of, left_over, rule_changes
from dovetail.core.ownership_status import FenceReason, state_of
from dovetail.core.pool_records import PoolRecord, read_pools
from dovetail.core.values import PoolKey
from dovetail.errors import ObjectInvalid
from tests.audit.cluster import DRIVER, ownership, published

Body = dict[str, Any]
CARD = {"name": "card", "counters": {"memory": {"value": "80Gi"}}}
PARTITION = {
    "name": "p0",
    "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "10Gi"}}}],
}


def owning(*devices: dict[str, str], name: str = "gpus") -> DeviceOwnership:
    """A DeviceOwnership, parsed."""
    return DeviceOwnership.parse(ownership(*devices, name=name))


def pools_of(*slices: Body) -> dict[PoolKey, PoolRecord]:
    """Pools, as the audit and the fence read them."""
    return dict(read_pools(ResourceSlice.parse(body) for body in slices))


def selectors(rules: tuple[Any, ...]) -> list[dict[str, str]]:
    """What the rules select."""
    return [rule["spec"]["deviceSelector"] for rule in rules]


def stored(rule: Any, version: str = "7") -> Body:
    """A rule as the API server gives it back: with a UID, a version, and when the taint came."""
    taint = {**rule["spec"]["taint"], "timeAdded": "2026-11-29T10:00:00Z"}
    metadata = {**rule["metadata"], "uid": f"uid-{rule['metadata']['name']}", "resourceVersion": version}
    return {**rule, "metadata": metadata, "spec": {**rule["spec"], "taint": taint}}


@pytest.mark.parametrize(
    ("entry", "devices"),
    [
        ({"driver": DRIVER}, 3),
        ({"driver": DRIVER, "pool": "n1"}, 2),
        ({"driver": DRIVER, "pool": "n1", "device": "d0"}, 1),
        ({"driver": "nic.example.com"}, 0),
    ],
)
def test_each_entry_has_one_rule_that_selects_what_it_names(entry: dict[str, str], devices: int) -> None:
    """A driver, a pool or a device is selected by exactly the parts that the entry gives."""
    fence = fence_of(owning(entry), pools_of(published("d0", "d1"), published("d0", pool="n2")))

    assert selectors(fence.rules) == [entry]
    assert fence.devices == devices


def test_a_rule_never_selects_by_nothing() -> None:
    """Every rule names a driver, since a rule without selector is read differently by API text and code."""
    fence = fence_of(owning({"driver": DRIVER}, {"driver": "b", "pool": "p"}), {})
    assert all(selector.get("driver") for selector in selectors(fence.rules))


def test_the_taint_evicts_nobody() -> None:
    """The effect is NoSchedule, so that running pods keep their devices."""
    (rule,) = fence_of(owning({"driver": DRIVER}), {}).rules
    assert rule["spec"]["taint"] == {"key": "dovetail.dev/owned", "value": "gpus", "effect": "NoSchedule"}
    assert DeviceTaintRule.parse(rule).spec.taint.effect == "NoSchedule"


def test_a_rule_belongs_to_its_object() -> None:
    """The garbage collector takes the rules away with the object."""
    (rule,) = fence_of(owning({"driver": DRIVER}), {}).rules
    (owner,) = rule["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("DeviceOwnership", "gpus", "uid-gpus")


def test_names_differ_between_entries_and_objects() -> None:
    """Two entries, or the same entry of two objects, never want a rule of the same name."""
    entries = ({"driver": "a"}, {"driver": "a", "pool": "b"}, {"driver": "a", "pool": "b", "device": "c"})
    rules = [
        rule["metadata"]["name"]
        for name in ("one", "two")
        for rule in fence_of(owning(*entries, name=name), {}).rules
    ]
    assert len(set(rules)) == len(rules)


def test_a_long_name_fits_everywhere() -> None:
    """Label and taint values hold 63 characters and end in a letter or digit."""
    name = "a" * 62 + "." + "b" * 100
    (rule,) = fence_of(owning({"driver": DRIVER}, name=name), {}).rules
    assert len(rule["metadata"]["name"]) <= 253
    assert rule["spec"]["taint"]["value"] == rule["metadata"]["labels"]["dovetail.dev/ownership"] == "a" * 62


def test_one_device_of_a_pool_with_shared_counters_is_not_fenced() -> None:
    """A part of such a pool would let kube-scheduler and Dovetail spend the same counters twice."""
    pools = pools_of(published(counters=[CARD], slices=2), published(PARTITION, slices=2))
    fence = fence_of(owning({"driver": DRIVER, "pool": "n1", "device": "p0"}), pools)
    state = state_of(fence, served=True)

    assert fence.rules == ()
    assert (state.fenced, state.reason) == (False, FenceReason.SHARED_COUNTERS)
    assert state.message == (
        "device p0 shares counters with the other devices of pool n1: own the whole pool"
    )


def test_a_pool_with_shared_counters_is_fenced_as_a_whole() -> None:
    """All of such a pool can be owned."""
    pools = pools_of(published(counters=[CARD], slices=2), published(PARTITION, slices=2))
    fence = fence_of(owning({"driver": DRIVER, "pool": "n1"}), pools)
    assert (len(fence.rules), fence.devices, fence.withheld) == (1, 1, ())


def test_nothing_is_written_where_all_is_as_wanted() -> None:
    """What the API server adds to a rule is no difference."""
    wanted = owning({"driver": DRIVER}, {"driver": "b"})
    fence = fence_of(wanted, {})
    changes = rule_changes(wanted, fence, [stored(rule) for rule in fence.rules])
    assert (changes.create, changes.replace, changes.delete) == ((), (), ())


def test_missing_rules_are_created_and_others_of_the_object_deleted() -> None:
    """An entry that went takes its rule with it, by name and UID."""
    before, after = owning({"driver": "a"}, {"driver": "b"}), owning({"driver": "b"}, {"driver": "c"})
    existing = [stored(rule) for rule in fence_of(before, {}).rules]
    changes = rule_changes(after, fence_of(after, {}), existing)

    assert selectors(changes.create) == [{"driver": "c"}]
    assert changes.replace == ()
    assert changes.delete == ((existing[0]["metadata"]["name"], existing[0]["metadata"]["uid"]),)


def test_a_rule_that_somebody_changed_is_put_right() -> None:
    """The replacement carries the version that was read, so that a newer change is not lost unseen."""
    wanted = owning({"driver": DRIVER})
    fence = fence_of(wanted, {})
    changed = stored(fence.rules[0])
    changed["spec"] = {**changed["spec"], "taint": {"key": "dovetail.dev/owned", "effect": "None"}}

    (replacement,) = rule_changes(wanted, fence, [changed]).replace

    assert replacement["metadata"]["resourceVersion"] == "7"
    assert replacement["spec"] == fence.rules[0]["spec"]


def test_rules_of_others_are_left_alone() -> None:
    """A rule counts as the object's by owner reference, whatever its name and labels say."""
    wanted, other = owning({"driver": DRIVER}), owning({"driver": DRIVER}, name="other")
    of_other = stored(fence_of(other, {}).rules[0])
    without_owner = stored({**of_other, "metadata": {**of_other["metadata"], "ownerReferences": []}})

    changes = rule_changes(wanted, fence_of(wanted, {}), [of_other, without_owner])

    assert (len(changes.create), changes.replace, changes.delete) == (1, (), ())


def test_rules_of_an_object_that_is_gone_are_left_over() -> None:
    """A rule whose owner of that name has another UID, or is gone, is named; those of others are not."""
    gone, other = owning({"driver": DRIVER}), owning({"driver": DRIVER}, name="other")
    (rule,), (of_other,) = ([stored(rule) for rule in fence_of(o, {}).rules] for o in (gone, other))
    foreign = {"metadata": {"name": "x", "uid": "u", "ownerReferences": [{"kind": "Job", "name": "gpus"}]}}

    found = left_over("gpus", [rule, of_other, foreign], frozenset({"uid-new", "uid-other"}))

    assert found == ((rule["metadata"]["name"], rule["metadata"]["uid"]),)
    assert left_over("gpus", [rule], frozenset({"uid-gpus"})) == ()


def test_the_state_says_how_much_is_fenced() -> None:
    """The message counts rules and devices and names entries that cover nothing."""
    fence = fence_of(owning({"driver": DRIVER}, {"driver": "nic", "pool": "n9"}), pools_of(published("d0")))
    state = state_of(fence, served=True)
    assert (state.fenced, state.reason) == (True, FenceReason.RULES_IN_PLACE)
    assert state.message == (
        "2 rules keep kube-scheduler off 1 device; no driver publishes nic/n9 at present"
    )


def test_a_cluster_without_rules_has_no_fence() -> None:
    """Where DeviceTaintRule is not served the object says that the devices are shared."""
    state = state_of(fence_of(owning({"driver": DRIVER}), {}), served=False)
    assert (state.fenced, state.reason) == (False, FenceReason.NOT_SERVED)


@pytest.mark.parametrize("extra", [{"class": "x"}, {"selector": "true"}])
def test_an_unknown_field_is_refused(extra: dict[str, str]) -> None:
    """A field that we do not know could widen or narrow the fence, so it is not passed over."""
    with pytest.raises(ObjectInvalid, match=next(iter(extra))):
        owning({"driver": DRIVER, **extra})
