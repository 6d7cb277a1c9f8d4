"""What an allocation attempt can answer: it fits, it does not fit, or it was cut short.

"No" is a value.
Only bad input (an unknown class, a broken selector, a claim beyond the limits) is an exception,
`dovetail.core.outcome.RequestInvalid`, and it concerns the claim on every node.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.core.refusals import Help, NodeStory
from dovetail.core.values import Scalar
from dovetail.errors import DovetailError


class RequestInvalid(DovetailError):
    """A claim cannot be served as it is written, or as its class is; `claim` names it."""

    def __init__(self, claim: str, reason: str) -> None:
        super().__init__(f"claim {claim!r}: {reason}")
        self.claim = claim
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Alignment:
    """What the devices of one constraint have in common (design, section 4).

    `value` is the common value; a list, sorted, where several are common;
    for `distinctAttribute` the list of values in result order.
    """

    attribute: str
    requests: tuple[str, ...]
    value: Scalar | tuple[Scalar, ...]

    def as_json(self) -> dict[str, Any]:
        """The entry as the annotation `dovetail.dev/alignment` carries it."""
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return {"attribute": self.attribute, "requests": list(self.requests), "value": value}


@dataclass(frozen=True, slots=True)
class Allocation:
    """What one claim gets: `body` is `status.allocation` without `allocationTimestamp`, as JSON."""

    body: Mapping[str, Any]
    alignment: tuple[Alignment, ...] = ()


@dataclass(frozen=True, slots=True)
class Fits:
    """One allocation per claim, in the order of the claims; `score` as in allocation-rules 2.6.

    The score counts 8 to 1 per request with alternatives; callers normalise it over nodes.
    """

    node: str
    allocations: tuple[Allocation, ...]
    score: int = 0


Placement = Fits
"""The best of several nodes, with what the claims get there."""


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """No node that was asked serves the claims; `dovetail.core.explain.explain` makes a sentence of it.

    `stories` groups the nodes by what stands in the way, the nearest miss first;
    each node that was asked is in exactly one story.
    `help` says what would make the claims fit, the cheapest first.
    """

    stories: tuple[NodeStory, ...]
    help: tuple[Help, ...] = ()

    @property
    def is_error(self) -> bool:
        """Whether kube-scheduler calls this an error of some node rather than "does not fit"."""
        return any(story.is_error for story in self.stories)


@dataclass(frozen=True, slots=True)
class Cut:
    """A budget ran out: nothing is known, try again later with backoff (R-D5).

    `node` is the node that was being searched.
    """

    node: str
    spent: int
