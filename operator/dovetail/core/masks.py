"""Devices of a node as bits of a number."""

from collections.abc import Iterable, Iterator


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def mask_of(numbers: Iterable[int]) -> int:
    """The mask in which the bits with these numbers are set."""
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask
