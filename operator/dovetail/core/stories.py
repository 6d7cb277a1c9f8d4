"""What stood in the way on a node: causes per device, the best per constraint, numbers per request."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dovetail.core.attempt import Attempt
from dovetail.core.board import Board, ValueBoard, size_of
from dovetail.core.bounds import needed, startable
from dovetail.core.budget import Budget
from dovetail.core.capacity import misfit
from dovetail.core.dual_mode import DualMode, dual_modes
from dovetail.core.masks import bits
from dovetail.core.matching import Demand, shortage
from dovetail.core.offers import NodeOffer
from dovetail.core.refusals import (
    Cause,
    ConstraintStory,
    Crowd,
    DeviceRefusal,
    NodeStory,
    PoolStory,
    RequestStory,
    Share,
)
from dovetail.core.relaxing import without_constraints
from dovetail.core.requests import Alternative, Constraint
from dovetail.core.sources import Element
from dovetail.core.taints import blocking_taint


@dataclass(frozen=True, slots=True)
class Label:
    """How messages name a claim; that of a pod's extended resources exists in kube-scheduler alone."""

    name: str
    is_extended: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """One node with claims that did not fit; the attempt is fresh, `labels` name the claims."""

    attempt: Attempt
    offer: NodeOffer
    labels: Sequence[Label]
    budget: Budget
    best: dict[object, Element | None] = field(default_factory=dict)
    """The best value for requests under a constraint; constraints that look alike share one."""

    @property
    def board(self) -> Board:
        """What does not change while devices are chosen."""
        return self.attempt.board


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong before devices were tried: see `NodeStory`."""

    error: str = ""
    left_out: str = ""
    is_error: bool = False


def tell(scene: Scene, failure: Failure, pools: Sequence[PoolStory]) -> NodeStory:
    """The story of one node; `pools` are those that could serve a request, were they whole.

    Raises `BudgetSpent` where there is no time to tell it.
    """
    asked = scene.board.asked
    causes = list(_all_causes(scene, _without_constraints(scene)))
    requests = tuple(_request_story(scene, a, causes[a.number]) for a in asked.alternatives)
    constraints = tuple(_constraint_story(scene, constraint) for constraint in asked.constraints)
    return NodeStory(
        (scene.offer.node,),
        requests,
        constraints,
        crowds=tuple(_crowds(scene, causes)),
        pools=tuple(pools),
        plugins=_plugins(scene),
        error=failure.error,
        left_out=failure.left_out,
        is_error=failure.is_error,
    )


def gather(stories: Iterable[tuple[NodeStory, Sequence[str]]]) -> tuple[NodeStory, ...]:
    """Nodes with the same story together, the nearest miss first, then in the order given."""
    groups: dict[object, list[tuple[NodeStory, Sequence[str]]]] = {}
    for story, nodes in stories:
        groups.setdefault(_gist(story), []).append((story, nodes))
    merged = [
        replace(group[0][0], nodes=tuple(name for _, nodes in group for name in nodes))
        for group in groups.values()
    ]
    return tuple(sorted(merged, key=lambda story: -nearness(story)))


def nearness(story: NodeStory) -> float:
    """How much of what is wanted is there, from 0 to 1; nodes with an error come last."""
    if story.error:
        return -1.0
    wanted = usable = 0
    for request in story.requests:
        wanted += request.wanted
        usable += min(request.usable, request.wanted)
    for constraint in story.constraints:
        wanted += constraint.wanted
        usable += min(constraint.values, constraint.wanted)
        for share in constraint.shares:
            wanted += share.wanted
            usable += min(share.usable, share.wanted)
    return usable / wanted if wanted else 0.0


def _gist(story: NodeStory) -> object:
    """What two nodes must have in common to have the same story."""
    return (
        story.error,
        story.left_out,
        story.is_error,
        story.plugins,
        story.crowds,
        story.blame,
        tuple((p.refused.pool.driver, p.refused.cause, p.refused.detail, p.requests) for p in story.pools),
        tuple(
            (r.claim, r.request, r.wanted, r.selected, r.usable, r.drivers, tuple(sorted(r.causes.items())))
            for r in story.requests
        ),
        tuple(
            (c.claim, c.attribute, c.shares, c.wanted, c.values, tuple(sorted(c.missing.items())))
            for c in story.constraints
        ),
    )


# -- requests ----------------------------------------------------------------------------------------


def _request_story(scene: Scene, alternative: Alternative, causes: Mapping[Cause, int]) -> RequestStory:
    board, label = scene.board.alternatives[alternative.number], scene.labels[alternative.claim]
    refused = {cause: mask for cause, mask in causes.items() if mask and cause is not Cause.NOT_SELECTED}
    usable = board.selected
    for mask in refused.values():
        scene.budget.look(1 + mask.bit_count() // 4)
        usable &= ~mask
    return RequestStory(
        claim=label.name,
        request=alternative.full_name,
        wanted=max(size_of(alternative, board), 1),
        selected=board.selected.bit_count(),
        usable=usable.bit_count(),
        drivers=_drivers(scene, board.selected),
        causes={cause: mask.bit_count() for cause, mask in causes.items() if mask},
        refusals=tuple(
            DeviceRefusal(scene.offer.key_of(number), cause, _detail(scene, alternative, cause, number))
            for cause, mask in refused.items()
            for number in bits(mask)
        ),
        group=f"{alternative.claim}/{alternative.request}",
        has_alternatives=bool(alternative.parent),
        is_extended=label.is_extended,
    )


def _without_constraints(scene: Scene) -> Attempt:
    """The attempt as if there were no constraints, where that can make a difference to a single device."""
    if not (scene.board.costs or scene.board.sharing):
        return scene.attempt
    every = {constraint.number for constraint in scene.board.asked.constraints}
    return Attempt(
        without_constraints(scene.board, every, scene.budget), scene.attempt.usages, scene.attempt.starts
    )


def _all_causes(scene: Scene, bare: Attempt) -> Iterator[dict[Cause, int]]:
    """The causes for each alternative; those that ask alike, under constraints on the same, share them."""
    known: dict[object, dict[Cause, int]] = {}
    for alternative in scene.board.asked.alternatives:
        values = (scene.board.values[number, alternative.number] for number in alternative.constraints)
        board = scene.board.alternatives[alternative.number]
        look = (id(board), alternative.claim, *map(id, values))
        if look not in known:
            scene.budget.look()
            known[look] = _causes(scene, bare, alternative)
        yield known[look]


def _causes(scene: Scene, bare: Attempt, alternative: Alternative) -> dict[Cause, int]:
    """The devices by the first thing that keeps them from the request; `bare` knows no constraints.

    What never passes comes before what is in use: waiting does not help there.
    """
    attempt, board = scene.attempt, scene.board.alternatives[alternative.number]
    free = bare.board.asked.alternatives[alternative.number]
    left, causes = (1 << scene.offer.size) - 1, {}
    for cause, passing in (
        (Cause.NOT_SELECTED, board.selected),
        (Cause.DEVICE_PLUGIN, ~board.withheld),
        (Cause.TOO_SMALL, board.fitting),
        (Cause.IN_USE, attempt.available(alternative)),
        (Cause.NOT_SUPPORTED, ~board.unsupported),
        (Cause.TAINTED, ~board.tainted),
    ):
        causes[cause] = left & ~passing
        left &= passing
    is_plain = bare is attempt
    startable_alone = (
        board.usable & attempt.available(free) if is_plain else startable(bare, free, scene.budget)
    )
    for number in bits(left & ~startable_alone):
        obstacle = bare.obstacle(free, number)
        causes[obstacle] = causes.get(obstacle, 0) | 1 << number
    causes[Cause.NO_ATTRIBUTE] = left & startable_alone & ~attempt.admitted(alternative)
    return causes


def _crowds(scene: Scene, causes: Sequence[Mapping[Cause, int]]) -> Iterator[Crowd]:
    """Requests that want more devices together than there are for them, whatever the constraints are."""
    demands: list[tuple[Alternative, Demand]] = []
    for alternative, size in needed(scene.board):
        usable = scene.board.alternatives[alternative.number].selected
        for cause, mask in causes[alternative.number].items():
            if cause is not Cause.NO_ATTRIBUTE:
                usable &= ~mask
        if size and not alternative.admin and not usable & scene.board.sharing:
            demands.append((alternative, Demand(usable, size)))
    short = shortage([demand for _, demand in demands])
    if short is None or len(short) < 2:
        return
    together = 0
    for index in short:
        together |= demands[index][1].devices
    yield Crowd(
        tuple(demands[index][0].number for index in short),
        _drivers(scene, together),
        sum(demands[index][1].size for index in short),
        together.bit_count(),
    )


def _detail(scene: Scene, alternative: Alternative, cause: Cause, number: int) -> str:
    if cause is Cause.TAINTED:
        scene.budget.look(1 + len(scene.board.devices[number].taints) * len(alternative.passes) // 32)
        taints = (*scene.board.devices[number].taints, *(t for n, t in scene.offer.taints if n == number))
        found = blocking_taint(taints, alternative.passes)
        return f"{found.key}:{found.effect}" if found else ""
    if cause is Cause.DEVICE_PLUGIN:
        names = {plugged.resource for plugged in scene.offer.withheld if plugged.mask >> number & 1}
        return ", ".join(sorted(names))
    if cause is Cause.TOO_SMALL:
        scene.budget.look(1 + len(scene.board.devices[number].capacity))
        fractional = scene.board.counts_fractions
        return misfit(scene.board.devices[number], alternative.capacity, fractional=fractional)
    if cause is Cause.NO_ATTRIBUTE:
        for constraint in alternative.constraints:
            reason = scene.board.values[constraint, alternative.number].absent.get(number)
            if reason is not None:
                return f"{scene.board.asked.constraints[constraint].attribute}: {reason}"
    return ""


def _plugins(scene: Scene) -> tuple[DualMode, ...]:
    """Whose devices would be selected, and are withheld from a request."""
    mask = 0
    for board in scene.board.alternatives:
        mask |= board.selected & board.withheld
    return dual_modes(plugged for plugged in scene.offer.withheld if plugged.mask & mask)


def _drivers(scene: Scene, mask: int) -> tuple[str, ...]:
    return tuple(
        sorted(
            {
                pool.key.driver
                for pool, start in zip(scene.offer.pools, scene.offer.starts, strict=True)
                if mask >> start & ((1 << len(pool.devices)) - 1)
            }
        )
    )


# -- constraints -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Side:
    """One request under a constraint: the devices it could have, and their values."""

    alternative: Alternative
    wanted: int
    usable: int
    values: ValueBoard

    def within(self, element: Element) -> int:
        """How many usable devices have the value."""
        return (self.usable & self.values.groups.get(element, 0)).bit_count()


def _constraint_story(scene: Scene, constraint: Constraint) -> ConstraintStory:
    sides, label = list(_sides(scene, constraint)), scene.labels[constraint.claim].name
    missing = _missing(scene, sides)
    scene.budget.look(sum(1 + len(side.values.groups) // 64 for side in sides))
    if constraint.distinct:
        values = {element for side in sides for element in side.values.groups if side.within(element)}
        wanted = sum(side.wanted for side in sides)
        return ConstraintStory(label, constraint.attribute, True, None, (), wanted, len(values), missing)
    look = tuple((id(side.values), side.usable, side.wanted) for side in sides)
    if look not in scene.best:
        scene.best[look] = _best_element(sides, scene.budget)
    element = scene.best[look]
    shares = tuple(_share(scene, side, element) for side in sides)
    value = None if element is None else element[1]
    return ConstraintStory(label, constraint.attribute, False, value, shares, 0, 0, missing)


def _sides(scene: Scene, constraint: Constraint) -> Iterator[_Side]:
    """Each request under the constraint: of its alternatives there, the first that finds any device."""
    boards = scene.board.alternatives
    for request in scene.board.asked.claims[constraint.claim].requests:
        covered = [a for a in request.alternatives if constraint.number in a.constraints]
        if not covered:
            continue
        alternative = next((a for a in covered if boards[a.number].selected), covered[0])
        board = boards[alternative.number]
        usable = board.usable & scene.attempt.available(alternative)
        values = scene.board.values[constraint.number, alternative.number]
        yield _Side(alternative, size_of(alternative, board), usable, values)


def _best_element(sides: Sequence[_Side], budget: Budget) -> Element | None:
    """The value under which the fewest devices are missing; the first in order of several such."""
    budget.look(sum(1 + len(side.values.groups) // 64 for side in sides))
    elements = {element for side in sides for element in side.values.groups}

    def rank(element: Element) -> tuple[int, tuple[str, int, str]]:
        budget.look(1 + len(sides) // 8)
        return _lacking(sides, element), _order(element)

    return min(elements, key=rank, default=None)


def _lacking(sides: Sequence[_Side], element: Element) -> int:
    return sum(max(side.wanted - side.within(element), 0) for side in sides)


def _order(element: Element) -> tuple[str, int, str]:
    kind, value = element
    return (kind, 0, value) if isinstance(value, str) else (kind, int(value), "")


def _share(scene: Scene, side: _Side, element: Element | None) -> Share:
    drivers = _drivers(scene, scene.board.alternatives[side.alternative.number].selected)
    usable = 0 if element is None else side.within(element)
    return Share(side.alternative.full_name, ", ".join(drivers), side.wanted, usable)


def _missing(scene: Scene, sides: Sequence[_Side]) -> Mapping[str, str]:
    """Why drivers lack the attribute: those of which no device has it that is asked for, and needed."""
    reasons: dict[str, str] = {}
    for side in sides:
        if (side.usable & side.values.present).bit_count() >= side.wanted:
            continue
        selected = scene.board.alternatives[side.alternative.number].selected
        for pool, start in zip(scene.offer.pools, scene.offer.starts, strict=True):
            here = selected & ((1 << len(pool.devices)) - 1) << start
            if here and not here & side.values.present:
                number = next(bits(here))
                reasons.setdefault(pool.key.driver, side.values.absent.get(number, ""))
    return dict(sorted(reasons.items()))
