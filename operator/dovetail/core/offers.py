"""What each node is offered, kept up to date by deltas."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from dovetail.api.selection import Taint
from dovetail.core.dual_mode import DualMode, Plugged, dual_modes
from dovetail.core.features import Features
from dovetail.core.holdings import Hold
from dovetail.core.labels import Labels
from dovetail.core.plugins import PluginClasses
from dovetail.core.pools import Pool, PoolOffer
from dovetail.core.published import PublishedSlice
from dovetail.core.refusals import PoolRefusal
from dovetail.core.states import States
from dovetail.core.taints import TaintRules
from dovetail.core.usage import Usage, usage_of
from dovetail.core.values import DeviceKey, PoolKey

T = TypeVar("T")

SKIP_FEATURE = "DRAOptionalNodeOperations"
"""What a node declares whose kubelet may leave operations out (KEP-5945)."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeOffer:
    """All pools of a node in the order in which they are tried (allocation-rules 2.1.7).

    Devices are numbered through all pools; the first of pool `i` has the number `starts[i]`.
    """

    node: str
    pools: tuple[PoolOffer, ...]
    refused: tuple[PoolRefusal, ...]
    starts: tuple[int, ...]
    size: int
    taints: tuple[tuple[int, Taint], ...]
    """Taints by rules of administrators, each with the number of the device."""
    may_skip: bool
    """Whether the kubelet may leave operations out."""
    withheld: tuple[Plugged, ...]
    """Devices that are not given, since a device plugin of the node may give them."""
    draft: int
    """The number of the draft: see `dovetail.core.states`."""

    def locate(self, number: int) -> tuple[PoolOffer, int]:
        """The pool of a device, and its number there."""
        for pool, start in zip(reversed(self.pools), reversed(self.starts), strict=True):
            if number >= start:
                return pool, number - start
        raise IndexError(number)

    def key_of(self, number: int) -> DeviceKey:
        """The full name of a device."""
        pool, position = self.locate(number)
        return pool.key_of(position)


@dataclass(slots=True)
class _NodeFacts:
    labels: Labels = field(default_factory=dict)
    may_skip: bool = False
    plugins: frozenset[str] = frozenset()
    """The extended resources that device plugins offer."""


@dataclass(slots=True)
class _Seen:
    """What was found out about a node.

    `stale` names pools to look at again; `moved` says that something of the known pools changed hands.
    """

    parts: dict[PoolKey, PoolOffer | PoolRefusal]
    offer: NodeOffer
    draft_state: int
    position: int
    stale: set[PoolKey] = field(default_factory=set)
    moved: bool = False


class Journal(Generic[T]):
    """What changed, in order; only the newest part is kept."""

    KEPT = 65_536

    def __init__(self) -> None:
        self._entries: list[T] = []
        self._dropped = 0

    @property
    def end(self) -> int:
        """The position behind the newest entry."""
        return self._dropped + len(self._entries)

    def add(self, entry: T) -> None:
        """Note a change."""
        if len(self._entries) >= 2 * self.KEPT:
            del self._entries[: self.KEPT]
            self._dropped += self.KEPT
        self._entries.append(entry)

    def since(self, position: int) -> list[T] | None:
        """The changes from a position on; None where they are no longer known."""
        return None if position < self._dropped else self._entries[position - self._dropped :]


class Offers:
    """The pools of the cluster, and what each node sees of them."""

    def __init__(self, features: Features, *, withhold: bool = False) -> None:
        """`withhold`: devices that a device plugin of their node offers too are not given."""
        self.features = features
        self.plugin_classes = PluginClasses()
        self.withholds = withhold
        self.pools: dict[PoolKey, Pool] = {}
        self.rules = TaintRules()
        self._slices: dict[str, PoolKey] = {}
        self._nodes: dict[str, _NodeFacts] = {}
        self._local: dict[str, set[PoolKey]] = {}
        self._spanning: dict[PoolKey, None] = {}
        self._seen: dict[str, _Seen] = {}
        self._spans: Journal[PoolKey | None] = Journal()
        self.states = States()
        self.touched: Journal[str] = Journal()
        """Nodes for which something changed that only they see."""
        self.offered_stamp = 0
        """Grows when what some node is offered may have changed, whatever is in use."""

    @property
    def span_stamp(self) -> int:
        """Grows when something changes that every node may see."""
        return self._spans.end

    # -- changes ---------------------------------------------------------------------------------

    def put_slice(self, published: PublishedSlice) -> None:
        """Take in a slice, in place of the one of the same name."""
        before = self._slices.get(published.name)
        if before is not None and before != published.pool:
            self.drop_slice(published.name)
        pool = self._pool(published.pool)
        self.offered_stamp += 1
        self._around(pool, lambda: pool.put(published))
        self._slices[published.name] = published.pool

    def drop_slice(self, name: str) -> None:
        """Forget a slice."""
        key = self._slices.pop(name, None)
        if key is not None:
            pool = self.pools[key]
            self.offered_stamp += 1
            self._around(pool, lambda: pool.drop(name))
            self._forget_if_idle(pool)

    def take(self, hold: Hold) -> None:
        """Somebody holds this now."""
        pool = self._pool(hold.device.pool_key)
        pool.holdings.take(hold)
        self._mark_moved(pool)

    def give_back(self, hold: Hold) -> None:
        """Nobody holds this any more."""
        pool = self._pool(hold.device.pool_key)
        pool.holdings.give_back(hold)
        self._mark_moved(pool)
        self._forget_if_idle(pool)

    def put_node(self, name: str, labels: Labels, *, may_skip: bool, plugins: frozenset[str]) -> None:
        """Take in a node; `plugins` are the extended resources that its device plugins offer."""
        facts = _NodeFacts(dict(labels), may_skip, plugins)
        if self._nodes.get(name) != facts:
            self._nodes[name] = facts
            self._forget_node(name)

    def drop_node(self, name: str) -> None:
        """Forget a node's labels."""
        if self._nodes.pop(name, None) is not None:
            self._forget_node(name)

    def reset(self) -> None:
        """Look at everything anew: rules or features changed."""
        self.offered_stamp += 1
        for pool in self.pools.values():
            pool.forget_offers()
        self._seen.clear()
        self._spans.add(None)

    # -- questions -------------------------------------------------------------------------------

    def offer(self, node: str) -> NodeOffer:
        """What the node is offered now."""
        return self._refreshed(node).offer

    def state(self, node: str) -> int:
        """A number for what the node is offered and what of it is in use: equal numbers, equal answers."""
        seen = self._refreshed(node)
        state = self.states.known.get(seen.draft_state)
        if state is None:
            keys = self._usage_keys(seen.offer)
            state = self.states.state(seen.draft_state, self.shape(seen.offer), keys)
        return state

    def states_of(self, nodes: Iterable[str]) -> list[int]:
        """The state of each node; quick where little has changed."""
        end, known, seen_of = self._spans.end, self.states.known.get, self._seen.get
        states = []
        for node in nodes:
            seen = seen_of(node)
            quick = None
            if seen is not None and not seen.moved and seen.position == end:
                quick = known(seen.draft_state)
            states.append(self.state(node) if quick is None else quick)
        return states

    def shape(self, offer: NodeOffer) -> int:
        """A number for what is offered, whatever is in use: equal numbers, equal boards."""
        refused = tuple((part.pool.driver, part.cause, part.detail) for part in offer.refused)
        others = (refused, offer.taints, offer.may_skip, offer.withheld)
        return self.states.shape(offer.draft, offer.pools, others)

    def usages(self, offer: NodeOffer) -> tuple[Usage, ...]:
        """What is in use of each pool of an offer."""
        return tuple(usage_of(pool, self.features) for pool in offer.pools)

    def dual_modes(self, node: str) -> tuple[DualMode, ...]:
        """The drivers whose devices on the node are offered by device plugin too, withheld or not."""
        if not self._plugins_of(node):
            return ()
        offer = self.offer(node)
        return dual_modes(self._plugged(node, offer.pools, offer.starts))

    def slices(self) -> Iterator[PublishedSlice]:
        """Every slice."""
        return (published for pool in self.pools.values() for published in pool.slices.values())

    # -- keeping up ------------------------------------------------------------------------------

    def _pool(self, key: PoolKey) -> Pool:
        pool = self.pools.get(key)
        if pool is None:
            pool = self.pools[key] = Pool(key)
        return pool

    def _forget_if_idle(self, pool: Pool) -> None:
        if pool.is_idle:
            del self.pools[pool.key]

    def _around(self, pool: Pool, change: Callable[[], None]) -> None:
        """Make a change to the slices of a pool, and note whom it concerns before and after."""
        before = _own_nodes(pool)
        self._mark(pool)
        change()
        after = _own_nodes(pool)
        for node in before - after:
            self._local[node].discard(pool.key)
        for node in after:
            self._local.setdefault(node, set()).add(pool.key)
        if pool.spans_nodes:
            self._spanning[pool.key] = None
            self._mark(pool)
        else:
            self._spanning.pop(pool.key, None)
            for node in after | before:
                self._mark_node(node, pool.key)

    def _mark(self, pool: Pool) -> None:
        """Have every node that may see the pool look at it again."""
        if pool.key in self._spanning:
            self._spans.add(pool.key)
            return
        for node in _own_nodes(pool):
            self._mark_node(node, pool.key)

    def _mark_moved(self, pool: Pool) -> None:
        """Have every node that sees the pool look again at what is in use."""
        if pool.key in self._spanning:
            self._spans.add(None)
            return
        for node in _own_nodes(pool):
            self._mark_node(node, None)

    def _mark_node(self, node: str, key: PoolKey | None) -> None:
        self.touched.add(node)
        seen = self._seen.get(node)
        if seen is not None:
            seen.moved = True
            if key is not None:
                seen.stale.add(key)

    def _forget_node(self, name: str) -> None:
        self.offered_stamp += 1
        self.touched.add(name)
        self._seen.pop(name, None)

    def _refreshed(self, node: str) -> _Seen:
        seen = self._seen.get(node)
        if seen is not None and not seen.moved and seen.position == self._spans.end:
            return seen
        spans = None if seen is None else self._spans.since(seen.position)
        if seen is None or spans is None:
            keys = {*self._local.get(node, ()), *self._spanning}
            fresh = self._assembled(node, self._parts(node, keys))
        else:
            fresh = self._updated(node, seen, seen.stale.union(key for key in spans if key is not None))
        self._seen[node] = fresh
        return fresh

    def _parts(self, node: str, keys: Iterable[PoolKey]) -> dict[PoolKey, PoolOffer | PoolRefusal]:
        facts = self._nodes.get(node)
        labels = facts.labels if facts else {}
        parts: dict[PoolKey, PoolOffer | PoolRefusal] = {}
        for key in keys:
            pool = self.pools.get(key)
            part = pool.offer(node, labels, self.features) if pool else None
            if part is not None:
                parts[key] = part
        return parts

    def _updated(self, node: str, seen: _Seen, keys: set[PoolKey]) -> _Seen:
        fresh = self._parts(node, keys) if keys else {}
        if any(not _same(seen.parts.get(key), fresh.get(key)) for key in keys):
            return self._assembled(node, {k: v for k, v in seen.parts.items() if k not in keys} | fresh)
        return _Seen(seen.parts, seen.offer, self._draft_state(seen.offer), self._spans.end)

    def _assembled(self, node: str, parts: Mapping[PoolKey, PoolOffer | PoolRefusal]) -> _Seen:
        pools = sorted((p for p in parts.values() if isinstance(p, PoolOffer)), key=PoolOffer.sort_key)
        refused = sorted((p for p in parts.values() if isinstance(p, PoolRefusal)), key=lambda p: p.pool)
        starts, size = [], 0
        for pool in pools:
            starts.append(size)
            size += len(pool.devices)
        offer = self._numbered(node, pools, refused, starts, size)
        return _Seen(dict(parts), offer, self._draft_state(offer), self._spans.end)

    def _numbered(
        self, node: str, pools: list[PoolOffer], refused: list[PoolRefusal], starts: list[int], size: int
    ) -> NodeOffer:
        facts = self._nodes.get(node)
        may_skip = facts is not None and facts.may_skip
        taints = tuple(
            (start + position, taint)
            for start, pool in zip(starts, pools, strict=True)
            for position, taint in self.rules.taints_of(pool)
        )
        withheld = tuple(self._plugged(node, pools, starts)) if self.withholds else ()
        draft = self.states.draft_shape(pools, refused, (taints, may_skip, withheld))
        return NodeOffer(
            node, tuple(pools), tuple(refused), tuple(starts), size, taints, may_skip, withheld, draft
        )

    def _plugged(self, node: str, pools: Iterable[PoolOffer], starts: Iterable[int]) -> Iterator[Plugged]:
        plugins = self._plugins_of(node)
        for start, pool in zip(starts, pools, strict=True) if plugins else ():
            for found in self.plugin_classes.plugged(pool, plugins, self.features):
                yield replace(found, mask=found.mask << start)

    def _plugins_of(self, node: str) -> frozenset[str]:
        facts = self._nodes.get(node)
        return facts.plugins if facts is not None else frozenset()

    def _draft_state(self, offer: NodeOffer) -> int:
        return self.states.draft_state(offer.draft, self._usage_keys(offer))

    def _usage_keys(self, offer: NodeOffer) -> list[Hashable]:
        return [usage_of(pool, self.features).key for pool in offer.pools]


def _own_nodes(pool: Pool) -> set[str]:
    """The nodes that the pool's slices are for, where each is for one."""
    return {published.reach.node for published in pool.slices.values() if published.reach.node}


def _same(before: PoolOffer | PoolRefusal | None, after: PoolOffer | PoolRefusal | None) -> bool:
    if isinstance(before, PoolRefusal) and isinstance(after, PoolRefusal):
        return before == after
    return before is after
