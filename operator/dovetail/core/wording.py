"""Lists, numbers, and the names of objects, as sentences have them: names only for whoever may read them."""

from collections.abc import Sequence

MOST_NAMES = 3
"""So many names are written out in one list."""

Named = tuple[str, str]
"""An object of a namespace, and its name."""


def names(given: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    shown = list(given[:MOST_NAMES])
    rest = len(given) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def count(number: int, what: str) -> str:
    """`1 device`, `2 devices`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def objects(what: str, given: Sequence[Named], viewer: str | None) -> str:
    """Objects of one kind: those of the viewer's namespace by name, those of others by number.

    `viewer` None stands for readers who may see all namespaces.
    """
    seen = [one for one in given if viewer is None or one[0] == viewer]
    hidden = len(given) - len(seen)
    parts = []
    if seen:
        full = ["/".join(filter(None, one)) for one in seen]
        parts.append(f"{what if len(seen) == 1 else what + 's'} {names(full)}")
    if hidden:
        namespaces = len({one[0] for one in given} - {viewer})
        whose = "another namespace" if namespaces == 1 else "other namespaces"
        parts.append(f"{count(hidden, what)} of {whose}")
    return " and ".join(parts)


def claims_of(given: Sequence[Named], viewer: str | None) -> str:
    """Claims, as `objects` names them."""
    return objects("claim", given, viewer)
