"""Which claims a pod needs from its templates, and what they look like (G5-G25).

The names differ from those of kube-controller-manager only in their last five characters:
a hash instead of random ones, so that creating a claim twice is harmless (design, section 2.2).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dovetail.api.pods import Pod

if TYPE_CHECKING:
    from dovetail.core.world import World


@dataclass(frozen=True, slots=True)
class Create:
    """Create this claim, then record it. `body` is complete: name, owner, annotation, labels, spec."""

    entry: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Adopt:
    """A claim that was made for the entry exists and is not recorded yet: record it (G20)."""

    entry: str
    claim: str


@dataclass(frozen=True, slots=True)
class Impossible:
    """No claim can be made.

    The Event is `FailedResourceClaimCreation`, its text `PodResourceClaim <entry>: <message>` (G15).
    """

    entry: str
    message: str


Step = Create | Adopt | Impossible


def steps_for(world: "World", pod: Pod) -> tuple[Step, ...]:
    """What is missing for the pod's templates, in the order of its entries; empty where nothing is (G2, G5).

    Handling of the pod stops at the first `Impossible`, which is then the last step.
    """
    raise NotImplementedError


def statuses_for(pod: Pod, made: Mapping[str, str]) -> list[dict[str, str]]:
    """The whole list for server-side apply of `status.resourceClaimStatuses` (G25).

    `made` is the claim's name by entry, for what was created or adopted now.
    """
    raise NotImplementedError


def claim_name(pod: str, entry: str, pod_uid: str, attempt: int = 0) -> str:
    """The name of the claim for an entry: at most 62 characters, the same for the same arguments."""
    raise NotImplementedError


def name_prefix(pod: str, entry: str) -> str:
    """The `generateName` that kube-controller-manager would use (G10)."""
    raise NotImplementedError
