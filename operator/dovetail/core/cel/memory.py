"""Results kept by what they depend on: the expression, and the part of the device that it can read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from dovetail.core.budget import Budget
from dovetail.core.cel.engine import Program
from dovetail.core.cel.verdicts import Failure
from dovetail.core.cel.view import prepared
from dovetail.core.devices import DeviceView
from dovetail.core.values import AttributeValue

_EVERYTHING: Final = ("*",)
_UNKNOWN: Final = object()


@dataclass(frozen=True, slots=True)
class Matching:
    """What a selector says of several devices: bit `i` of `mask` stands for device `i`.

    A device with a failure has no bit; failures are listed by position.
    """

    mask: int
    failures: tuple[tuple[int, Failure], ...] = ()


class _Entry:
    """The results of one program."""

    __slots__ = ("key", "results")

    def __init__(self, program: Program) -> None:
        names = _EVERYTHING if program.reads is None else tuple(sorted(program.reads))
        self.key: Callable[[Any], Any] = itemgetter(*names) if names else lambda _: ()
        self.results: dict[Any, Any] = {}


class Memory:
    """A bounded memory of results, safe to share between threads; `hits` and `misses` count.

    What is equal to an expression shares one result: 80,000 devices are a few dozen different ones.
    `size` bounds how many results there are; a large one, and an expression, counts as several.
    When it is full it forgets everything and begins anew.
    """

    def __init__(self, size: int = 500_000) -> None:
        self.size = size
        self.hits = 0
        self.misses = 0
        self._kept = 0
        self._matches: dict[Program, _Entry] = {}
        self._derived: dict[Program, _Entry] = {}
        self._groups: dict[tuple[Program, int], tuple[Sequence[DeviceView], Matching]] = {}

    def matches(self, program: Program, device: DeviceView, budget: Budget | None = None) -> bool | Failure:
        """What `program.matches` says of the device, remembered."""
        view = prepared(device)
        if view.broken is not None:
            return view.broken
        entry = self._entry(self._matches, program)
        key = entry.key(view.marks)
        known = entry.results.get(key, _UNKNOWN)
        if known is _UNKNOWN:
            known = self._keep(entry, key, program.matches(device, budget))
        else:
            self.hits += 1
        return known  # type: ignore[no-any-return]

    def derive(
        self, program: Program, device: DeviceView, budget: Budget | None = None
    ) -> AttributeValue | Failure | None:
        """What `program.derive` says of the device, remembered."""
        view = prepared(device)
        if view.broken is not None:
            return view.broken
        entry = self._entry(self._derived, program)
        key = entry.key(view.marks)
        known = entry.results.get(key, _UNKNOWN)
        if known is _UNKNOWN:
            known = self._keep(entry, key, program.derive(device, budget))
        else:
            self.hits += 1
        return known  # type: ignore[no-any-return]

    def matching(
        self, program: Program, devices: Sequence[DeviceView], budget: Budget | None = None
    ) -> Matching:
        """What the selector says of all these devices; the same sequence again is answered at once.

        The sequence must not change: hand over a new one when its devices do.
        """
        known = self._groups.get((program, id(devices)))
        if known is not None and known[0] is devices:
            self.hits += len(devices)
            return known[1]
        mask, failures = 0, []
        for position, device in enumerate(devices):
            verdict = self.matches(program, device, budget)
            if verdict is True:
                mask |= 1 << position
            elif verdict is not False:
                failures.append((position, verdict))
        matching = Matching(mask, tuple(failures))
        self._room()
        self._groups[program, id(devices)] = (devices, matching)
        return matching

    def forget(self) -> None:
        """Drop everything that is kept."""
        self._matches, self._derived, self._groups, self._kept = {}, {}, {}, 0

    def _entry(self, entries: dict[Program, _Entry], program: Program) -> _Entry:
        entry = entries.get(program)
        if entry is not None:
            return entry
        self._room(program.size)
        return entries.setdefault(program, _Entry(program))

    def _keep(self, entry: _Entry, key: Any, result: Any) -> Any:
        self.misses += 1
        self._room(_weight(result))
        entry.results[key] = result
        return result

    def _room(self, weight: int = 1) -> None:
        self._kept += weight
        if self._kept > self.size:
            self.forget()


def _weight(result: Any) -> int:
    if not isinstance(result, AttributeValue):
        return 1
    characters = sum(len(value) for value in result.values if isinstance(value, str))
    return 1 + (characters >> 8) + (len(result.values) >> 3)
