"""What does not change while devices are chosen: who may serve which request, and with which values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from dovetail.api.selection import Taint
from dovetail.core.budget import Budget
from dovetail.core.capacity import NotRepresentable, Taking, taking_of
from dovetail.core.cel import Failure, Memory
from dovetail.core.features import Features
from dovetail.core.offers import NodeOffer
from dovetail.core.pools import PoolOffer
from dovetail.core.published import CounterKey, OfferedDevice, SliceContent
from dovetail.core.refusals import PoolCause
from dovetail.core.requests import RESULTS_LIMIT, Alternative, Asked, Constraint
from dovetail.core.sources import Absent, Broken, Element, Expressions, Finding, Source, Value, reads_pool
from dovetail.core.taints import blocking_taint

T = TypeVar("T")

PooledCounter = tuple[int, CounterKey]
"""The number of a pool on the node, and one of its counters."""

MEMO_LIMIT = 512
"""How many answers are kept about the content of one slice."""


@dataclass(frozen=True, slots=True)
class Upfront:
    """Why the claims cannot be served before any device was tried.

    `of_node` tells a node whose state is in the way from a claim that is wrong.
    `{device}` and `{pool}` in the reason stand for what these numbers mean on a node: see `named`.
    """

    claim: int
    reason: str
    of_node: bool
    device: int | None = None
    pool: int | None = None


@dataclass(slots=True, eq=False)
class AlternativeBoard:
    """The devices for one alternative, as masks over the devices of the node."""

    selected: int = 0
    """Taken by the selectors, and usable from the node."""
    broken: dict[int, str] = field(default_factory=dict)
    """Devices on which a selector or the capacity arithmetic fails."""
    fitting: int = 0
    """Selected, with enough capacity were nothing in use."""
    unsupported: int = 0
    """Devices that need what the node or the cluster does not support."""
    tainted: int = 0
    """Devices with a taint that is not tolerated."""
    all: tuple[int, ...] = ()
    """The devices that make up "all", in order."""

    @property
    def usable(self) -> int:
        """The devices that may be taken, as far as can be told without looking at what is in use."""
        return self.fitting & ~self.unsupported & ~self.tainted


@dataclass(slots=True, eq=False)
class ValueBoard:
    """The values that the devices for one alternative have of one constraint's attribute."""

    groups: dict[Element, int] = field(default_factory=dict)
    present: int = 0
    lone: int = 0
    values: dict[int, Value] = field(default_factory=dict)
    absent: dict[int, str] = field(default_factory=dict)
    broken: dict[int, str] = field(default_factory=dict)

    def add(self, number: int, finding: Finding) -> None:
        """Note what a device has."""
        match finding:
            case Absent(reason):
                self.absent[number] = reason
            case Broken(reason):
                self.broken[number] = reason
            case Value():
                self.values[number] = finding
                self.present |= 1 << number
                if finding.lone:
                    self.lone |= 1 << number
                for element in finding.elements:
                    self.groups[element] = self.groups.get(element, 0) | 1 << number

    def any_of(self, elements: frozenset[Element]) -> int:
        """The devices that have one of the values."""
        mask = 0
        for element in elements:
            mask |= self.groups.get(element, 0)
        return mask


@dataclass(slots=True, eq=False)
class Board:
    """Everything about a set of claims and what a node offers; equal offers share one."""

    asked: Asked
    devices: tuple[OfferedDevice, ...]
    alternatives: tuple[AlternativeBoard, ...]
    values: Mapping[tuple[int, int], ValueBoard]
    """By constraint and alternative; those that the constraint covers."""
    costs: Mapping[int, tuple[tuple[PooledCounter, int], ...]]
    takings: Mapping[tuple[int, int], Taking]
    """By alternative and device; for devices that are shared."""
    sharing: int
    """Devices that may be shared."""
    upfront: Upfront | None
    is_delicate: bool
    """Whether an error lies in wait, so that nothing may be proved beforehand: devices are tried in order."""
    is_ordered: bool
    """Whether even equal devices differ: "all" is tried in order, and a constraint may make it an error."""
    profiles: tuple[int, ...]
    """Devices with the same number are interchangeable for these claims."""
    uses_groups: bool
    """Whether compatibility groups count."""


class BoardMaker:
    """Makes boards for one set of features and mappings."""

    def __init__(self, features: Features, expressions: Expressions, memory: Memory) -> None:
        self._features = features
        self._expressions = expressions
        self._memory = memory
        self._environment = (features.consumable_capacity, features.list_type_attributes)

    def make(self, asked: Asked, offer: NodeOffer, budget: Budget) -> Board:
        """The board of these claims on what a node is offered. A spent budget raises `BudgetSpent`."""
        devices = tuple(device for pool in offer.pools for device in pool.devices)
        boards = tuple(self._alternative(alternative, offer, budget) for alternative in asked.alternatives)
        values = dict(self._values(asked, offer, budget))
        multi = self._features.consumable_capacity
        takings: dict[tuple[int, int], Taking] = {}
        for alternative, board in zip(asked.alternatives, boards, strict=True):
            takings.update(self._fit(alternative, board, devices))
        upfront = _upfront(asked, boards, offer)
        return Board(
            asked=asked,
            devices=devices,
            alternatives=boards,
            values=values,
            costs=dict(_costs(offer)),
            takings=takings,
            sharing=_mask(number for number, device in enumerate(devices) if multi and device.multi),
            upfront=upfront,
            is_delicate=_is_ordered(asked) or _has_broken(boards, values),
            is_ordered=_is_ordered(asked),
            uses_groups=self._features.compatibility_groups,
            profiles=_profiles(boards, values, offer, takings),
        )

    def sources(self, asked: Asked) -> list[Source]:
        """Where the attributes of all constraints come from."""
        return [self._source(asked, constraint, alternative) for constraint, alternative in _covered(asked)]

    def reads(self, asked: Asked) -> Iterator[frozenset[str] | None]:
        """What the claims can tell devices apart by."""
        for alternative in asked.alternatives:
            for expression in (*alternative.class_selectors, *alternative.selectors):
                program = self._expressions.selector(expression)
                if not isinstance(program, str):
                    yield program.reads
        yield from (source.reads for source in self.sources(asked))

    # -- selectors -------------------------------------------------------------------------------

    def _alternative(self, alternative: Alternative, offer: NodeOffer, budget: Budget) -> AlternativeBoard:
        board = AlternativeBoard()
        for pool, start in zip(offer.pools, offer.starts, strict=True):
            selected, broken = self._selected_in(alternative, pool, budget)
            board.selected |= (selected & pool.here) << start
            board.broken.update((start + position, reason) for position, reason in broken.items())
            board.unsupported |= self._unsupported(pool, may_skip=offer.may_skip) << start
        if self._features.device_taints:
            board.tainted = _tainted(alternative, board.selected, offer)
        return board

    def _selected_in(
        self, alternative: Alternative, pool: PoolOffer, budget: Budget
    ) -> tuple[int, dict[int, str]]:
        mask, broken, start = 0, {}, 0
        for published in pool.slices:
            selected, failures = self._selected_of(alternative, published.content, budget)
            mask |= selected << start
            for position, reason in failures.items():
                broken[start + position] = reason
            start += len(published.content.devices)
        return mask, broken

    def _selected_of(
        self, alternative: Alternative, content: SliceContent, budget: Budget
    ) -> tuple[int, dict[int, str]]:
        bound = self._features.binding_conditions and self._features.device_status
        key = (
            alternative.device_class.metadata.name,
            alternative.class_selectors,
            alternative.selectors,
            self._environment,
            bound,
        )
        known: tuple[int, dict[int, str]] | None = content.memo.get(key)
        if known is not None:
            return known
        mask, failures = 0, {}
        for position, device in enumerate(content.devices):
            if device.binding_conditions and not bound:
                continue
            verdict = self._selects(alternative, device, budget)
            if isinstance(verdict, str):
                failures[position] = verdict
            elif verdict:
                mask |= 1 << position
        return _remember(content, key, (mask, failures))

    def _selects(self, alternative: Alternative, device: OfferedDevice, budget: Budget) -> bool | str:
        """Whether all selectors take the device, the class's first; or what went wrong."""
        class_name = alternative.device_class.metadata.name
        for where, selectors in (
            (f"class {class_name!r}", alternative.class_selectors),
            (f"request {alternative.full_name!r}", alternative.selectors),
        ):
            for index, expression in enumerate(selectors):
                program = self._expressions.selector(expression)
                if isinstance(program, str):
                    return f"{where}, selector {index}: {program}"
                verdict = self._memory.matches(program, device.view, budget)
                if isinstance(verdict, Failure):
                    return f"{where}, selector {index} on {{device}}: {verdict.message}"
                if not verdict:
                    return False
        return True

    def _unsupported(self, pool: PoolOffer, *, may_skip: bool) -> int:
        mask, start = 0, 0
        for published in pool.slices:
            devices = published.content.devices
            if published.skips and self._features.optional_node_operations and not may_skip:
                mask |= ((1 << len(devices)) - 1) << start
            elif published.content.consumes and not self._features.partitionable_devices:
                mask |= _mask(place for place, device in enumerate(devices, start) if device.consumes)
            start += len(devices)
        return mask

    # -- capacity --------------------------------------------------------------------------------

    def _fit(
        self, alternative: Alternative, board: AlternativeBoard, devices: tuple[OfferedDevice, ...]
    ) -> Iterator[tuple[tuple[int, int], Taking]]:
        """Set what fits, and yield what is taken of devices that are shared."""
        board.fitting = board.selected
        if self._features.consumable_capacity:
            for number in bits(board.selected):
                device = devices[number]
                if not device.capacity and not alternative.capacity and not device.multi:
                    continue
                taking = self._taking(alternative, board, number, device)
                if taking is None:
                    board.fitting &= ~(1 << number)
                elif device.multi:
                    yield (alternative.number, number), taking
        board.all = tuple(bits(board.fitting))

    def _taking(
        self, alternative: Alternative, board: AlternativeBoard, number: int, device: OfferedDevice
    ) -> Taking | None:
        fractional = self._features.fractional_capacity_range
        try:
            return taking_of(device, alternative.capacity, fractional=fractional)
        except NotRepresentable as error:
            board.broken.setdefault(number, f"request {alternative.full_name!r} on {{device}}: {error}")
            return None

    # -- values ----------------------------------------------------------------------------------

    def _source(self, asked: Asked, constraint: Constraint, alternative: Alternative) -> Source:
        return self._expressions.source(
            constraint.attribute,
            alternative.native,
            asked.claims[alternative.claim].rules,
            alternative.name,
            alternative.parent,
        )

    def _values(
        self, asked: Asked, offer: NodeOffer, budget: Budget
    ) -> Iterator[tuple[tuple[int, int], ValueBoard]]:
        for constraint, alternative in _covered(asked):
            source, board = self._source(asked, constraint, alternative), ValueBoard()
            for pool, start in zip(offer.pools, offer.starts, strict=True):
                for position, finding in enumerate(self._findings(source, pool, budget)):
                    board.add(start + position, finding)
            yield (constraint.number, alternative.number), board

    def _findings(self, source: Source, pool: PoolOffer, budget: Budget) -> Iterator[Finding]:
        for published in pool.slices:
            content = published.content
            key = (source, pool.key.pool if reads_pool(source) else "")
            known: tuple[Finding, ...] | None = content.memo.get(key)
            if known is None:
                known = tuple(
                    source.value(device, pool.key.pool, self._memory, budget) for device in content.devices
                )
                _remember(content, key, known)
            yield from known


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _mask(numbers: Iterator[int]) -> int:
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask


def _remember(content: SliceContent, key: object, known: T) -> T:
    if len(content.memo) >= MEMO_LIMIT:
        content.memo.clear()
    content.memo[key] = known
    return known


def _covered(asked: Asked) -> Iterator[tuple[Constraint, Alternative]]:
    for alternative in asked.alternatives:
        for number in alternative.constraints:
            yield asked.constraints[number], alternative


def _tainted(alternative: Alternative, selected: int, offer: NodeOffer) -> int:
    by_rules: dict[int, list[Taint]] = {}
    for number, taint in offer.taints:
        by_rules.setdefault(number, []).append(taint)
    mask = 0
    for number in bits(selected):
        pool, position = offer.locate(number)
        taints = (*pool.devices[position].taints, *by_rules.get(number, ()))
        if taints and blocking_taint(taints, alternative.passes) is not None:
            mask |= 1 << number
    return mask


def _costs(offer: NodeOffer) -> Iterator[tuple[int, tuple[tuple[PooledCounter, int], ...]]]:
    for index, (pool, start) in enumerate(zip(offer.pools, offer.starts, strict=True)):
        if not pool.layout.counters:
            continue
        for position, device in enumerate(pool.devices):
            if device.consumes:
                costs = tuple(
                    ((index, key), amount) for part in device.consumes for key, amount in part.costs()
                )
                yield start + position, costs


def _upfront(asked: Asked, boards: tuple[AlternativeBoard, ...], offer: NodeOffer) -> Upfront | None:
    """What kube-scheduler finds wrong before it tries any device."""
    for index, claim in enumerate(asked.claims):
        fewest = 0
        for request in claim.requests:
            for alternative in request.alternatives:
                problem = _problem_of_all(index, alternative, boards[alternative.number], offer)
                if problem is not None:
                    return problem
            fewest += min(
                size_of(alternative, boards[alternative.number]) for alternative in request.alternatives
            )
            if fewest > RESULTS_LIMIT:
                reason = f"asks for {fewest} devices here, and a claim may have {RESULTS_LIMIT}"
                return Upfront(index, reason, of_node=True)
    return None


def size_of(alternative: Alternative, board: AlternativeBoard) -> int:
    """How many devices an alternative needs on the node."""
    return len(board.all) if alternative.wanted is None else alternative.wanted


def _problem_of_all(
    claim: int, alternative: Alternative, board: AlternativeBoard, offer: NodeOffer
) -> Upfront | None:
    if alternative.wanted is not None:
        return None
    for index, refused in enumerate(offer.refused):
        if refused.cause is not PoolCause.OBSOLETE:
            what = "still being published" if refused.cause is PoolCause.INCOMPLETE else "contradictory"
            reason = f"asks for all devices, and pool {{pool}} is {what} ({refused.detail})"
            return Upfront(claim, reason, of_node=True, pool=index)
    for number, reason in sorted(board.broken.items()):
        return Upfront(claim, reason, of_node=False, device=number)
    return None


def named(reason: str, offer: NodeOffer, device: int | None, pool: int | None = None) -> str:
    """A reason of a board with the names that device and pool have on a node."""
    if device is not None:
        key = offer.key_of(device)
        reason = reason.replace("{device}", f"{key.driver}/{key.pool}/{key.device}")
    if pool is not None:
        refused = offer.refused[pool].pool
        reason = reason.replace("{pool}", f"{refused.driver}/{refused.pool}")
    return reason


def _is_ordered(asked: Asked) -> bool:
    return any(alternative.wanted is None and alternative.constraints for alternative in asked.alternatives)


def _has_broken(boards: tuple[AlternativeBoard, ...], values: Mapping[tuple[int, int], ValueBoard]) -> bool:
    return any(board.broken for board in boards) or any(board.broken for board in values.values())


def _profiles(
    boards: tuple[AlternativeBoard, ...],
    values: Mapping[tuple[int, int], ValueBoard],
    offer: NodeOffer,
    takings: Mapping[tuple[int, int], Taking],
) -> tuple[int, ...]:
    known: dict[object, int] = {}
    profiles = []
    for index, (pool, start) in enumerate(zip(offer.pools, offer.starts, strict=True)):
        for position, device in enumerate(pool.devices):
            number = start + position
            key = (
                index if device.consumes else -1,
                device.consumes,
                device.multi,
                tuple(sorted((name, capacity.value) for name, capacity in device.capacity.items()))
                if device.multi
                else (),
                tuple(
                    (board.usable >> number & 1, board.fitting >> number & 1, board.broken.get(number))
                    for board in boards
                ),
                tuple(_value_profile(board, number) for board in values.values()),
                tuple(
                    (alternative, tuple(sorted(takings[alternative, number].nano.items())))
                    for alternative in range(len(boards))
                    if (alternative, number) in takings
                ),
            )
            profiles.append(known.setdefault(key, len(known)))
    return tuple(profiles)


def _value_profile(board: ValueBoard, number: int) -> object:
    value = board.values.get(number)
    if value is None:
        return board.broken.get(number)
    return (value.elements, value.lone)
