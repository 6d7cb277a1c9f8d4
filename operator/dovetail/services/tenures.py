"""Who has held what for how long, and what became of it: only a pod that got its devices owes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dovetail.api.kinds import POD
from dovetail.core.earmarks import Earmark
from dovetail.core.terms import Terms
from dovetail.core.values import PoolKey
from dovetail.services import holdings
from dovetail.services.claims import is_allocated
from dovetail.services.picture import Picture

OPEN_SECONDS = 10.0
"""So long after a hold the pod may still be seen to have got its devices."""


@dataclass(frozen=True, slots=True)
class _Tenure:
    """A pod's hold on one node, for the same claims all the time."""

    earmark: Earmark
    since: float
    until: float | None = None
    is_final: bool = False
    """It had its time, and the pod waits on."""

    @property
    def priority(self) -> int:
        """That of the pod."""
        return -self.earmark.rank[0]


_Name = tuple[str, str, frozenset[str]]


def _name(earmark: Earmark) -> _Name:
    """With another node, or other claims, it is another hold."""
    return (earmark.uid, earmark.node, earmark.claims)


class Tenures:
    """Follows what is held, and charges to the terms what was in vain."""

    def __init__(self, terms: Terms, picture: Picture) -> None:
        self._terms = terms
        self._picture = picture
        self._tenures: dict[_Name, _Tenure] = {}
        self._known: dict[str, Earmark] = {}
        """The last hold of every pod, by UID, until the pod is served or gone."""

    @property
    def are_open(self) -> bool:
        """Whether it is not known yet what became of a hold that ended."""
        return any(each.until is not None for each in self._tenures.values())

    def nodes(self, priority: int, uid: str) -> frozenset[str]:
        """Where others have held for which that is not known: nothing is held there for pods like them."""
        return frozenset(each.node for each in self._open(priority, uid))

    def pools(self, priority: int, uid: str) -> frozenset[PoolKey]:
        """The same for pools."""
        return frozenset[PoolKey]().union(*(each.pools for each in self._open(priority, uid)))

    def follow(self, held: Iterable[Earmark], now: float) -> None:
        """This is held from now on."""
        there = {_name(each): each for each in held}
        for name, earmark in there.items():
            before = self._tenures.get(name)
            self._tenures[name] = _Tenure(earmark, before.since if before is not None else now)
            self._terms.hold(earmark.uid, now)
            self._known[earmark.uid] = earmark
        holders = {each.uid for each in there.values()}
        for name, tenure in self._tenures.items():
            if name not in there and tenure.until is None:
                self._tenures[name] = replace(tenure, until=now)
                if tenure.earmark.uid not in holders:
                    self._terms.pause(tenure.earmark.uid, now)

    def end(self, uid: str, now: float) -> None:
        """The pod's term is over."""
        self._terms.end(uid, now)
        for name, tenure in self._tenures.items():
            if tenure.earmark.uid == uid:
                until = tenure.until if tenure.until is not None else now
                self._tenures[name] = replace(tenure, until=until, is_final=True)

    def settle(self, now: float) -> None:
        """Charge what was in vain, and forget pods that are served or gone."""
        for name, tenure in tuple(self._tenures.items()):
            if tenure.until is None:
                continue
            is_there, is_served = self._fate(tenure.earmark)
            may_be_served = is_there and not tenure.is_final and now < tenure.until + OPEN_SECONDS
            if may_be_served and not is_served:
                continue
            del self._tenures[name]
            if not is_served:
                self._charge(tenure, tenure.until - tenure.since, now)
        busy = {each.earmark.uid for each in self._tenures.values()}
        for uid, last in tuple(self._known.items()):
            is_there, is_served = self._fate(last)
            if uid not in busy and (is_served or not is_there):
                del self._known[uid]
                self._terms.forget(uid)

    def _charge(self, tenure: _Tenure, seconds: float, now: float) -> None:
        held = tenure.earmark
        self._terms.charge(held.pod[0], held.node, held.pools, tenure.priority, seconds, now)

    def _open(self, priority: int, uid: str) -> list[Earmark]:
        return [
            each.earmark
            for each in self._tenures.values()
            if each.until is not None and each.priority >= priority and each.earmark.uid != uid
        ]

    def _fate(self, held: Earmark) -> tuple[bool, bool]:
        """Whether the pod is still there, and whether it has devices for the claims that these were for."""
        pod = self._picture.find(POD, held.pod)
        if pod is None or pod["metadata"]["uid"] != held.uid:
            return False, False
        mine = holdings.claims_of(self._picture, pod)
        allocated = {claim["metadata"]["uid"] for claim in mine if is_allocated(claim)}
        is_served = held.claims <= allocated if held.claims else holdings.is_satisfied(self._picture, pod)
        return True, is_served
