"""What stood in the way on a node: causes per device, the best per constraint, numbers per request."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.core.attempt import Attempt
from dovetail.core.board import Board, ValueBoard, size_of
from dovetail.core.bounds import startable
from dovetail.core.dual_mode import DualMode, dual_modes
from dovetail.core.masks import bits
from dovetail.core.offers import NodeOffer
from dovetail.core.refusals import (
    Cause,
    ConstraintStory,
    DeviceRefusal,
    NodeStory,
    PoolCause,
    RequestStory,
    Share,
)
from dovetail.core.requests import Alternative, Constraint, Request
from dovetail.core.sources import Element
from dovetail.core.taints import blocking_taint


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """One node with claims that did not fit; the attempt is fresh, `labels` are the names of the claims."""

    attempt: Attempt
    offer: NodeOffer
    labels: Sequence[str]

    @property
    def board(self) -> Board:
        """What does not change while devices are chosen."""
        return self.attempt.board


def tell(scene: Scene, *, error: str = "", blocking: int | None = None) -> NodeStory:
    """The story of one node."""
    pools = tuple(refused for refused in scene.offer.refused if refused.cause is not PoolCause.OBSOLETE)
    asked = scene.board.asked
    requests = tuple(_request_story(scene, alternative) for alternative in asked.alternatives)
    constraints = tuple(_constraint_story(scene, constraint, blocking) for constraint in asked.constraints)
    return NodeStory((scene.offer.node,), requests, constraints, pools, plugins=_plugins(scene), error=error)


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
    return usable / wanted if wanted else 1.0


def _gist(story: NodeStory) -> object:
    """What two nodes must have in common to have the same story."""
    return (
        story.error,
        story.plugins,
        tuple((pool.pool.driver, pool.cause, pool.detail) for pool in story.pools),
        tuple(
            (r.claim, r.request, r.wanted, r.selected, r.usable, r.drivers, tuple(sorted(r.causes.items())))
            for r in story.requests
        ),
        tuple(
            (c.claim, c.attribute, c.shares, c.wanted, c.values, tuple(sorted(c.missing.items())), c.blocking)
            for c in story.constraints
        ),
    )


# -- requests ----------------------------------------------------------------------------------------


def _request_story(scene: Scene, alternative: Alternative) -> RequestStory:
    board = scene.board.alternatives[alternative.number]
    causes = _causes(scene, alternative)
    refused = {cause: mask for cause, mask in causes.items() if mask and cause is not Cause.NOT_SELECTED}
    usable = board.selected
    for mask in refused.values():
        usable &= ~mask
    return RequestStory(
        claim=scene.labels[alternative.claim],
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
    )


def _causes(scene: Scene, alternative: Alternative) -> dict[Cause, int]:
    """The devices by the first thing that keeps them from the request."""
    attempt, board = scene.attempt, scene.board.alternatives[alternative.number]
    left, causes = (1 << scene.offer.size) - 1, {}
    for cause, passing in (
        (Cause.NOT_SELECTED, board.selected),
        (Cause.DEVICE_PLUGIN, ~board.withheld),
        (Cause.IN_USE, attempt.available(alternative)),
        (Cause.NO_CAPACITY, board.fitting),
        (Cause.NOT_SUPPORTED, ~board.unsupported),
        (Cause.TAINTED, ~board.tainted),
        (Cause.NO_ATTRIBUTE, attempt.admitted(alternative)),
    ):
        causes[cause] = left & ~passing
        left &= passing
    for number in bits(left & ~startable(attempt, alternative)):
        obstacle = attempt.obstacle(alternative, number)
        causes[obstacle] = causes.get(obstacle, 0) | 1 << number
    return causes


def _detail(scene: Scene, alternative: Alternative, cause: Cause, number: int) -> str:
    if cause is Cause.TAINTED:
        taints = (*scene.board.devices[number].taints, *(t for n, t in scene.offer.taints if n == number))
        found = blocking_taint(taints, alternative.passes)
        return f"{found.key}:{found.effect}" if found else ""
    if cause is Cause.DEVICE_PLUGIN:
        names = {plugged.resource for plugged in scene.offer.withheld if plugged.mask >> number & 1}
        return ", ".join(sorted(names))
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


def _constraint_story(scene: Scene, constraint: Constraint, blocking: int | None) -> ConstraintStory:
    sides = list(_sides(scene, constraint))
    label, is_blocking = scene.labels[constraint.claim], constraint.number == blocking
    missing = _missing(scene, sides)
    if constraint.distinct:
        values = {element for side in sides for element in side.values.groups if side.within(element)}
        wanted = sum(side.wanted for side in sides)
        return ConstraintStory(
            label, constraint.attribute, True, None, (), wanted, len(values), missing, is_blocking
        )
    element = _best_element(sides)
    shares = tuple(_share(scene, side, element) for side in sides)
    value = None if element is None else element[1]
    return ConstraintStory(label, constraint.attribute, False, value, shares, 0, 0, missing, is_blocking)


def _sides(scene: Scene, constraint: Constraint) -> Iterator[_Side]:
    """Each request under the constraint, by its first alternative that the constraint covers."""
    for request in scene.board.asked.claims[constraint.claim].requests:
        alternative = _covered_by(request, constraint)
        if alternative is None:
            continue
        board = scene.board.alternatives[alternative.number]
        usable = board.usable & scene.attempt.available(alternative)
        values = scene.board.values[constraint.number, alternative.number]
        yield _Side(alternative, size_of(alternative, board), usable, values)


def _covered_by(request: Request, constraint: Constraint) -> Alternative | None:
    return next((a for a in request.alternatives if constraint.number in a.constraints), None)


def _best_element(sides: Sequence[_Side]) -> Element | None:
    """The value under which the fewest devices are missing; the first in order of several such."""
    elements = {element for side in sides for element in side.values.groups}
    return min(elements, key=lambda element: (_lacking(sides, element), _order(element)), default=None)


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
    """Why drivers lack the attribute: those of which no device that is asked for has it."""
    reasons: dict[str, str] = {}
    for side in sides:
        selected = scene.board.alternatives[side.alternative.number].selected
        for pool, start in zip(scene.offer.pools, scene.offer.starts, strict=True):
            here = selected & ((1 << len(pool.devices)) - 1) << start
            if here and not here & side.values.present:
                number = next(bits(here))
                reasons.setdefault(pool.key.driver, side.values.absent.get(number, ""))
    return dict(sorted(reasons.items()))
