"""For how long devices are kept, and when again."""

from dovetail.core.terms import LONGEST_REST_SECONDS, Terms


def test_a_term_ends_and_does_not_come_back_at_once() -> None:
    """It rests for twice as long, then for four times as long."""
    terms = Terms(100)
    terms.hold("a", 0)
    terms.hold("a", 50)

    assert terms.left("a", 99) == 1
    assert terms.left("a", 100) == 0
    terms.end_in_vain("a", "n1", 0, 100)
    assert not terms.may_hold("a", 299)
    assert terms.may_hold("a", 300)
    terms.hold("a", 300)
    assert terms.left("a", 300) == 100
    terms.end_in_vain("a", "n1", 0, 400)
    assert not terms.may_hold("a", 799)
    assert terms.may_hold("a", 800)


def test_rests_have_a_limit() -> None:
    """A pod that waits for days gets its chance every hour."""
    terms = Terms(100)
    for _ in range(20):
        terms.end_in_vain("a", "n1", 0, 0)

    assert terms.may_hold("a", LONGEST_REST_SECONDS)


def test_a_row_of_pods_does_not_keep_a_node_for_ever() -> None:
    """Where it was in vain for one, nothing is kept for others of its priority, but for more urgent ones."""
    terms = Terms(100)
    terms.end_in_vain("a", "n1", 5, -500)
    terms.end_in_vain("a", "n1", 5, 0)

    assert terms.spent_nodes(5, 199) == terms.spent_nodes(0, 199) == {"n1"}
    assert terms.spent_nodes(6, 199) == frozenset()
    assert terms.spent_nodes(5, 200) == frozenset()


def test_a_pod_that_was_served_has_its_term_anew() -> None:
    """What was in vain before is forgotten."""
    terms = Terms(100)
    terms.end_in_vain("a", "n1", 0, 0)

    terms.forget("a")

    assert terms.may_hold("a", 1)
    assert terms.left("a", 1) == 100


def test_no_seconds_mean_never() -> None:
    """The setting switches it off."""
    assert not Terms(0).may_hold("a", 0)
