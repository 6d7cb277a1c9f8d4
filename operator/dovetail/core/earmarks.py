"""Devices that are kept for a pod that needs several at once, while less urgent pods take them one by one.

An earmark is for one node, and for the devices that the pod would get there if the fewest claims let go.
Less urgent pods are planned around it; more urgent ones, and the pod itself, do not see it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from dovetail.api.pods import Pod
from dovetail.core.allocator import most_free
from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.cases import case_of
from dovetail.core.decisions import Cut, Decision, DoesNotFit, ObjectKey, Place, Waits
from dovetail.core.holdings import Hold
from dovetail.core.inventory import holds_in
from dovetail.core.outcome import RequestInvalid
from dovetail.core.planner import PlanSettings, plan_on, plan_pod
from dovetail.core.reasons import Reason
from dovetail.core.relevance import usable_nodes
from dovetail.core.values import DeviceKey, PoolKey
from dovetail.core.world import World

MOST_NODES = 32
"""On so many nodes, those with most free, it is looked for devices to keep."""

Rank = tuple[int, str, str, str]
"""Sorts pods by priority (negated), age, namespace and name."""


@dataclass(frozen=True, slots=True)
class Earmark:
    """What is kept for a pod: the devices, free or not yet, and the claims that hold some of them."""

    pod: ObjectKey
    uid: str
    rank: Rank
    node: str
    holds: tuple[Hold, ...]
    waits_for: frozenset[ObjectKey]
    claims: frozenset[str]
    """The UIDs of the pod's claims that it is for."""

    @property
    def devices(self) -> frozenset[DeviceKey]:
        """The devices."""
        return frozenset(hold.device for hold in self.holds)

    @property
    def pools(self) -> frozenset[PoolKey]:
        """The pools of the devices: what is taken from them may be missing in the end."""
        return frozenset(hold.device.pool_key for hold in self.holds)


@dataclass(frozen=True, slots=True)
class Contender:
    """A pod that waits, what is kept for it so far, and where nothing can be kept for it."""

    pod: ObjectKey
    uid: str
    before: Earmark | None = None
    avoid: frozenset[str] = frozenset()
    """Nodes."""
    spent: frozenset[PoolKey] = frozenset()
    """Pools: of them only what is kept for it already."""
    owed: float = 0.0
    """The seconds in vain of its namespace: among equal priorities who owes less comes first."""


def rank_of(pod: Pod) -> Rank:
    """Where a pod stands; the smaller one is served first."""
    created = pod.metadata.creation_timestamp or ""
    return (-(pod.spec.priority or 0), created, pod.metadata.namespace, pod.metadata.name)


def plan_beside(
    world: World,
    pod: Pod,
    earmarks: Collection[Earmark],
    *,
    settings: PlanSettings,
    budget: Budget,
    avoid: Collection[str] = (),
) -> Decision:
    """Decide about a pod as `plan_pod` does, and leave what is kept for more urgent pods."""
    decision = plan_pod(world, pod, settings=settings, budget=budget, avoid=avoid)
    ahead = sorted(
        (each for each in earmarks if each.pod != pod.key and each.rank < rank_of(pod)),
        key=lambda each: each.rank,
    )
    held: Earmark | None = None
    avoided = set(avoid)
    while isinstance(decision, Place) and (kept := _kept_from(decision, ahead)):
        held = held or kept[0]
        holds = [hold for each in ahead for hold in each.holds]
        beside = plan_on(world, pod, decision.node, budget=budget, taken=holds)
        if beside is not None:
            return replace(beside, preempts=decision.preempts)
        avoided.add(decision.node)
        decision = plan_pod(world, pod, settings=settings, budget=budget, avoid=avoided)
    if held is None or isinstance(decision, Place | Cut):
        return decision
    return Waits(Reason.HELD_FOR_ANOTHER, _sentence(pod, held))


def choose(
    world: World,
    contenders: Sequence[Contender],
    *,
    settings: PlanSettings,
    budget: Callable[[], Budget],
    most: int,
    of_each: int | None = None,
) -> tuple[Earmark, ...]:
    """What to keep, by priority: one earmark for each pod that can be helped by it.

    They are `most` in all, and `of_each` namespace.
    Among equal priorities what is kept already stays, then who owes less comes first, then the older one.
    `budget` makes one for each pod; where it is not enough, nothing is kept for that pod.
    """
    pods = [(pod, each) for each in contenders if (pod := world.pods.get(each.pod)) is not None]
    chosen: list[Earmark] = []
    for pod, contender in sorted(pods, key=_turn):
        if len(chosen) == most:
            break
        if of_each is not None and sum(each.pod[0] == contender.pod[0] for each in chosen) >= of_each:
            continue
        with suppress(BudgetSpent, RequestInvalid):
            if (earmark := _for_pod(world, pod, contender, chosen, settings, budget())) is not None:
                chosen.append(earmark)
    return tuple(chosen)


def _turn(pair: tuple[Pod, Contender]) -> tuple[int, bool, float, Rank]:
    pod, contender = pair
    rank = rank_of(pod)
    return (rank[0], contender.before is None, contender.owed, rank)


def _for_pod(  # noqa: PLR0917 - all that there is to know
    world: World,
    pod: Pod,
    contender: Contender,
    chosen: Sequence[Earmark],
    settings: PlanSettings,
    budget: Budget,
) -> Earmark | None:
    """The earmark of a pod that fits nowhere now; those chosen before are of more urgent pods."""
    if pod.metadata.uid != contender.uid:
        return None
    avoid = tuple(contender.avoid)
    decision = plan_beside(world, pod, chosen, settings=settings, budget=budget, avoid=avoid)
    before = contender.before
    if isinstance(decision, Place) and before is not None and before.claims == claims_of(world, pod):
        # It is about to be served.
        return before
    if not isinstance(decision, DoesNotFit) or decision.reason is not Reason.NOTHING_FITS:
        return None
    if _is_right(world, pod, contender, chosen):
        return contender.before
    return _earmark(world, pod, contender, chosen, budget)


def _kept_from(decision: Place, earmarks: Iterable[Earmark]) -> list[Earmark]:
    """The earmarks on pools that the decision takes devices of."""
    pools = {hold.device.pool_key for grant in decision.grants for hold in holds_in(grant.allocation.body)}
    return [each for each in earmarks if not pools.isdisjoint(each.pools)]


def _sentence(pod: Pod, held: Earmark) -> str:
    """Names of other namespaces are not told."""
    is_higher = held.rank[0] < rank_of(pod)[0]
    namespace, name = held.pod
    if namespace == pod.metadata.namespace:
        which = f"pod {name!r}, which {'has a higher priority' if is_higher else 'is older'}"
    else:
        which = f"{'a pod of higher priority' if is_higher else 'an older pod'} in another namespace"
    return f"The devices that the pod could have are held for {which}."


def _is_right(world: World, pod: Pod, contender: Contender, chosen: Iterable[Earmark]) -> bool:
    """Whether what was kept until now is still there, and nobody else has come between."""
    before = contender.before
    if before is None or before.node in contender.avoid or before.node not in usable_nodes(world, pod.key):
        return False
    if any(not before.devices.isdisjoint(other.devices) for other in chosen):
        return False
    return before.claims == claims_of(world, pod) and all(
        _is_offered(world, key) and _holders_of(world, key) <= before.waits_for for key in before.devices
    )


def _is_offered(world: World, key: DeviceKey) -> bool:
    pool = world.inventory.offers.pools.get(key.pool_key)
    return pool is not None and any(device.name == key.device for device in pool.newest_devices())


def _holders_of(world: World, key: DeviceKey) -> frozenset[ObjectKey]:
    return frozenset((each.namespace, each.claim) for each in world.inventory.holders(key))


def claims_of(world: World, pod: Pod) -> frozenset[str]:
    """The UIDs of the claims that still need devices: with others it is another search."""
    unallocated = (each.claim for each in case_of(world, pod).unallocated)
    return frozenset(claim.metadata.uid for claim in unallocated if claim is not None)


def _earmark(
    world: World, pod: Pod, contender: Contender, chosen: Sequence[Earmark], budget: Budget
) -> Earmark | None:
    """The devices for which the fewest claims have to let go; None where even all do not help."""
    taken = [hold for each in chosen for hold in each.holds]
    before = contender.before
    spent = contender.spent - before.pools if before is not None else contender.spent
    usable = usable_nodes(world, pod.key) - contender.avoid
    # Nodes in the same state are one, but for those of which something is taken here.
    shared = usable & {each.node for each in chosen}
    nodes = [*most_free(world.inventory, usable - shared, MOST_NODES), *sorted(shared)]
    best: Earmark | None = None
    for node in nodes:
        found = _on(world, pod, node, taken, budget)
        if found is not None and not found.pools.isdisjoint(spent):
            continue
        if found is not None and (best is None or len(found.waits_for) < len(best.waits_for)):
            best = found
        if best is not None and len(best.waits_for) <= 1:
            break
    return best


def _on(world: World, pod: Pod, node: str, taken: Sequence[Hold], budget: Budget) -> Earmark | None:
    """The earmark on one node: the most urgent holders are the last ones that are waited for."""
    needed = _holders(world, node)

    def plan(holders: Iterable[ObjectKey]) -> Place | None:
        released = [hold for holder in holders for hold in world.inventory.holds(*holder)]
        return plan_on(world, pod, node, budget=budget, taken=taken, released=released)

    place = plan(needed)
    if place is None:
        return None
    for holder in tuple(needed):
        fewer = [each for each in needed if each != holder]
        if (better := plan(fewer)) is not None:
            needed, place = fewer, better
    holds = tuple(hold for grant in place.grants for hold in holds_in(grant.allocation.body))
    return Earmark(
        pod.key, pod.metadata.uid, rank_of(pod), node, holds, frozenset(needed), claims_of(world, pod)
    )


def _holders(world: World, node: str) -> list[ObjectKey]:
    """The claims that hold devices which the node can use, those of the most urgent pods first."""
    offer = world.inventory.offers.offer(node)
    devices = (pool.key_of(position) for pool in offer.pools for position in range(len(pool.devices)))
    holders = frozenset[ObjectKey]().union(*(_holders_of(world, key) for key in devices))
    return sorted(holders, key=lambda holder: (_rank_of_holder(world, holder), holder))


def _rank_of_holder(world: World, holder: ObjectKey) -> tuple[bool, Rank | tuple[()]]:
    """That of its most urgent pod; claims without pods come last."""
    ranks = list(_ranks(world, holder))
    return (not ranks, min(ranks, default=()))


def _ranks(world: World, holder: ObjectKey) -> Iterator[Rank]:
    claim = world.claims.get(holder)
    for consumer in claim.status.reserved_for if claim is not None else ():
        pod = world.pods.get((holder[0], consumer.name))
        if pod is not None and pod.metadata.uid == consumer.uid:
            yield rank_of(pod)
