"""Which nodes a pod is not placed on for a while."""

from collections import defaultdict
from collections.abc import Callable

from dovetail.services.picture import Key


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
