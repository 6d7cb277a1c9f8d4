"""Of refusals on worlds by chance: what is named as the cause is one, and what is said to help does."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from dovetail.core.allocator import allocate
from dovetail.core.budget import Budget
from dovetail.core.explain import explain
from dovetail.core.outcome import DoesNotFit, Fits, RequestInvalid
from dovetail.core.quantity import Quantity
from dovetail.core.refusals import (
    Blame,
    CapacityLack,
    CounterLack,
    DropConstraint,
    GroupLack,
    NodeStory,
    Release,
    ResultLack,
)
from tests.support.cases import AllocationCase
from tests.support.worlds import make_world

WORLDS = 700
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """A world, the node that was asked, and the answer."""

    world: Json
    node: Json
    outcome: DoesNotFit

    @property
    def story(self) -> NodeStory:
        """What is told of the node."""
        (story,) = self.outcome.stories
        return story

    def fits(self, world: Mapping[str, Any], released: Release | None = None) -> bool:
        """Whether the claims of another world fit on the node, after some devices were given back."""
        case = AllocationCase("changed", {**world, "node": self.node})
        inventory = case.inventory(world["nodes"])
        if released is not None:
            for holder in released.holders:
                inventory.drop_claim(*holder)
        name = self.node["metadata"]["name"]
        try:
            return isinstance(allocate(inventory, case.claims(), name, budget=Budget.unlimited()), Fits)
        except RequestInvalid:
            return False


def refusals() -> Iterator[Refused]:
    """Every claim that does not fit on a node of some worlds."""
    for seed in range(WORLDS):
        world = make_world(Random(seed))
        for node in world["nodes"]:
            case = AllocationCase(str(seed), {**world, "node": node})
            try:
                outcome = allocate(
                    case.inventory(world["nodes"]),
                    case.claims(),
                    node["metadata"]["name"],
                    budget=Budget.unlimited(),
                )
            except RequestInvalid:
                continue
            if isinstance(outcome, DoesNotFit):
                yield Refused(world, node, outcome)


ALL = pytest.fixture(scope="module", name="every")(lambda: list(refusals()))


def without(world: Json, dropped: Sequence[int] | None) -> Json:
    """The world with claims that lack some constraints, by their number through all claims, or all."""
    changed, number = deepcopy(world), 0
    for claim in changed["claims"]:
        kept = []
        for constraint in claim["spec"]["devices"]["constraints"]:
            if dropped is not None and number not in dropped:
                kept.append(constraint)
            number += 1
        claim["spec"]["devices"]["constraints"] = kept
    return changed


def raised(world: Json, blame: Blame) -> Json:
    """The world with as much as is said to be needed of what is lacking."""
    changed = deepcopy(world)
    for lack in blame.lacks:
        for published in changed["slices"]:
            spec = published["spec"]
            place = (spec["driver"], spec["pool"]["name"])
            match lack:
                case CounterLack() if place == (lack.pool.driver, lack.pool.pool):
                    _raise_counter(spec, lack)
                case CapacityLack() if place == (lack.device.driver, lack.device.pool):
                    _raise_capacity(spec, lack)
                case GroupLack():
                    for device in spec.get("devices") or ():
                        for part in device.get("consumesCounters") or ():
                            part.pop("compatibilityGroups", None)
                case _:
                    pass
    return changed


def _raise_counter(spec: Json, lack: CounterLack) -> None:
    for counters in spec.get("sharedCounters") or ():
        if counters["name"] == lack.counter_set:
            _add(counters["counters"][lack.counter], lack.needed - lack.left)


def _raise_capacity(spec: Json, lack: CapacityLack) -> None:
    for device in spec["devices"]:
        if device["name"] == lack.device.device:
            amount = device["capacity"][lack.capacity]
            # Who names no amount takes the whole, which must not grow.
            amount.setdefault("requestPolicy", {"default": amount["value"]})
            _add(device["capacity"][lack.capacity], lack.needed - lack.left)


def _add(amount: Json, nano: int) -> None:
    amount["value"] = f"{Quantity.parse(amount['value']).nano + nano}n"


def test_a_constraint_is_blamed_only_if_the_claims_fit_without_it(every: list[Refused]) -> None:
    """Everything else stays as it is; several that are blamed together have to go together."""
    checked = 0
    for refused in every:
        blame = refused.story.blame
        if blame is None or not blame.constraints:
            continue
        for gone in [[one] for one in blame.constraints] if blame.any_of else [blame.constraints]:
            assert refused.fits(without(refused.world, gone)), explain(refused.outcome)
            checked += 1
    assert checked > 100


def test_no_constraint_is_named_where_requests_find_too_little_without_it(every: list[Refused]) -> None:
    """What is short alone or together stays short without any constraint, and the sentence names none."""
    checked = 0
    for refused in every:
        if refused.story.short or refused.story.crowds:
            assert not refused.fits(without(refused.world, None))
            assert refused.story.blame is None
            assert "constraint" not in explain(refused.outcome).replace("attribute of a constraint", "")
            checked += 1
    assert checked > 100


def test_what_is_lacking_would_do_if_there_were_enough_of_it(every: list[Refused]) -> None:
    """Counters and capacity raised to what is said to be needed, groups that get on: the claims fit."""
    kinds: Counter[str] = Counter()
    for refused in every:
        blame = refused.story.blame
        if blame is None or not blame.lacks or any(isinstance(lack, ResultLack) for lack in blame.lacks):
            continue
        world = raised(refused.world, blame)
        assert refused.fits(without(world, None) if blame.beyond else world), explain(refused.outcome)
        assert blame.beyond != refused.fits(world)
        kinds.update(type(lack).__name__ for lack in blame.lacks)
    assert kinds.keys() >= {"CounterLack", "CapacityLack", "GroupLack"}


def test_what_is_said_to_help_helps(every: list[Refused]) -> None:
    """A constraint less, or devices that are given back: never none."""
    kinds: Counter[str] = Counter()
    for refused in every:
        for given in refused.outcome.help:
            kinds[type(given).__name__] += 1
            if isinstance(given, Release):
                assert given.devices
                assert given.holders
                assert refused.fits(refused.world, given)
            elif isinstance(given, DropConstraint):
                assert refused.story.blame is not None
                assert refused.story.blame.any_of
    assert kinds["Release"] > 10
    assert kinds["DropConstraint"] > 50


def test_no_sentence_has_a_gap(every: list[Refused]) -> None:
    """A list that is empty, a name that is missing: neither leaves a trace in a sentence."""
    for refused in every:
        for viewer in (None, "elsewhere"):
            told = explain(refused.outcome, viewer)
            for gap in ("  ", " .", " ,", " ;", "()", "''", '""', ": .", ": ;", " and and ", "None"):
                assert gap not in told, told
            assert told.startswith("Nothing fits: node ")
            assert told.endswith(".")
