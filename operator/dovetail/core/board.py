"""What does not change while devices are chosen: who may serve which request, and with which values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from dovetail.core.capacity import Taking
from dovetail.core.offers import NodeOffer
from dovetail.core.published import CounterKey, OfferedDevice
from dovetail.core.requests import RESULTS_LIMIT, Alternative, Asked
from dovetail.core.sources import Absent, Broken, Element, Finding, Value

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
    withheld: int = 0
    """Devices that a device plugin may give to somebody else."""
    all: tuple[int, ...] = ()
    """The devices that make up "all", in order."""

    @property
    def usable(self) -> int:
        """The devices that may be taken, as far as can be told without looking at what is in use."""
        return self.fitting & ~self.unsupported & ~self.tainted & ~self.withheld


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
    counts_fractions: bool = True
    """Whether amounts of capacity may be fractions."""
    most_results: int = RESULTS_LIMIT
    """How many devices a claim may have."""


def size_of(alternative: Alternative, board: AlternativeBoard) -> int:
    """How many devices an alternative needs on the node."""
    return len(board.all) if alternative.wanted is None else alternative.wanted


def asked_by(alternative: Alternative, reason: str) -> str:
    """A reason that alternatives share with the name of the one that is concerned."""
    return reason.replace("{request!r}", repr(alternative.full_name))


def named(reason: str, offer: NodeOffer, device: int | None, pool: int | None = None) -> str:
    """A reason of a board with the names that device and pool have on a node."""
    if device is not None:
        key = offer.key_of(device)
        reason = reason.replace("{device}", f"{key.driver}/{key.pool}/{key.device}")
    if pool is not None:
        refused = offer.refused[pool].pool
        reason = reason.replace("{pool}", f"{refused.driver}/{refused.pool}")
    return reason
