"""What is wrong with an object: where, and one sentence."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from typing_extensions import override


class Fault(NamedTuple):
    """A field that the API server refuses; the path is written as the API server does."""

    path: str
    sentence: str

    @override
    def __str__(self) -> str:
        return f"{self.path}: {self.sentence}" if self.path else self.sentence


def size(text: str) -> int:
    """How many bytes a text has; half of a surrogate pair counts as what the API server makes of it."""
    return len(text.encode("utf-8", "surrogatepass"))


Faults = Iterator[Fault]


def missing(path: str) -> Fault:
    """A field without which the object is incomplete."""
    return Fault(path, "it is missing")


def too_many(path: str, count: int, most: int) -> Fault:
    """A list or map with more entries than Kubernetes takes."""
    return Fault(path, f"it has {count} entries, and {most} is the most")


def repeated(path: str, name: object) -> Fault:
    """An entry that an earlier one equals."""
    return Fault(path, f"{name!r} is there twice")


def repeats(found: Sequence[str], at: str) -> Faults:
    """Entries that are there before."""
    seen: set[str] = set()
    for index, name in enumerate(found):
        if name in seen:
            yield repeated(f"{at}[{index}]", name)
        seen.add(name)


def too_long(path: str, most: int) -> Fault:
    """A text with more bytes than Kubernetes takes."""
    return Fault(path, f"it is longer than {most} bytes")


def unknown_choice(path: str, value: object, choices: tuple[str, ...]) -> Fault:
    """A value that is none of those that the field takes."""
    return Fault(path, f"{value!r} is not one of {', '.join(choices)}")
