"""The objects of an input, each once: later files replace what earlier ones say."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dovetail.cli.manifests import Ignored, Key, Manifest, Origin, Trouble, read_manifests

MOST_TROUBLES = 1000
"""So many problems of an input are told."""

MOST_NAMES = 20
"""So many names stand in one note."""


@dataclass(slots=True)
class Gathered:
    """What was found: `manifests` in the order in which each object was first named; `files` as read."""

    manifests: dict[Key, Manifest] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    replaced: dict[Key, Origin] = field(default_factory=dict)
    ignored: Counter[str] = field(default_factory=Counter)
    files: dict[str, int] = field(default_factory=dict)

    def notes(self) -> Iterator[str]:
        """What a person would want to know of the input."""
        for key, before in list(self.replaced.items())[:MOST_NAMES]:
            manifest = self.manifests[key]
            yield f"{manifest.title} is that of {manifest.origin}, which replaces that of {before}."
        if (more := len(self.replaced) - MOST_NAMES) > 0:
            yield f"{counted(more, 'more object')} of earlier files replaced by later ones."
        if self.ignored:
            kinds = [f"{kind}, {counted(number, 'object')}" for kind, number in sorted(self.ignored.items())]
            yield f"ignored: {listed(kinds, '; ')}."

    def in_input_order(self, troubles: Iterable[Trouble]) -> tuple[Trouble, ...]:
        """By file as they were read, then by document; the first ones, where there are many."""
        ordered = sorted(troubles, key=lambda each: (self.files[each.origin.file], each.origin.document))
        if (more := len(ordered) - MOST_TROUBLES) > 0:
            last = ordered[MOST_TROUBLES].origin
            ordered[MOST_TROUBLES:] = [Trouble(Origin(last.file), counted(more, "more problem"))]
        return tuple(ordered)


def gather(paths: Sequence[str]) -> Gathered:
    """Each object once. One that a file names twice is a problem, and so is an input without any object."""
    gathered = Gathered()
    for each in read_manifests(paths):
        gathered.files.setdefault(each.origin.file, len(gathered.files))
        match each:
            case Trouble():
                gathered.troubles.append(each)
            case Ignored():
                gathered.ignored[each.kind] += 1
            case Manifest():
                _take(gathered, each)
    if not gathered.manifests and not gathered.troubles:
        gathered.troubles.append(_nothing(gathered, paths[0]))
        gathered.files.setdefault(paths[0], 0)
    return gathered


def listed(names: Sequence[str], separator: str = ", ") -> str:
    """The names, as far as one note holds them."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{separator.join(names[:MOST_NAMES])}{more}"


def counted(number: int, noun: str) -> str:
    """The number with the noun, which is given for one."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _take(gathered: Gathered, manifest: Manifest) -> None:
    key = manifest.key
    first = gathered.manifests.get(key)
    if first is not None and first.origin.file == manifest.origin.file:
        gathered.troubles.append(manifest.trouble(f"it is in the file twice, first in {first.origin}"))
        return
    if first is not None:
        gathered.replaced[key] = first.origin
    gathered.manifests[key] = manifest


def _nothing(gathered: Gathered, file: str) -> Trouble:
    """Why there is nothing to plan or to audit: what was read is not said to be fine."""
    kinds = f"; it has {listed(sorted(gathered.ignored))}" if gathered.ignored else ""
    return Trouble(Origin(file), f"the input has no object of a kind that Dovetail reads{kinds}")
