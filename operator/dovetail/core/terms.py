"""For how long devices are kept for a pod, and for how long not again after that was in vain."""

from dataclasses import dataclass

LONGEST_REST_SECONDS = 3600.0


@dataclass(slots=True)
class _Term:
    """One pod's."""

    began: float | None = None
    vain: int = 0
    rests_until: float = 0.0


class Terms:
    """The terms of all pods, by UID; `now` is in seconds and never goes back.

    After devices of a node were kept in vain, they are for whoever can use them: for twice as long nothing is
    kept there for pods of no higher priority, and for the pod itself nothing anywhere, longer each time.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._terms: dict[str, _Term] = {}
        self._spent: dict[tuple[str, int], float] = {}
        """Until when nothing is kept on a node for pods of a priority, or of a lower one."""

    def may_hold(self, uid: str, now: float) -> bool:
        """Whether devices may be kept for the pod now."""
        term = self._terms.get(uid)
        return self._seconds > 0 and (term is None or now >= term.rests_until)

    def spent_nodes(self, priority: int, now: float) -> frozenset[str]:
        """The nodes on which nothing is kept now for pods of this priority."""
        for place in [place for place, until in self._spent.items() if until <= now]:
            del self._spent[place]
        return frozenset(node for node, spent in self._spent if spent >= priority)

    def hold(self, uid: str, now: float) -> None:
        """Devices are kept for the pod; on other devices the term goes on."""
        term = self._terms.setdefault(uid, _Term())
        if term.began is None:
            term.began = now

    def left(self, uid: str, now: float) -> float:
        """How many seconds of the term are left."""
        term = self._terms.get(uid)
        began = now if term is None or term.began is None else term.began
        return max(began + self._seconds - now, 0.0)

    def end_in_vain(self, uid: str, node: str, priority: int, now: float) -> None:
        """The term is over, and the pod still waits."""
        term = self._terms.setdefault(uid, _Term())
        term.began = None
        term.vain += 1
        rest = max(min(self._seconds * 2**term.vain, LONGEST_REST_SECONDS), self._seconds)
        term.rests_until = now + rest
        self._spent[node, priority] = now + 2 * self._seconds

    def forget(self, uid: str) -> None:
        """The pod waits no longer, or is gone."""
        self._terms.pop(uid, None)
