"""When two slices offer the same: claims can tell devices apart only by what their expressions read.

Identities, addresses and serial numbers differ from device to device; most claims never look at them.
"""

from collections.abc import Hashable, Iterable

from dovetail.core.published import OfferedDevice, SliceContent
from dovetail.core.values import Unusable

NAME = "device:name"
"""How expressions say that they read a device's name."""


class Numbers:
    """A number for each distinct key; numbers are never used again."""

    LIMIT = 200_000

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._next = 0

    def of(self, key: Hashable) -> int:
        """The number of the key."""
        number = self._known.get(key)
        if number is None:
            if len(self._known) >= self.LIMIT:
                self._known.clear()
            number = self._known[key] = self._next = self._next + 1
        return number


class Sameness:
    """Numbers slices: equal numbers for those that no expression noticed so far can tell apart."""

    def __init__(self) -> None:
        self._read: frozenset[str] = frozenset()
        self._reads_everything = False
        self._numbers = Numbers()

    def notice(self, reads: Iterable[frozenset[str] | None]) -> bool:
        """Take note of what expressions read; None means everything. Whether that changes any number."""
        before = (self._read, self._reads_everything)
        for names in reads:
            if names is None:
                self._reads_everything = True
            else:
                self._read |= names
        return before != (self._read, self._reads_everything)

    def number(self, content: SliceContent) -> int:
        """The number of a slice's content, as long as nothing new is noticed."""
        key = (Sameness, self._read, self._reads_everything)
        number: int | None = content.memo.get(key)
        if number is None:
            seen = (content.driver, tuple(map(self._seen, content.devices)), _counters(content))
            number = content.memo[key] = self._numbers.of(seen)
        return number

    def _seen(self, device: OfferedDevice) -> Hashable:
        """What can matter of a device, with or without an expression that reads it."""
        attributes = device.view.attributes
        return (
            device.name if self._reads_everything or NAME in self._read else "",
            tuple((name, attributes[name]) for name in sorted(attributes) if self._is_read(name)),
            any(isinstance(value, Unusable) for value in attributes.values()),
            device.multi,
            tuple(device.capacity.items()),
            device.consumes,
            device.taints,
            device.binds_to_node,
            device.binding_conditions,
            device.binding_failure_conditions,
        )

    def _is_read(self, name: str) -> bool:
        return self._reads_everything or name in self._read or f"{name.partition('/')[0]}/*" in self._read


def _counters(content: SliceContent) -> Hashable:
    return tuple((name, tuple(sorted(counters.items()))) for name, counters in content.counter_sets)
