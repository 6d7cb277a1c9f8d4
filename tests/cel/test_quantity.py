"""Quantities are read, compared, added and printed as Kubernetes does."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dovetail.core.quantity import MAX_EXPONENT, Quantity

SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-3")

quantities = st.builds(
    lambda sign, whole, fraction, suffix: Quantity.parse(f"{sign}{whole}{fraction}{suffix}"),
    st.sampled_from(("", "-", "+")),
    st.integers(0, 10**12),
    st.sampled_from(("", ".", ".5", ".125", ".000000001")),
    st.sampled_from(SUFFIXES),
)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1Ki", "1Ki"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.0001Ki", "102400u"),
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("+3", "+3"),
        ("12e6", "12e6"),
        ("1e-20", "1e-9"),
        ("0.1n", "1n"),
        (".", "0"),
        ("9223372036854775808", "9223372036854775808"),
        ("10000000000000000000Ei", "9223372036854775807"),
        (" 1 ", "1"),
        ("1000E", "1"),
        (5, "5"),
        (0.5, "500m"),
    ],
)
def test_the_canonical_form_is_that_of_kubernetes(text: str | float, printed: str) -> None:
    """What Kubernetes prints for a quantity is what we print."""
    assert str(Quantity.parse(text)) == printed


@pytest.mark.parametrize(
    "text", ["", "x", "1e", "1i", "1Kib", "1.2.3", "0x1", "\u0663", "- 1", f"1e{MAX_EXPONENT + 1}"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """A text that Kubernetes does not take raises ValueError."""
    with pytest.raises(ValueError, match="quantity"):
        Quantity.parse(text)


def test_a_truth_value_is_no_quantity() -> None:
    """JSON's true is not read as 1."""
    with pytest.raises(ValueError, match="no quantity"):
        Quantity.parse(True)


@pytest.mark.parametrize(
    ("text", "integer"),
    [("1Ki", 1024), ("1.0", None), ("1000m", None), ("1e3", 1000), ("9223372036854775808", None)],
)
def test_only_what_kubernetes_holds_as_an_integer_is_one(text: str, integer: int | None) -> None:
    """A decimal point or a small suffix is enough for an amount not to count as an integer."""
    assert Quantity.parse(text).integer == integer


def test_a_sum_keeps_the_notation_of_the_first_that_is_not_zero() -> None:
    """`0 + 1Ki` is binary, `1 + 1Ki` is decimal."""
    assert str(Quantity.parse("0") + Quantity.parse("1Ki")) == "1Ki"
    assert str(Quantity.parse("1") + Quantity.parse("1Ki")) == "1025"
    assert str(Quantity.parse("1Gi") - Quantity.parse("512Mi")) == "512Mi"


def test_a_difference_with_the_smallest_integer_is_exact_beyond_64_bits() -> None:
    """64 bits hold no opposite of MIN: it stays MIN there, as in Kubernetes, and is exact beyond."""
    smallest = Quantity.parse("-9223372036854775808")
    assert str(Quantity.parse("1500m") - smallest) == "9223372036854775809500m"
    assert str(Quantity.of(0) - Quantity.of(-(1 << 63))) == "-9223372036854775808"


def test_equal_amounts_are_equal_whatever_their_notation() -> None:
    """`1Ki` and `1024` are the same key."""
    assert {Quantity.parse("1Ki"), Quantity.parse("1024"), Quantity.parse("1024000m")} == {
        Quantity.parse("1024")
    }


@given(quantities)
def test_the_printed_form_reads_back_as_the_same_amount(quantity: Quantity) -> None:
    """Printing loses nothing, unless no suffix is large enough: then Kubernetes leaves it out."""
    assume(abs(quantity.nano) < 10**30 or quantity.format == "DecimalExponent")
    assert Quantity.parse(str(quantity)) == quantity


@given(quantities, quantities)
def test_addition_and_subtraction_are_exact(first: Quantity, second: Quantity) -> None:
    """Billionths add up, and what was added can be taken away."""
    assert (first + second).nano == first.nano + second.nano
    assert (first + second) - second == first
    assert first.compare(second) == -second.compare(first)


@given(quantities)
def test_the_value_is_rounded_away_from_zero(quantity: Quantity) -> None:
    """A part of a unit counts as a whole one."""
    assert 0 <= (abs(quantity.value) * 10**9 - abs(quantity.nano)) < 10**9
