"""The best of several nodes: by score, then in the order given; equal nodes are answered once."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dovetail.core.offers import Offers

State = int


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes in one state, by the most preferred of them."""

    first: str
    state: State


@dataclass(slots=True, eq=False)
class Candidates:
    """An order of preference over nodes, sorted into states and kept up to date by deltas."""

    nodes: tuple[str, ...]
    offers: Offers
    _ranks: dict[str, int] = field(init=False)
    _states: list[State] = field(init=False)
    _members: dict[State, list[int]] = field(default_factory=dict)
    _counts: dict[State, int] = field(default_factory=dict)
    _touched: int = field(init=False)
    _stamps: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self._ranks = {name: rank for rank, name in enumerate(self.nodes)}
        self._sort_all()

    def refresh(self) -> None:
        """Sort the nodes that changed since into their new states."""
        touched = self.offers.touched.since(self._touched)
        if touched is None or self._stamps != self._stamps_now():
            self._sort_all()
            return
        for name in dict.fromkeys(touched):
            rank = self._ranks.get(name)
            if rank is not None:
                self._move(rank, self.offers.state(name))
        self._touched = self.offers.touched.end

    def groups(self) -> list[Group]:
        """The nodes by state, the group of the most preferred node first."""
        ranked = sorted((self._first(state), state) for state in self._counts)
        return [Group(self.nodes[rank], state) for rank, state in ranked]

    def alone(self) -> list[Group]:
        """Each node as a group of its own."""
        return [Group(name, state) for name, state in zip(self.nodes, self._states, strict=True)]

    def names(self, groups: Sequence[Group]) -> list[tuple[str, ...]]:
        """All nodes of each group, in order of preference."""
        if len(groups) == len(self.nodes):
            return [(group.first,) for group in groups]
        members: dict[State, list[str]] = {}
        for name, state in zip(self.nodes, self._states, strict=True):
            members.setdefault(state, []).append(name)
        return [tuple(members[group.state]) for group in groups]

    def _first(self, state: State) -> int:
        """The rank of the most preferred node of a state."""
        heap = self._members[state]
        while self._states[heap[0]] != state:
            heapq.heappop(heap)
        return heap[0]

    def _sort_all(self) -> None:
        self._states = self.offers.states_of(self.nodes)
        self._members, self._counts = {}, {}
        for rank, state in enumerate(self._states):
            self._members.setdefault(state, []).append(rank)
            self._counts[state] = self._counts.get(state, 0) + 1
        self._touched, self._stamps = self.offers.touched.end, self._stamps_now()

    def _stamps_now(self) -> tuple[int, int]:
        """What changes whenever every node may have another state."""
        return self.offers.span_stamp, self.offers.states.stamp

    def _move(self, rank: int, state: State) -> None:
        before = self._states[rank]
        if before == state:
            return
        self._states[rank] = state
        self._counts[before] -= 1
        if not self._counts[before]:
            del self._counts[before], self._members[before]
        self._counts[state] = self._counts.get(state, 0) + 1
        heapq.heappush(self._members.setdefault(state, []), rank)


def best(groups: Sequence[Group], score: Callable[[str, State], int | None], most: int) -> str | None:
    """The most preferred node of the highest score; `score` is None where the claims do not fit.

    `most` is the highest score there can be.
    Groups are asked in order of their first nodes: what goes wrong is met as if nodes were tried one by one.
    """
    chosen, highest = None, -1
    for group in groups:
        points = score(group.first, group.state)
        if points is not None and points > highest:
            chosen, highest = group.first, points
            if points >= most:
                break
    return chosen


def keep(kept: dict[int, Candidates], nodes: Sequence[str], offers: Offers) -> Candidates:
    """The candidates for this very tuple, kept from before where it is the same object."""
    order = nodes if isinstance(nodes, tuple) else tuple(nodes)
    known = kept.get(id(order))
    if known is not None and known.nodes is order:
        known.refresh()
        return known
    fresh = Candidates(order, offers)
    if order is nodes:
        while len(kept) >= KEPT_ORDERS:
            del kept[next(iter(kept))]
        kept[id(order)] = fresh
    return fresh


KEPT_ORDERS = 8
"""So many orders of nodes are kept up to date."""
