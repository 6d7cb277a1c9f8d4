"""Which pods are asked about: no pod keeps another one from being asked about."""

from collections.abc import Callable
from itertools import pairwise

from dovetail.core.contest import LONGEST_REST_SECONDS, Candidate, Contest

PLACES = 8


def candidate(
    namespace: str, name: str = "p", *, priority: int = 0, age: int = 5, **more: object
) -> Candidate:
    """A pod; the older one has the smaller age here."""
    return Candidate(
        (namespace, name),
        f"{namespace}/{name}",
        (-priority, f"2026-01-01T00:00:{age:02}Z", namespace, name),
        **more,  # type: ignore[arg-type]
    )


def looks_until(
    contest: Contest, waiting: Callable[[int], list[Candidate]], wanted: str, most: int = 2000
) -> int:
    """How many looks, one a second, it takes until the pod is asked about; nobody can be helped."""
    for number in range(most):
        asked = contest.pick(waiting(number), PLACES, float(number))
        assert len(asked) <= PLACES
        contest.tried(asked, (), float(number))
        if wanted in {each.uid for each in asked}:
            return number
    raise AssertionError(wanted)


def test_the_most_urgent_are_asked_first_one_of_each_namespace() -> None:
    """By priority, then by what was in vain for the namespace, then by age."""
    high = candidate("b", priority=9)
    owing, old, young = candidate("c", age=1, owed=4.0), candidate("d", age=2), candidate("e", age=3)
    second = candidate("b", "second", priority=8)
    others = [candidate(f"z{index}", age=20) for index in range(9)]

    asked = Contest().pick([*others, second, young, old, owing, high], PLACES, 0)

    assert asked[:4] == [high, old, young, others[0]]


def test_an_elder_pod_that_cannot_be_helped_leaves_its_namespace_the_place() -> None:
    """However many there are, and whatever their priority."""
    never = [candidate("a", f"never-{index}", priority=100, age=index) for index in range(50)]
    fits = candidate("a", "fits", age=55)

    assert looks_until(Contest(), lambda _: [*never, fits], "a/fits") <= len(never)


def test_pods_that_cannot_be_helped_leave_other_namespaces_their_places() -> None:
    """Many more namespaces than places, with more urgent pods."""
    never = [candidate(f"n{index:03}", priority=100, age=1) for index in range(400)]
    fits = candidate("z")

    assert looks_until(Contest(), lambda _: [*never, fits], "z/p") <= 401 // (PLACES // 2) + 1


def test_new_pods_every_second_change_nothing() -> None:
    """Each of them is one that was never asked about."""

    def waiting(number: int) -> list[Candidate]:
        new = [candidate(f"n{index:03}", f"p-{number}", priority=100, is_news=True) for index in range(100)]
        return [*new, candidate("z")]

    assert looks_until(Contest(), waiting, "z/p") <= 101 // (PLACES // 2) + 1


def test_a_pod_that_could_not_be_helped_takes_its_place_again() -> None:
    """Before less urgent ones, a minute later at the latest."""
    contest = Contest()
    never, other = candidate("a", priority=9), candidate("b")
    times = []
    for second in range(400):
        asked = contest.pick([other, never], 1, float(second))
        contest.tried(asked, {other.uid}, float(second))
        times += [second for each in asked if each is never]

    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[:3] == [2, 4, 8]
    assert max(gaps) == LONGEST_REST_SECONDS


def test_a_pod_for_which_devices_are_held_is_always_asked_about() -> None:
    """In its namespace only a pod of higher priority is asked about beside it."""
    held = candidate("a", "held", priority=5, age=9, is_held_for=True)
    equal, higher = candidate("a", "equal", priority=5, age=1), candidate("a", "higher", priority=6)
    contest = Contest()
    for second in range(20):
        asked = contest.pick([equal, held, higher], PLACES, float(second))
        contest.tried(asked, {held.uid}, float(second))
        assert held in asked
        assert equal not in asked
    assert higher in asked


def test_what_is_remembered_is_bounded_by_the_pods_that_wait() -> None:
    """A pod that is gone is forgotten."""
    contest = Contest()
    for second in range(100):
        one = candidate("a", f"p-{second}")
        contest.tried(contest.pick([one], PLACES, float(second)), (), float(second))

    assert len(contest._tries) == 1
