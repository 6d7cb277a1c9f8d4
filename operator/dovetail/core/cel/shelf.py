"""What was made once and may be wanted again: bounded by weight, and not emptied by a flood of new things."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Shelf(Generic[K, V]):
    """Keeps the values that were asked for last, up to a total weight; safe to share between threads.

    A quarter of the room is for values that nobody has asked for again yet.
    So whoever brings many new ones displaces other new ones, and not what is in use.
    A value that is heavier than a fiftieth of the room is not kept: who needs it makes it anew.
    """

    def __init__(self, capacity: int) -> None:
        self._lock = threading.Lock()
        self._heaviest = capacity // 50
        self._new: _Segment[K, V] = _Segment(capacity // 4)
        self._used: _Segment[K, V] = _Segment(capacity - capacity // 4)

    def get(self, key: K) -> V | None:
        """The value, or None."""
        with self._lock:
            known = self._used.take(key) or self._new.take(key)
            if known is None:
                return None
            self._used.put(key, *known)
            return known[0]

    def put(self, key: K, value: V, weight: int) -> None:
        """Keep a value."""
        if weight > self._heaviest:
            return
        with self._lock:
            self._new.put(key, value, weight)

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._new.clear()
            self._used.clear()

    @property
    def weight(self) -> int:
        """The weight of all that is kept."""
        return self._new.weight + self._used.weight

    def __len__(self) -> int:
        return len(self._new.kept) + len(self._used.kept)


class _Segment(Generic[K, V]):
    """Values in the order in which they were asked for; the oldest go first."""

    def __init__(self, capacity: int) -> None:
        self.kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.weight = 0
        self._capacity = capacity

    def take(self, key: K) -> tuple[V, int] | None:
        known = self.kept.pop(key, None)
        if known is not None:
            self.weight -= known[1]
        return known

    def put(self, key: K, value: V, weight: int) -> None:
        self.take(key)
        self.kept[key] = value, weight
        self.weight += weight
        while self.weight > self._capacity:
            _, (_, gone) = self.kept.popitem(last=False)
            self.weight -= gone

    def clear(self) -> None:
        self.kept.clear()
        self.weight = 0
