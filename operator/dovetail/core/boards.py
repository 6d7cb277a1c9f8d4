"""Boards made: selectors, capacity, taints and values worked out for all devices that a node is offered."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from dovetail.api.selection import Taint
from dovetail.core.board import (
    AlternativeBoard,
    Board,
    PooledCounter,
    Upfront,
    ValueBoard,
    asked_by,
    size_of,
)
from dovetail.core.budget import Budget
from dovetail.core.capacity import NotRepresentable, Taking, taking_of
from dovetail.core.cel import Failure, Memory
from dovetail.core.devices import DeviceView
from dovetail.core.features import Features
from dovetail.core.masks import bits, mask_of
from dovetail.core.offers import NodeOffer
from dovetail.core.pools import Pool, PoolOffer
from dovetail.core.profiles import profiles_of
from dovetail.core.published import OfferedDevice, SliceContent
from dovetail.core.refusals import PoolCause
from dovetail.core.requests import RESULTS_LIMIT, Alternative, Asked, Constraint
from dovetail.core.sources import Expressions, Finding, Source, reads_pool
from dovetail.core.taints import blocking_taint
from dovetail.core.values import DeviceKey

T = TypeVar("T")

MEMO_LIMIT = 512
"""How many answers are kept about the content of one slice."""


@dataclass(frozen=True, slots=True)
class _Served:
    """What one alternative finds, with what it takes of each device that is shared."""

    board: AlternativeBoard
    takings: Mapping[int, Taking]


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
        served = self._served(asked, offer, devices, budget)
        boards = tuple(one.board for one in served)
        values = dict(self._values(asked, offer, budget))
        multi = self._features.consumable_capacity
        takings = {
            (number, device): taking
            for number, one in enumerate(served)
            for device, taking in one.takings.items()
        }
        upfront = _upfront(asked, boards, offer)
        return Board(
            asked=asked,
            devices=devices,
            alternatives=boards,
            values=values,
            costs=dict(_costs(offer)),
            takings=takings,
            sharing=mask_of(number for number, device in enumerate(devices) if multi and device.multi),
            upfront=upfront,
            is_delicate=_is_ordered(asked) or _has_broken(boards, values),
            is_ordered=_is_ordered(asked),
            uses_groups=self._features.compatibility_groups,
            counts_fractions=self._features.fractional_capacity_range,
            profiles=profiles_of(boards, values, offer, takings, budget),
        )

    def sources(self, asked: Asked) -> list[Source]:
        """Where the attributes of all constraints come from."""
        return [self.source(asked, constraint, alternative) for constraint, alternative in covered(asked)]

    def reads(self, asked: Asked) -> Iterator[frozenset[str] | None]:
        """What the claims can tell devices apart by."""
        for alternative in asked.alternatives:
            for expression in (*alternative.class_selectors, *alternative.selectors):
                program = self._expressions.selector(expression)
                if not isinstance(program, str):
                    yield program.reads
        yield from (source.reads for source in self.sources(asked))

    def may_serve(self, alternative: Alternative, pool: Pool, cause: PoolCause, budget: Budget) -> bool:
        """Whether a pool of which nothing can be taken has a device for an alternative, or may yet get one.

        Of a pool that is incomplete only the class is asked: what is missing may differ from what is there.
        """
        if cause is PoolCause.INCOMPLETE:
            alternative = replace(alternative, selectors=())
        contents = [published.content for published in pool.newest() if published.content.devices]
        if not contents:
            return (
                self._selects(alternative, DeviceView(DeviceKey(pool.key.driver, "", "")), budget)
                is not False
            )
        return any(self._selected_of(alternative, content, budget)[0] for content in contents)

    # -- selectors -------------------------------------------------------------------------------

    def _served(
        self, asked: Asked, offer: NodeOffer, devices: Sequence[OfferedDevice], budget: Budget
    ) -> list[_Served]:
        """The board of each alternative; those that ask alike share one."""
        known: dict[object, _Served] = {}
        for alternative in asked.alternatives:
            look = _look_of(alternative)
            if look not in known:
                board = self._alternative(alternative, offer, budget)
                known[look] = _Served(board, self._fit(alternative, board, devices, budget))
        return [known[_look_of(alternative)] for alternative in asked.alternatives]

    def _alternative(self, alternative: Alternative, offer: NodeOffer, budget: Budget) -> AlternativeBoard:
        budget.look(1 + len(offer.pools))
        board = AlternativeBoard()
        for pool, start in zip(offer.pools, offer.starts, strict=True):
            selected, broken = self.selected_in(alternative, pool, budget)
            board.selected |= (selected & pool.here) << start
            board.broken.update((start + position, reason) for position, reason in broken.items())
            board.unsupported |= self._unsupported(pool, may_skip=offer.may_skip) << start
        if self._features.device_taints:
            board.tainted = _tainted(alternative, board.selected, offer, budget)
        if not alternative.admin:
            # Who only looks after a device may share it with whoever has it from the plugin.
            for plugged in offer.withheld:
                board.withheld |= plugged.mask
        return board

    def selected_in(
        self, alternative: Alternative, pool: PoolOffer, budget: Budget
    ) -> tuple[int, dict[int, str]]:
        """The devices of a pool that the selectors take, and those on which a selector fails, and why."""
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
            verdict = self._selects(alternative, device.view, budget)
            if isinstance(verdict, str):
                failures[position] = verdict
            elif verdict:
                mask |= 1 << position
        return _remember(content, key, (mask, failures))

    def _selects(self, alternative: Alternative, device: DeviceView, budget: Budget) -> bool | str:
        """Whether all selectors take the device, the class's first; or what went wrong."""
        class_name = alternative.device_class.metadata.name
        for where, selectors in (
            (f"class {class_name!r}", alternative.class_selectors),
            ("request {request!r}", alternative.selectors),
        ):
            for index, expression in enumerate(selectors):
                program = self._expressions.selector(expression)
                if isinstance(program, str):
                    return f"{where}, selector {index}: {program}"
                verdict = self._memory.matches(program, device, budget)
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
                mask |= mask_of(place for place, device in enumerate(devices, start) if device.consumes)
            start += len(devices)
        return mask

    # -- capacity --------------------------------------------------------------------------------

    def _fit(
        self,
        alternative: Alternative,
        board: AlternativeBoard,
        devices: Sequence[OfferedDevice],
        budget: Budget,
    ) -> dict[int, Taking]:
        """Set what fits; what is taken of each device that is shared."""
        board.fitting, takings = board.selected, {}
        if self._features.consumable_capacity:
            for number in bits(board.selected):
                device = devices[number]
                if not device.capacity and not alternative.capacity and not device.multi:
                    continue
                budget.look(1 + len(device.capacity))
                taking = self._taking(alternative, board, number, device)
                if taking is None:
                    board.fitting &= ~(1 << number)
                elif device.multi:
                    takings[number] = taking
        board.all = tuple(bits(board.fitting))
        return takings

    def _taking(
        self, alternative: Alternative, board: AlternativeBoard, number: int, device: OfferedDevice
    ) -> Taking | None:
        fractional = self._features.fractional_capacity_range
        try:
            return taking_of(device, alternative.capacity, fractional=fractional)
        except NotRepresentable as error:
            board.broken.setdefault(number, f"request {{request!r}} on {{device}}: {error}")
            return None

    # -- values ----------------------------------------------------------------------------------

    def source(self, asked: Asked, constraint: Constraint, alternative: Alternative) -> Source:
        """Where the attribute of a constraint comes from for one alternative."""
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
        """The values for each constraint and alternative; the same source gives the same board."""
        known: dict[Source, ValueBoard] = {}
        for constraint, alternative in covered(asked):
            budget.look()
            source = self.source(asked, constraint, alternative)
            board = known.get(source)
            if board is None:
                board = known[source] = ValueBoard()
                for pool, start in zip(offer.pools, offer.starts, strict=True):
                    for position, finding in enumerate(self.findings(source, pool, budget)):
                        budget.look()
                        board.add(start + position, finding)
            yield (constraint.number, alternative.number), board

    def findings(self, source: Source, pool: PoolOffer, budget: Budget) -> Iterator[Finding]:
        """What each device of a pool has, in order."""
        for published in pool.slices:
            content = published.content
            key = (source, pool.key.pool if reads_pool(source) else "")
            known: tuple[Finding, ...] | None = content.memo.get(key)
            if known is None:
                found = []
                for device in content.devices:
                    budget.look(8)
                    found.append(source.value(device, pool.key.pool, self._memory, budget))
                known = tuple(found)
                _remember(content, key, known)
            yield from known


def _remember(content: SliceContent, key: object, known: T) -> T:
    if len(content.memo) >= MEMO_LIMIT:
        content.memo.clear()
    content.memo[key] = known
    return known


def _look_of(alternative: Alternative) -> object:
    """Equal for alternatives that the same devices can serve."""
    return (
        alternative.device_class.metadata.name,
        alternative.selectors,
        tuple(sorted((name, amount.nano) for name, amount in alternative.capacity.items())),
        alternative.passes,
        alternative.admin,
    )


def covered(asked: Asked) -> Iterator[tuple[Constraint, Alternative]]:
    """Each alternative with each constraint that it is under."""
    for alternative in asked.alternatives:
        for number in alternative.constraints:
            yield asked.constraints[number], alternative


def _tainted(alternative: Alternative, selected: int, offer: NodeOffer, budget: Budget) -> int:
    by_rules: dict[int, list[Taint]] = {}
    for number, taint in offer.taints:
        by_rules.setdefault(number, []).append(taint)
    mask = 0
    for pool, start in zip(offer.pools, offer.starts, strict=True):
        if not by_rules and not any(published.content.tainted for published in pool.slices):
            continue
        for number, device in enumerate(pool.devices, start):
            taints = (*device.taints, *by_rules.get(number, ()))
            if not taints:
                continue
            budget.look(1 + len(taints) * len(alternative.passes) // 32)
            if selected >> number & 1 and blocking_taint(taints, alternative.passes) is not None:
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
        return Upfront(claim, asked_by(alternative, reason), of_node=False, device=number)
    return None


def _is_ordered(asked: Asked) -> bool:
    return any(alternative.wanted is None and alternative.constraints for alternative in asked.alternatives)


def _has_broken(boards: tuple[AlternativeBoard, ...], values: Mapping[tuple[int, int], ValueBoard]) -> bool:
    return any(board.broken for board in boards) or any(board.broken for board in values.values())
