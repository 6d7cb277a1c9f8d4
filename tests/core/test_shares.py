"""Accounts of what the decisions of a namespace, or of a pod, have cost."""

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

    assert not shares.standing("busy", 0.0).is_wasteful
    assert shares.standing("wasteful", 0.0).is_wasteful
    assert not shares.standing("wasteful", 1.5 * HALF_LIFE_SECONDS).is_wasteful


def test_accounts_do_not_pile_up() -> None:
    """An account that nobody has used for long is closed."""
    shares = Shares()
    for number in range(1000):
        shares.charge(f"default/p{number}", 0.001, float(number))

    shares.charge("default/late", 0.001, 10_000.0)

    assert len(shares) == 1
