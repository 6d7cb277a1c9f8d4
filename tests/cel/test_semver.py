"""Semantic versions are read and compared as Kubernetes does."""

from itertools import pairwise

import pytest

from dovetail.core.semver import Semver

ORDER = (
    "1.0.0-1",
    "1.0.0-2",
    "1.0.0-10",
    "1.0.0-a",
    "1.0.0-a.1",
    "1.0.0-a.b",
    "1.0.0-b",
    "1.0.0",
    "1.0.1",
    "1.2.0",
    "10.0.0",
)


def test_versions_stand_in_the_order_of_semver_org() -> None:
    """Numbers before words, shorter before longer, a pre-release before its release."""
    assert all(Semver.parse(first) < Semver.parse(second) for first, second in pairwise(ORDER))
    assert sorted(map(Semver.parse, reversed(ORDER))) == [*map(Semver.parse, ORDER)]


def test_what_follows_a_plus_sign_does_not_distinguish_versions() -> None:
    """Equal, and equally hashed; but it is printed."""
    first, second = Semver.parse("1.0.0+a"), Semver.parse("1.0.0+b.01")
    assert first == second
    assert hash(first) == hash(second)
    assert str(second) == "1.0.0+b.01"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.0",
        "v1.0.0",
        "01.0.0",
        "1.0.0-",
        "1.0.0-01",
        "1.0.0+",
        "1.0.0-a..b",
        "1.0.0 ",
        "1.0.x",
        f"{1 << 64}.0.0",
    ],
)
def test_what_is_no_version_is_refused(text: str) -> None:
    """A text that Kubernetes does not take raises ValueError."""
    with pytest.raises(ValueError, match="semantic version"):
        Semver.parse(text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("v1", "1.0.0"),
        ("1.2", "1.2.0"),
        ("v01.002.03", "1.2.3"),
        ("1.2.3-rc.1", "1.2.3-rc.1"),
        ("00.0.0", "0.0.0"),
    ],
)
def test_normalising_fills_up_and_strips(text: str, normal: str) -> None:
    """A leading v, leading zeros and missing parts are forgiven."""
    assert str(Semver.normalised(text)) == normal


def test_a_short_version_cannot_carry_a_suffix() -> None:
    """`1.2-rc` could mean several things."""
    with pytest.raises(ValueError, match="suffix"):
        Semver.normalised("1.2-rc")
