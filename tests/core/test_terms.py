"""For how long devices are held, what it costs where it was in vain, and when they are held again."""

from dovetail.core.terms import LONGEST_REST_SECONDS, Terms
from dovetail.core.values import PoolKey


def charge(
    terms: Terms, seconds: float, now: float, *, namespace: str = "a", node: str = "n1", priority: int = 5
) -> None:
    """Devices of the node were held in vain, for a pod of the namespace."""
    terms.charge(namespace, node, [PoolKey("gpu.example.com", "shared")], priority, seconds, now)


def test_a_term_ends_and_does_not_come_back_at_once() -> None:
    """It rests for twice as long, then for four times as long."""
    terms = Terms(100)
    terms.hold("a", 0)
    terms.hold("a", 50)

    assert terms.left("a", 99) == 1
    assert terms.left("a", 100) == 0
    terms.end("a", 100)
    assert not terms.may_hold("a", "default", 0, 299)
    assert terms.may_hold("a", "default", 0, 300)
    terms.hold("a", 300)
    assert terms.left("a", 300) == 100
    terms.end("a", 400)
    assert not terms.may_hold("a", "default", 0, 799)
    assert terms.may_hold("a", "default", 0, 800)


def test_only_time_during_which_devices_are_held_counts() -> None:
    """What more urgent pods take of it comes back later, and what was used stays used."""
    terms = Terms(100)
    terms.hold("a", 0)
    terms.pause("a", 30)

    assert terms.left("a", 500) == 70
    terms.hold("a", 500)
    assert terms.left("a", 569) == 1
    assert terms.left("a", 570) == 0


def test_rests_have_a_limit() -> None:
    """A pod that waits for days gets its chance every hour."""
    terms = Terms(100)
    for _ in range(20):
        terms.end("a", 0)

    assert terms.may_hold("a", "default", 0, LONGEST_REST_SECONDS)


def test_what_was_in_vain_is_owed_by_the_node_whoever_comes_next() -> None:
    """Twice as long, by all pods of no higher priority, and by what other nodes share with it."""
    terms = Terms(100)
    charge(terms, 60, now=0)

    assert terms.spent_nodes(5, 119) == terms.spent_nodes(0, 119) == {"n1"}
    assert terms.spent_pools(5, 119) == {PoolKey("gpu.example.com", "shared")}
    assert terms.spent_nodes(6, 119) == frozenset()
    assert not terms.spent_nodes(5, 120)
    assert not terms.spent_pools(5, 120)


def test_what_was_in_vain_is_owed_by_the_namespace_whichever_node_comes_next() -> None:
    """As long, by its pods of no higher priority; others owe nothing."""
    terms = Terms(100)
    charge(terms, 60, now=0)

    assert not terms.may_hold("successor", "a", 5, 59)
    assert terms.may_hold("urgent", "a", 6, 59)
    assert terms.may_hold("other", "b", 5, 59)
    assert terms.may_hold("successor", "a", 5, 60)


def test_of_a_long_time_a_third_at_most_is_in_vain() -> None:
    """Whatever comes one after the other: short holds, long ones, many namespaces, rising priorities."""
    for lengths, priorities in (((100,), (0,)), ((7, 90), (0,)), ((1,), (0,)), ((100,), (0, 1, 2, 3, 4))):
        terms = Terms(100)
        now = held = 0.0
        for number in range(200):
            priority = priorities[number % len(priorities)]
            while terms.spent_nodes(priority, now):
                now += 1
            length = lengths[number % len(lengths)]
            now, held = now + length, held + length
            charge(terms, length, now, namespace=f"ns-{number}", priority=priority)
        while terms.spent_nodes(0, now):
            now += 1

        assert held / now <= 1 / 3 + 0.01, (lengths, priorities)


def test_who_used_more_in_vain_comes_later_until_it_is_forgotten() -> None:
    """Two namespaces, and one that has used nothing."""
    terms = Terms(100)
    charge(terms, 90, now=0)
    charge(terms, 50, now=0, namespace="b")

    assert terms.owed("a", 10) > terms.owed("b", 10) > terms.owed("c", 10) == 0
    charge(terms, 5, now=20_000, namespace="c")
    assert terms.owed("a", 20_000) < terms.owed("c", 20_000)


def test_a_pod_that_was_served_has_its_term_anew() -> None:
    """What was in vain before is forgotten."""
    terms = Terms(100)
    terms.end("a", 0)

    terms.forget("a")

    assert terms.may_hold("a", "default", 0, 1)
    assert terms.left("a", 1) == 100


def test_no_seconds_mean_never() -> None:
    """The setting switches it off."""
    assert not Terms(0).may_hold("a", "default", 0, 0)
