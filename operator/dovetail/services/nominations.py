"""The nodes on which kube-scheduler made room a moment ago, each for one pod (V-20).

It evicts pods for one that has devices there, and takes the devices back in the same step.
Then it tries again, at once and in vain, and withdraws the nomination within milliseconds:
so a nomination counts for a while after it was seen.
"""

from collections.abc import Callable

from dovetail.api.kinds import POD
from dovetail.services.holdings import is_bound
from dovetail.services.picture import Change, Key

COUNTS_SECONDS = 10.0


class Nominations:
    """Follows the picture; answers which node to try first for a pod."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[Key, tuple[str, float]] = {}

    def follow(self, change: Change) -> None:
        """Take in a change of the picture."""
        if change.kind is not POD:
            return
        if change.after is None or is_bound(change.after):
            self._seen.pop(change.key, None)
        elif node := (change.after.get("status") or {}).get("nominatedNodeName"):
            self._seen[change.key] = (node, self._clock())

    def node(self, pod: Key) -> str:
        """The node that was nominated for the pod; empty where that was not, or is long ago."""
        node, seen = self._seen.get(pod, ("", 0.0))
        return node if self._clock() - seen < COUNTS_SECONDS else ""
