"""Which claims are ours, and which of them kube-scheduler could allocate as well (design, section 1)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dovetail.api.claims import ResourceClaimSpec

if TYPE_CHECKING:
    from dovetail.core.world import World


@dataclass(frozen=True, slots=True)
class Unsupplied:
    """An attribute of a constraint that nothing supplies; `nearest` is a known name like it, or empty."""

    attribute: str
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class Ours:
    """Whose a claim is.

    `ours`: Dovetail allocates it.
    `shared`: ours, but kube-scheduler could allocate it as well: taken only while its pods are gated.
    `unsupplied`: attributes of its constraints that no mapping, native entry or published attribute supplies.
    """

    ours: bool
    shared: bool = False
    unsupplied: tuple[Unsupplied, ...] = ()


def judge_claim(spec: ResourceClaimSpec, world: "World") -> Ours:
    """Whose a claim with this specification is, in this world."""
    raise NotImplementedError
