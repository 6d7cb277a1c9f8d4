"""Semantic versions as Kubernetes reads, compares and prints them (semver.org 2.0)."""

import re
from dataclasses import dataclass, field
from functools import total_ordering
from typing import Final, Self

from typing_extensions import override

LARGEST_UINT64: Final = (1 << 64) - 1

_NUMBER = r"(0|[1-9][0-9]*)"
_SHAPE: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([^+]*))?(?:\+(.*))?", re.ASCII | re.DOTALL)
_IDENTIFIER: Final = re.compile(r"[0-9A-Za-z-]+", re.ASCII)
_DIGITS: Final = re.compile(r"[0-9]+", re.ASCII)


@total_ordering
@dataclass(frozen=True, slots=True)
class Semver:
    """A version; what follows a plus sign neither orders nor distinguishes versions."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()
    build: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a version; raises ValueError."""
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no semantic version")
        major, minor, patch, prerelease, build = match.groups()
        version = cls(
            int(major),
            int(minor),
            int(patch),
            () if prerelease is None else tuple(prerelease.split(".")),
            () if build is None else tuple(build.split(".")),
        )
        if not version._is_valid():
            raise ValueError(f"{text!r} is no semantic version")
        return version

    @classmethod
    def normalised(cls, text: str) -> Self:
        """Read a version that may begin with `v`, have leading zeros, or lack minor and patch."""
        parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
        if len(parts) < 3 and any(mark in parts[-1] for mark in "+-"):
            raise ValueError(f"{text!r} is no semantic version: a short one cannot carry a suffix")
        return cls.parse(".".join(parts + ["0"] * (3 - len(parts))))

    @override
    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(self.prerelease)
        return text + "+" + ".".join(self.build) if self.build else text

    def __lt__(self, other: "Semver") -> bool:
        return self.compare(other) < 0

    def compare(self, other: "Semver") -> int:
        """-1, 0 or 1."""
        mine, others = (self.major, self.minor, self.patch), (other.major, other.minor, other.patch)
        if mine != others:
            return 1 if mine > others else -1
        if not self.prerelease or not other.prerelease:
            return bool(other.prerelease) - bool(self.prerelease)
        first, second = [*map(_rank, self.prerelease)], [*map(_rank, other.prerelease)]
        return (first > second) - (first < second)

    def _is_valid(self) -> bool:
        return (
            max(self.major, self.minor, self.patch) <= LARGEST_UINT64
            and all(_IDENTIFIER.fullmatch(part) for part in (*self.prerelease, *self.build))
            and not any(_is_padded(part) for part in self.prerelease)
        )


def _without_zeros(part: str) -> str:
    if len(part) < 2:
        return part
    shorter = part.lstrip("0")
    return shorter if _DIGITS.match(shorter) else "0" + shorter


def _is_padded(part: str) -> bool:
    """Whether a number has leading zeros, or is too large."""
    if not _DIGITS.fullmatch(part):
        return False
    return (len(part) > 1 and part.startswith("0")) or int(part) > LARGEST_UINT64


def _rank(part: str) -> tuple[int, int, str]:
    """Numbers come before words."""
    return (0, int(part), "") if _DIGITS.fullmatch(part) else (1, 0, part)
