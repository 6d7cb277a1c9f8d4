"""Accounts of what the decisions of a namespace, or of a pod, have cost."""

from dovetail.core.allowance import BRIEF_SECONDS, MOST_SECONDS, RATE, SHORTEST_SECONDS
from dovetail.core.shares import FRESH, HALF_LIFE_SECONDS, SHARE_SECONDS, WASTE_SECONDS, Shares


def test_a_usual_load_changes_nothing() -> None:
    """A hundred decisions of a millisecond leave a namespace beside one that made none."""
    shares = Shares()
    for _ in range(100):
        shares.charge("a", 0.001, 0.0)

    assert shares.standing("a", 0.0) == shares.standing("b", 0.0) == FRESH


def test_who_used_more_comes_later_until_that_is_forgotten() -> None:
    """Use counts in steps, and halves with time."""
    shares = Shares()
    shares.charge("a", 4 * SHARE_SECONDS, 100.0)

    levels = [shares.standing("a", 100.0 + times * HALF_LIFE_SECONDS).level for times in range(4)]

    assert levels == [4, 2, 1, 0]


def test_only_searches_that_were_cut_are_waste() -> None:
    """What led to an answer never puts a namespace behind pods of lower priority."""
    shares = Shares()
    shares.charge("busy", 10 * WASTE_SECONDS, 0.0)
    shares.charge("wasteful", 2 * WASTE_SECONDS, 0.0, wasted=True)

    assert not shares.standing("busy", 0.0).waste
    assert shares.standing("wasteful", 0.0).waste
    assert not shares.standing("wasteful", 1.5 * HALF_LIFE_SECONDS).waste


def test_many_namespaces_that_waste_little_each_come_last_together() -> None:
    """While all first searches that are cut take more than is allowed, those who made them come after others.

    Who has made one comes before those who go on, though they be many; and it is forgotten.
    """
    shares = Shares()
    crowd = [f"crowd-{number}" for number in range(16)]
    shares.charge_first("one", BRIEF_SECONDS, 0.0)
    for name in crowd * 4:
        shares.charge_first(name, SHORTEST_SECONDS, 0.0)

    standings = [shares.standing(name, 0.0) for name in ("none", "one", *crowd)]

    assert standings[0] == FRESH < standings[1]
    assert all(standings[1] < standing for standing in standings[2:])
    assert shares.standing("crowd-0", MOST_SECONDS / RATE) == FRESH


def test_a_single_cut_is_not_held_against_a_namespace_for_long() -> None:
    """However many others go on: after half a minute it stands beside those that had none."""
    shares = Shares()
    shares.charge_first("one", BRIEF_SECONDS, 0.0)
    for second in range(40):
        for number in range(100):
            shares.charge_first(f"crowd-{number}", SHORTEST_SECONDS, float(second))

    assert shares.standing("one", 39.0) == FRESH < shares.standing("crowd-0", 39.0)


def test_accounts_do_not_pile_up() -> None:
    """An account that nobody has used for long is closed."""
    shares = Shares()
    for number in range(1000):
        shares.charge(f"default/p{number}", 0.001, float(number))

    shares.charge("default/late", 0.001, 10_000.0)

    assert len(shares) == 1
