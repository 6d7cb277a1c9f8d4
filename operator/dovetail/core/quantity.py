"""Quantities as Kubernetes reads, compares, adds and prints them (resource.Quantity)."""

import re
from dataclasses import dataclass, field
from typing import Literal, Self

from typing_extensions import override

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

LARGEST_INT64 = (1 << 63) - 1
SMALLEST_INT64 = -(1 << 63)

MAX_EXPONENT = 4096
"""Larger powers of ten are refused: a comparison with such a number takes minutes, upstream as here."""

_NANO = -9
_FAST_DIGITS = 18

_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {0: ""} | {exponent: suffix for suffix, exponent in _BINARY.items()}

_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount: `unscaled` times ten to the power of `scale`, in a notation that it remembers.

    Quantities are equal when their amounts are, whatever their notation; they can be hashed and ordered.
    `small` says that Kubernetes holds the amount in 64 bits, which decides what counts as an integer.
    """

    unscaled: int
    scale: int = 0
    format: Format = "DecimalSI"
    small: bool = True
    text: str = ""
    nano: int = field(init=False)
    """The amount in billionths: the finest unit that a quantity can have."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "nano", self.unscaled * 10 ** (self.scale - _NANO))

    @classmethod
    def parse(cls, raw: str | float) -> Self:
        """Read a quantity as the API server does from JSON: text or a number, blanks around it ignored.

        Raises ValueError where Kubernetes refuses the text.
        """
        if isinstance(raw, bool):
            raise ValueError(f"{raw!r} is no quantity")  # noqa: TRY004 - all bad input is one error
        return cls.from_text(raw.strip() if isinstance(raw, str) else repr(raw))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read a quantity from exactly this text; raises ValueError."""
        if text == "0":
            return cls(0, text=text)
        match = _SHAPE.fullmatch(text)
        if match is None or not text:
            raise ValueError(f"{text!r} is no quantity: wanted a number and a suffix such as m, k, Mi or e3")
        sign, whole, fraction, suffix = match.groups(default="")
        exponent, notation = _suffix(text, suffix)
        parts = _Parts(text, sign == "-", whole.lstrip("0") or "0", fraction, exponent, notation)
        small = parts.small()
        if small is None and not whole and not fraction:
            raise ValueError(f"{text!r} is no quantity: it has no digits")
        return cls(*(small or parts.exact()))

    @classmethod
    def of(cls, amount: int, notation: Format = "DecimalSI") -> Self:
        """A whole amount."""
        return cls(amount, 0, notation, SMALLEST_INT64 <= amount <= LARGEST_INT64)

    @override
    def __str__(self) -> str:
        return self.text or self._canonical()

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    @override
    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __le__(self, other: "Quantity") -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: "Quantity") -> bool:
        return self.nano > other.nano

    def __ge__(self, other: "Quantity") -> bool:
        return self.nano >= other.nano

    def compare(self, other: "Quantity") -> int:
        """-1, 0 or 1."""
        return (self.nano > other.nano) - (self.nano < other.nano)

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.unscaled > 0) - (self.unscaled < 0)

    def add(self, other: "Quantity") -> "Quantity":
        """The sum, in this quantity's notation; in the other's where this one is zero."""
        notation = self.format if self.unscaled else other.format
        if self.small and other.small and not (self.unscaled and other.unscaled):
            amount = self if self.unscaled or not other.unscaled else other
            return Quantity(amount.unscaled, amount.scale, notation)
        scale = min(self.scale, other.scale)
        mine, others = _at(self, scale), _at(other, scale)
        small = self.small and other.small and all(map(_fits_int64, (mine, others, mine + others)))
        return Quantity(mine + others, scale, notation, small)

    def sub(self, other: "Quantity") -> "Quantity":
        """The difference, in this quantity's notation; in the other's where this one is zero."""
        opposite = Quantity(-other.unscaled, other.scale, other.format, other.small)
        if self.small and other.small and other.unscaled == SMALLEST_INT64:
            wrapped = self.add(Quantity(SMALLEST_INT64, other.scale, other.format))
            if wrapped.small:  # in 64 bits it has no opposite, upstream neither
                return wrapped
        return self.add(opposite)

    def __add__(self, other: "Quantity") -> "Quantity":
        return self.add(other)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self.sub(other)

    @property
    def value(self) -> int:
        """The amount as an integer, rounded away from zero."""
        return _divide_up(self.nano, 10**9)

    @property
    def milli_value(self) -> int:
        """The amount in thousandths, rounded away from zero."""
        return _divide_up(self.nano, 10**6)

    @property
    def integer(self) -> int | None:
        """The amount, if Kubernetes holds it as an integer of 64 bits: not so for `1.0` and `1000m`."""
        if not self.small or self.scale < 0:
            return None
        amount = _at(self, 0)
        return amount if _fits_int64(amount) else None

    @property
    def approximate(self) -> float:
        """The nearest float that Kubernetes finds."""
        try:
            base = float(self.unscaled)
        except OverflowError:
            base = float("inf") * self.sign
        return base * float(f"1e{self.scale}") if self.scale else base

    def _canonical(self) -> str:
        if not self.unscaled:
            return "0"
        if self.format == "BinarySI" and abs(self.nano) >= 1024 * 10**9 and self.nano % 10**9 == 0:
            amount, times = _without_factors(self.nano // 10**9, 1024)
            return f"{amount}{_BINARY_SUFFIX.get(times * 10, '')}"
        amount, times = _without_factors(self.unscaled, 10)
        exponent = self.scale + times
        amount, exponent = amount * 10 ** (exponent % 3), exponent - exponent % 3
        if self.format == "DecimalExponent":
            return f"{amount}e{exponent}" if exponent else str(amount)
        return f"{amount}{_DECIMAL_SUFFIX.get(exponent, '')}"


@dataclass(frozen=True, slots=True)
class _Parts:
    """A quantity taken apart: digits before and behind the dot, and what the suffix means."""

    text: str
    negative: bool
    whole: str
    fraction: str
    exponent: int
    format: Format

    def small(self) -> tuple[int, int, Format, bool, str] | None:
        """The fields of a quantity that Kubernetes' quick path reads into 64 bits; None where it gives up."""
        digits = len(self.whole) + len(self.fraction)
        factor, scale, room = 1, self.exponent, _FAST_DIGITS - digits
        if self.format == "BinarySI":
            factor, scale = 1 << self.exponent, 0
            room = -1 if self.fraction else 15 - len(self.whole) - int(self.exponent * 3 / 10) - 1
        scale -= len(self.fraction)
        if room < 0 or scale < _NANO:
            return None
        shifted = self.whole + self.fraction
        amount = int(shifted)
        if not _fits_int64(amount * factor):
            return None
        signed = -amount * factor if self.negative else amount * factor
        return signed, scale, self.format, True, self.text if self._is_canonical(shifted, scale) else ""

    def _is_canonical(self, shifted: str, scale: int) -> bool:
        if self.format == "BinarySI":
            return int(shifted) & 7 != 0
        return scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"

    def exact(self) -> tuple[int, int, Format, bool, str]:
        """The fields of a quantity of any size, rounded up to billionths."""
        amount, scale = int(self.whole + self.fraction), -len(self.fraction)
        notation = self.format
        if notation == "BinarySI":
            amount <<= self.exponent
        else:
            scale += self.exponent
        if amount:
            amount = amount * _power(scale - _NANO) if scale >= _NANO else -(-amount // _power(_NANO - scale))
            scale = _NANO
        if notation == "BinarySI":
            amount = min(amount, LARGEST_INT64 * 10**9)
            notation = "DecimalSI" if 0 < amount < 10**9 else notation
        return -amount if self.negative else amount, max(scale, _NANO), notation, False, ""


def _at(quantity: Quantity, scale: int) -> int:
    return quantity.unscaled * _power(quantity.scale - scale)


def _power(exponent: int) -> int:
    return int(10**exponent)


def _suffix(text: str, suffix: str) -> tuple[int, Format]:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], "DecimalSI"
    if suffix in _BINARY:
        return _BINARY[suffix], "BinarySI"
    match = _EXPONENT.fullmatch(suffix)
    if match is None or not _fits_int64(power := int(match[1])):
        raise ValueError(f"{text!r} is no quantity: {suffix!r} is no suffix of quantities")
    power = (power + (1 << 31)) % (1 << 32) - (1 << 31)  # upstream keeps the lower 32 bits
    if abs(power) > MAX_EXPONENT:
        raise ValueError(f"{text!r} is no quantity: its exponent is beyond {MAX_EXPONENT}")
    return power, "DecimalExponent"


def _fits_int64(amount: int) -> bool:
    return SMALLEST_INT64 <= amount <= LARGEST_INT64


def _divide_up(amount: int, divisor: int) -> int:
    return -(-amount // divisor) if amount > 0 else amount // divisor


def _without_factors(amount: int, factor: int) -> tuple[int, int]:
    times = 0
    while amount % factor == 0:
        amount, times = amount // factor, times + 1
    return amount, times
