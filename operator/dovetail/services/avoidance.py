"""Which nodes a pod is not placed on for a while, and how often a pod may be given devices."""

from collections import defaultdict, deque
from collections.abc import Callable

from dovetail.services.picture import Key

WINDOW_SECONDS = 60.0


class Avoidance:
    """Nodes that a pod's devices were taken back from, each for a while."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._until: defaultdict[Key, dict[str, float]] = defaultdict(dict)

    def avoid(self, pod: Key, node: str) -> None:
        """Do not place the pod on the node for the configured time."""
        self._until[pod][node] = self._clock() + self._seconds

    def nodes(self, pod: Key) -> frozenset[str]:
        """The nodes to avoid now."""
        if pod not in self._until:
            return frozenset()
        now = self._clock()
        kept = {node: until for node, until in self._until[pod].items() if until > now}
        self._until[pod] = kept
        return frozenset(kept)

    def seconds_left(self, pod: Key) -> float:
        """After how long the first node may be used again; 0 where none is avoided."""
        now = self._clock()
        left = [until - now for until in self._until.get(pod, {}).values() if until > now]
        return min(left, default=0.0)

    def forget(self, pod: Key) -> None:
        """The pod is gone."""
        self._until.pop(pod, None)


class Attempts:
    """How often a pod was given devices: at most so many times a minute, whatever others do (R-B11)."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._limit = per_minute
        self._clock = clock
        self._made: defaultdict[Key, deque[float]] = defaultdict(deque)

    def wait(self, pod: Key) -> float:
        """How many seconds until the next attempt is allowed."""
        made = self._made.get(pod)
        if not made:
            return 0.0
        now = self._clock()
        while made and made[0] <= now - WINDOW_SECONDS:
            made.popleft()
        return made[0] + WINDOW_SECONDS - now if len(made) >= self._limit else 0.0

    def count(self, pod: Key) -> None:
        """An attempt is being made."""
        self._made[pod].append(self._clock())

    def forget(self, pod: Key) -> None:
        """The pod is gone."""
        self._made.pop(pod, None)
