"""Which of several mappings holds for an attribute."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.api.mappings import DerivedAttribute
from dovetail.core.attributes import Mappings, refuse_attribute
from dovetail.core.cel import Memory
from tests.mappings.worlds import device, mapping, rule, value

NUMA = "dovetail.dev/numaNode"
OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def test_the_older_of_two_objects_holds() -> None:
    """In every order of arrival; the other one is a duplicate of it."""
    first = mapping(rule("*", "1"), name="z-first", created=OLD)
    second = mapping(rule("*", "2"), name="a-second", created=NEW)

    for order in itertools.permutations((first, second)):
        mappings = Mappings.of(order)
        held = mappings.find("example.com/numa")
        assert held is not None
        assert held.origin == "z-first"
        assert mappings.duplicates == {"a-second": "z-first"}


def test_of_two_objects_of_one_age_the_first_by_name_holds() -> None:
    """Timestamps have seconds, so objects of one `kubectl apply` are often of one age."""
    twins = [mapping(rule("*", "1"), name=name, created=OLD) for name in ("b", "a", "c")]

    for order in itertools.permutations(twins):
        assert Mappings.of(order).duplicates == {"b": "a", "c": "a"}


def test_an_object_that_was_never_stored_is_the_youngest() -> None:
    """A manifest in a file would be created after all objects that have an age."""
    stored = mapping(rule("*", "1"), name="z", created=NEW)
    manifest = mapping(rule("*", "2"), name="a")

    assert Mappings.of((manifest, stored)).duplicates == {"a": "z"}


def test_an_object_replaces_the_shipped_mapping_of_its_attribute() -> None:
    """Whole: a driver that only the shipped mapping knows gets nothing from it any more."""
    mappings = Mappings.of((mapping(rule("a.example", "7"), attribute=NUMA, name="mine"),))

    held = mappings.find(NUMA)
    other = mappings.find("dovetail.dev/pcieRoot")

    assert held is not None
    assert other is not None
    assert (held.origin, other.origin) == ("mine", "shipped")
    assert held.derive(device("a.example"), Memory()) == value(7)


def test_a_broken_object_replaces_the_shipped_mapping_all_the_same() -> None:
    """There is no fall-through to another source of the attribute."""
    mappings = Mappings.of((mapping(rule("a.example", "7 +"), attribute=NUMA, name="mine"),))

    held = mappings.find(NUMA)

    assert held is not None
    assert held.origin == "mine"
    assert not held.ready


def test_shipped_mappings_can_be_left_out() -> None:
    """Then there are only the objects, and without objects nothing."""
    assert Mappings.of((), shipped=False).attributes == frozenset()
    assert Mappings.none().attributes == frozenset()
    assert Mappings.of((mapping(rule("*", "1")),), shipped=False).attributes == {"example.com/numa"}


def test_a_change_gives_what_a_fresh_reading_gives() -> None:
    """Adding, replacing and removing objects ends where starting anew would end."""
    one = mapping(rule("*", "1"), name="one", created=OLD)
    two = mapping(rule("*", "2"), name="two", created=NEW)

    both = Mappings.of((one,)).with_object(two)
    only_two = both.without_object("one")

    assert both.duplicates == Mappings.of((one, two)).duplicates == {"two": "one"}
    assert only_two.duplicates == {}
    held = only_two.find("example.com/numa")
    assert held is not None
    assert held.origin == "two"
    assert only_two.without_object("never there").attributes == only_two.attributes


OBJECTS = [
    mapping(rule("*", expression), name=name, attribute=f"{domain}/x", created=created)
    for name in ("a", "b", "c")
    for domain in ("example.com", "dovetail.dev", "k8s.io")
    for created in (OLD, NEW, None)
    for expression in ("1", "1 +")
]
CHANGES = st.lists(st.one_of(st.sampled_from(OBJECTS), st.sampled_from(["a", "b", "c"])), max_size=12)


@given(CHANGES)
def test_any_series_of_changes_ends_where_starting_anew_ends(changes: list[DerivedAttribute | str]) -> None:
    """Whatever came and went, only the objects that are there now count."""
    mappings = Mappings.of(())
    present: dict[str, DerivedAttribute] = {}
    for change in changes:
        if isinstance(change, str):
            mappings = mappings.without_object(change)
            present.pop(change, None)
        else:
            mappings = mappings.with_object(change)
            present[change.metadata.name] = change

    fresh = Mappings.of(present.values())

    assert mappings.duplicates == fresh.duplicates
    assert mappings.invalid == fresh.invalid
    assert {key: (held.origin, held.ready) for key, held in mappings.effective.items()} == {
        key: (held.origin, held.ready) for key, held in fresh.effective.items()
    }


def test_a_change_leaves_the_older_picture_as_it_was() -> None:
    """A decision under way is not disturbed."""
    before = Mappings.of((), shipped=False)

    before.with_object(mapping(rule("*", "1")))

    assert before.attributes == frozenset()


def test_an_unchanged_mapping_is_not_compiled_again() -> None:
    """What others hold on to stays the same value across changes of other objects."""
    before = Mappings.of((mapping(rule("*", "1")),))

    after = before.with_object(mapping(rule("*", "2"), name="other", attribute="example.com/other"))

    assert after.find("example.com/numa") is before.find("example.com/numa")
    assert after.find(NUMA) is before.find(NUMA)


def test_an_object_that_became_unreadable_no_longer_holds() -> None:
    """Its earlier rules are gone, and the reason is kept under its name."""
    mappings = Mappings.of((mapping(rule("*", "1")),)).with_malformed("numa", "spec.unknown.0: no float")

    assert mappings.find("example.com/numa") is None
    assert mappings.invalid == {"numa": "spec.unknown.0: no float"}


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ("numa", "separated by a slash"),
        ("a/b/c", "C identifier"),
        ("/numa", "DNS subdomain"),
        ("example.com/", "C identifier"),
        ("example.com/9numa", "C identifier"),
        ("example.com/numa-node", "C identifier"),
        ("Example.com/numa", "DNS subdomain"),
        (f"{'a' * 64}/numa", "63 characters"),
        (f"example.com/{'n' * 33}", "32 characters"),
        ("resource.kubernetes.io/numaNode", "reserved"),
        ("k8s.io/numa", "reserved"),
        ("gpu.example.com/numa", "belongs to a driver"),
    ],
)
def test_an_attribute_that_no_constraint_may_name_is_refused(attribute: str, reason: str) -> None:
    """The object is not used, the reason is kept, and a shipped mapping is not replaced by it."""
    mappings = Mappings.of((mapping(rule("gpu.example.com", "1"), attribute=attribute, name="bad"),))

    assert reason in mappings.invalid["bad"]
    assert mappings.find(attribute) is None


@pytest.mark.parametrize("attribute", ["example.com/numa", "derived/numaNode", "notk8s.io/_x", "a.b-c.d/N0"])
def test_other_qualified_names_are_taken(attribute: str) -> None:
    """Every name that the API server takes in a constraint, outside Kubernetes' own domains."""
    assert refuse_attribute(attribute) == ""


def test_only_the_last_rule_may_be_for_any_driver() -> None:
    """Rules behind it could never apply."""
    first = mapping(rule("*", "1"), rule("a.example", "2"), name="first")
    none = mapping(name="none", attribute="example.com/other")

    invalid = Mappings.of((first, none)).invalid

    assert '"*"' in invalid["first"]
    assert "at least one rule" in invalid["none"]
