"""What would help where an expression reads what a device lacks: counts, the nearest name, a guard."""

from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

from dovetail.core.cel.verdicts import Failure, FailureKind
from dovetail.core.devices import DeviceView

LEAST_LIKENESS: Final = 0.6
"""How alike a name must be to be worth a mention, from 0 to 1."""


def hint(failure: Failure, devices: Iterable[DeviceView]) -> str:
    """A sentence that helps to mend the expression; empty where there is nothing to say.

    `devices` are those that the expression is meant for, such as all devices of a driver.
    """
    if failure.kind is not FailureKind.MISSING or not failure.id:
        return ""
    names, total = _count(failure.of, devices)
    if not total:
        return ""
    wanted = f"{failure.domain}/{failure.id}"
    present = _present(failure, names)
    said = f"present on {present} of {total}"
    if present == total:
        return said
    if present:
        return f"{said}; guard it with {_guard(failure)}"
    nearest = _nearest(failure, names)
    if nearest is None or nearest == wanted:
        return said
    return f"{said}; did you mean {_shown(nearest, failure)} ({names[nearest]} of {total})?"


def _count(of: str, devices: Iterable[DeviceView]) -> tuple[Counter[str], int]:
    """On how many devices each qualified name is, and how many devices there are."""
    names: Counter[str] = Counter()
    total = 0
    for device in devices:
        names.update(device.capacity.keys() if of == "capacity" else device.attributes.keys())
        total += 1
    return names, total


def _present(failure: Failure, names: Counter[str]) -> int:
    """How many devices have it; where the expression hides the domain, by the best domain."""
    if failure.domain:
        return names[f"{failure.domain}/{failure.id}"]
    return max((count for name, count in names.items() if name.partition("/")[2] == failure.id), default=0)


def _nearest(failure: Failure, names: Counter[str]) -> str | None:
    """The name that was probably meant: alike, rather in the same domain, rather on many devices."""
    best = max(names, key=lambda name: (_likeness(failure, name), names[name], name), default=None)
    return best if best is not None and _likeness(failure, best) >= LEAST_LIKENESS else None


def _likeness(failure: Failure, name: str) -> float:
    domain, _, ident = name.partition("/")
    alike = 1.0 if ident == failure.id else _alike(ident, failure.id)
    return alike - (0.0 if domain == failure.domain or not failure.domain else 0.05)


def _alike(first: str, second: str) -> float:
    if first.lower() == second.lower():
        return 0.99
    return SequenceMatcher(None, first.lower(), second.lower()).ratio()


def _shown(name: str, failure: Failure) -> str:
    """A name as the expression would write it: the id alone where the domain was right."""
    domain, _, ident = name.partition("/")
    return ident if domain == failure.domain else f'device.{failure.of}["{domain}"].{ident}'


def _guard(failure: Failure) -> str:
    if not failure.domain:
        return f"has(….{failure.id})"
    return f'has(device.{failure.of}["{failure.domain}"].{failure.id})'
