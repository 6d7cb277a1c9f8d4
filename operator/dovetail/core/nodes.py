"""The nodes, and what runs or is about to run on each; sums are kept by deltas."""

import enum
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from dovetail.api.nodes import Node
from dovetail.core.decisions import ObjectKey
from dovetail.core.footprints import Footprint
from dovetail.core.labels import HOSTNAME, Labels
from dovetail.core.resources import PODS, Amounts, allocatable_of


class Hold(enum.Enum):
    """Why a pod counts on a node."""

    BOUND = "bound"
    """It runs there, or soon will: it has `nodeName`."""

    DEVICES = "devices"
    """It has no node yet, but an allocated claim that ties it there."""

    NOMINATED = "nominated"
    """It is expected there: kube-scheduler nominated it, or a claim that it shares is allocated there.

    It counts only against pods of at most its own priority.
    """


@dataclass(frozen=True, slots=True)
class Home:
    """The node that a pod counts on."""

    node: str
    hold: Hold


@dataclass(slots=True)
class NodeState:
    """One node: what it offers, what is taken. `node` is None where only slices or pods name it."""

    name: str
    node: Node | None = None
    labels: Labels = field(default_factory=dict)
    allocatable: Amounts | None = None
    used: Amounts = field(default_factory=dict)
    pods: dict[ObjectKey, Footprint] = field(default_factory=dict)
    nominated: dict[ObjectKey, Footprint] = field(default_factory=dict)

    @property
    def pod_limit(self) -> int:
        """How many pods the node takes."""
        return self.allocatable.get(PODS, 0) if self.allocatable is not None else 0


def pods_beside(state: NodeState, footprint: Footprint) -> Iterator[Footprint]:
    """The pods on the node, without this one."""
    return (other for key, other in state.pods.items() if key != footprint.key)


def pods_expected(state: NodeState, footprint: Footprint) -> Iterator[Footprint]:
    """The pods that are expected on the node and go before this one."""
    for key, other in state.nominated.items():
        if key != footprint.key and other.priority >= footprint.priority:
            yield other


class Journal:
    """Which nodes changed, in order, so that a reader looks again only at those."""

    KEPT = 4096

    def __init__(self) -> None:
        self._names: list[str] = []
        self._dropped = 0

    @property
    def position(self) -> int:
        """Where a reader that has seen everything stands."""
        return self._dropped + len(self._names)

    def since(self, position: int) -> tuple[str, ...] | None:
        """The nodes that changed since, each once; None where that is no longer known."""
        if position < self._dropped:
            return None
        return tuple(dict.fromkeys(self._names[position - self._dropped :]))

    def add(self, name: str) -> None:
        """A node changed."""
        self._names.append(name)
        if len(self._names) > 2 * self.KEPT:
            self._dropped += self.KEPT
            del self._names[: self.KEPT]


class NodeBook:
    """All nodes by name, and the pods that count on each."""

    def __init__(self, *, assume: bool) -> None:
        """`assume`: nodes that only slices name are usable, and what a mere manifest leaves out suffices."""
        self._assume = assume
        self._states: dict[str, NodeState] = {}
        self._names: list[str] = []
        self._named_by_slices: dict[str, int] = {}
        self._homes: dict[ObjectKey, Home] = {}
        self._footprints: dict[ObjectKey, Footprint] = {}
        self.journal = Journal()
        self.nominated: set[str] = set()
        """The names of nodes that have nominated pods."""

    def __iter__(self) -> Iterator[NodeState]:
        """The nodes that exist, by name."""
        return (self._states[name] for name in self._names)

    def __len__(self) -> int:
        return len(self._names)

    def find(self, name: str) -> NodeState | None:
        """The node, if it exists."""
        state = self._states.get(name)
        return state if state is not None and self._exists(state) else None

    @property
    def assumed(self) -> tuple[str, ...]:
        """The nodes that are assumed to exist, by name."""
        return tuple(name for name in self._names if self._states[name].node is None)

    def put(self, node: Node) -> None:
        """Add or replace a node; raises ValueError for an amount that is no quantity."""
        offered = allocatable_of(node)
        state = self._state(node.metadata.name)
        state.node = node
        state.labels = node.metadata.labels
        state.allocatable = offered
        if self._assume and not offered and not node.metadata.uid:
            # A manifest that no API server has stored; a real node without a status takes no pod.
            state.allocatable = None
        self._list(state)

    def drop(self, name: str) -> None:
        """Forget a node; the pods that count on it still do, should it come back."""
        if (state := self._states.get(name)) is not None:
            state.node, state.labels, state.allocatable = None, {HOSTNAME: name}, None
            self._list(state)

    def name_by_slice(self, name: str, times: int) -> None:
        """A slice names the node (`times` = 1), or no longer does (-1)."""
        count = self._named_by_slices.get(name, 0) + times
        self._named_by_slices[name] = count
        if not count:
            del self._named_by_slices[name]
        self._list(self._state(name))

    def put_pod(self, footprint: Footprint, home: Home | None) -> bool:
        """Count a pod on its node, instead of where it counted before; says whether anything moved."""
        before = self._homes.get(footprint.key)
        known = self._footprints.get(footprint.key)
        if before == home and known is not None and known.requests == footprint.requests:
            self._replace(footprint, home)
            return False
        self.drop_pod(footprint.key)
        self._footprints[footprint.key] = footprint
        if home is not None:
            self._homes[footprint.key] = home
            self._occupy(footprint, home)
        return True

    def drop_pod(self, key: ObjectKey) -> bool:
        """Count a pod nowhere; says whether it counted anywhere."""
        footprint = self._footprints.pop(key, None)
        home = self._homes.pop(key, None)
        if footprint is None or home is None:
            return False
        state = self._states[home.node]
        if state.pods.pop(key, None) is not None:
            _charge(state.used, footprint.requests, -1)
        if state.nominated.pop(key, None) is not None and not state.nominated:
            self.nominated.discard(state.name)
        self.journal.add(state.name)
        self._tidy(state)
        return True

    def home_of(self, key: ObjectKey) -> Home | None:
        """Where a pod counts."""
        return self._homes.get(key)

    def _replace(self, footprint: Footprint, home: Home | None) -> None:
        self._footprints[footprint.key] = footprint
        if home is not None:
            state = self._states[home.node]
            counted = state.nominated if home.hold is Hold.NOMINATED else state.pods
            counted[footprint.key] = footprint

    def _occupy(self, footprint: Footprint, home: Home) -> None:
        state = self._state(home.node)
        if home.hold is Hold.NOMINATED:
            state.nominated[footprint.key] = footprint
            self.nominated.add(state.name)
            return
        self.journal.add(state.name)
        state.pods[footprint.key] = footprint
        _charge(state.used, footprint.requests, 1)

    def _state(self, name: str) -> NodeState:
        state = self._states.get(name)
        if state is None:
            state = self._states[name] = NodeState(name, labels={HOSTNAME: name})
        return state

    def _exists(self, state: NodeState) -> bool:
        return state.node is not None or (self._assume and state.name in self._named_by_slices)

    def _list(self, state: NodeState) -> None:
        position = bisect_left(self._names, state.name)
        listed = position < len(self._names) and self._names[position] == state.name
        exists = self._exists(state)
        self.journal.add(state.name)
        if exists and not listed:
            insort(self._names, state.name)
        elif listed and not exists:
            del self._names[position]
        self._tidy(state)

    def _tidy(self, state: NodeState) -> None:
        """Forget what nobody names any more, so that nodes that come and go leave nothing behind."""
        if not (self._exists(state) or state.pods or state.nominated):
            self._states.pop(state.name, None)


def _charge(used: Amounts, requests: Amounts, times: int) -> None:
    for resource, amount in requests.items():
        left = used.get(resource, 0) + times * amount
        if left:
            used[resource] = left
        else:
            used.pop(resource, None)
