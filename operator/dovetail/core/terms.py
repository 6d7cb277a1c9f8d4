"""For how long devices are held for a pod, and what it costs where that was in vain."""

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from dovetail.core.values import PoolKey

LONGEST_REST_SECONDS = 3600.0

LEAST_SECONDS = 5.0
"""A shorter hold counts as this long, so that others have the time to be served after it."""

NODE_RESTS = 2
"""So many seconds nothing is held on a node for each that was in vain: a third of the time at most is."""

NAMESPACE_RESTS = 1
"""So many seconds nothing is held for a namespace for each that was in vain."""

HALVES_AFTER = 8
"""What a namespace has used is forgotten by half in so many terms."""

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Term:
    """One pod's: what it has used, without the time that runs since `since`."""

    used: float = 0.0
    since: float | None = None
    vain: int = 0
    rests_until: float = 0.0


class Rests(Generic[K]):
    """Until when nothing is held somewhere, for pods of a priority or a lower one."""

    def __init__(self, longest: float) -> None:
        """`longest` is how long a hold may last."""
        self._longest = longest
        self._until: dict[tuple[K, int], float] = {}
        self._ranks: dict[K, set[int]] = {}
        """The priorities of each place."""

    def add(self, place: K, priority: int, held: float, rest: float, now: float) -> None:
        """After a hold of so many seconds, that ends now, comes a rest.

        One that was under way goes on after it: who comes with rising priorities gains nothing.
        """
        under_way = (
            until + held
            for (there, other), until in self._until.items()
            if there == place and other <= priority and until > now - held
        )
        self._until[place, priority] = max(now, max(under_way, default=now)) + rest
        self._ranks.setdefault(place, set()).add(priority)
        self._prune(now)

    def seconds_left(self, now: float) -> float | None:
        """How long until the next rest is over; None where there is none."""
        return min((until - now for until in self._until.values() if until > now), default=None)

    def covers(self, place: K, priority: int, now: float) -> bool:
        """Whether nothing is held there now for pods of this priority: asked for each pod that waits."""
        ranks = self._ranks.get(place)
        return ranks is not None and any(
            rank >= priority and self._until.get((place, rank), now) > now for rank in ranks
        )

    def over(self, priority: int, now: float) -> frozenset[K]:
        """Where nothing is held now for pods of this priority."""
        return frozenset(
            place for (place, rank), until in self._until.items() if rank >= priority and until > now
        )

    def _prune(self, now: float) -> None:
        """Forget what no hold that goes on can prolong."""
        for place, rank in [entry for entry, until in self._until.items() if until <= now - self._longest]:
            del self._until[place, rank]
            self._ranks[place].discard(rank)
            if not self._ranks[place]:
                del self._ranks[place]


class Terms:
    """The terms of all pods, by UID; `now` is in seconds and never goes back.

    Only time during which devices are held counts, and a pod that gets them owes nothing.
    Every other second is owed by the node, by the pools and by the namespace, whatever becomes of the pod:
    a successor under another name, or in another namespace, begins where its predecessor ended.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._terms: dict[str, _Term] = {}
        self._nodes = Rests[str](seconds)
        self._pools = Rests[PoolKey](seconds)
        self._namespaces = Rests[str](seconds)
        self._owed: dict[str, tuple[float, float]] = {}

    def may_hold(self, uid: str, namespace: str, priority: int, now: float) -> bool:
        """Whether devices may be held for a pod for which none are held yet."""
        is_spent = self._namespaces.covers(namespace, priority, now)
        return self._seconds > 0 and not self.rests(uid, now) and not is_spent

    def rests(self, uid: str, now: float) -> bool:
        """Whether the pod has had its term, and rests."""
        term = self._terms.get(uid)
        return term is not None and now < term.rests_until

    def seconds_left(self, now: float) -> float | None:
        """How long until devices may be held where, or for whom, they may not be now."""
        rests = (self._nodes.seconds_left(now), self._namespaces.seconds_left(now))
        pods = (term.rests_until - now for term in self._terms.values() if term.rests_until > now)
        return min((left for left in (*rests, *pods) if left is not None), default=None)

    def spent_nodes(self, priority: int, now: float) -> frozenset[str]:
        """The nodes on which nothing is held now for pods of this priority."""
        return self._nodes.over(priority, now)

    def spent_pools(self, priority: int, now: float) -> frozenset[PoolKey]:
        """The pools of which nothing is held: one that several nodes use is spent for all of them."""
        return self._pools.over(priority, now)

    def owed(self, namespace: str, now: float) -> float:
        """How many seconds were in vain for the namespace lately: who owes less comes first."""
        seconds, then = self._owed.get(namespace, (0.0, now))
        return float(seconds * 0.5 ** ((now - then) / (HALVES_AFTER * self._seconds))) if seconds else 0.0

    def hold(self, uid: str, now: float) -> None:
        """Devices are held for the pod; on other devices the term goes on."""
        term = self._terms.setdefault(uid, _Term())
        if term.since is None:
            term.since = now

    def pause(self, uid: str, now: float) -> None:
        """Nothing is held for the pod any longer; what it has used stays used."""
        term = self._terms.get(uid)
        if term is not None and term.since is not None:
            term.used += now - term.since
            term.since = None

    def left(self, uid: str, now: float) -> float:
        """How many seconds of the term are left."""
        term = self._terms.get(uid, _Term())
        used = term.used + (now - term.since if term.since is not None else 0.0)
        return max(self._seconds - used, 0.0)

    def end(self, uid: str, now: float) -> None:
        """The term is over: the pod rests, longer each time."""
        term = self._terms.setdefault(uid, _Term())
        term.used, term.since = 0.0, None
        term.vain += 1
        rest = max(min(self._seconds * 2**term.vain, LONGEST_REST_SECONDS), self._seconds)
        term.rests_until = now + rest

    def charge(  # noqa: PLR0917 - who, where, and for how long
        self,
        namespace: str,
        node: str,
        pools: Collection[PoolKey],
        priority: int,
        seconds: float,
        now: float,
    ) -> None:
        """Devices of a node were held in vain: others come first now."""
        seconds = max(seconds, min(self._seconds, LEAST_SECONDS))
        self._nodes.add(node, priority, seconds, NODE_RESTS * seconds, now)
        for pool in pools:
            self._pools.add(pool, priority, seconds, NODE_RESTS * seconds, now)
        self._namespaces.add(namespace, priority, seconds, NAMESPACE_RESTS * seconds, now)
        self._owed[namespace] = (self.owed(namespace, now) + seconds, now)
        for other in [each for each in self._owed if self.owed(each, now) < 1]:
            del self._owed[other]

    def forget(self, uid: str) -> None:
        """The pod has its devices, or is gone."""
        self._terms.pop(uid, None)
