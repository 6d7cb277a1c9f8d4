"""What the planner can decide about one pod."""

from dataclasses import dataclass, field

from dovetail.core.outcome import Allocation
from dovetail.core.reasons import Reason

ObjectKey = tuple[str, str]
"""Namespace (empty where cluster-scoped) and name."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What one unallocated claim of the pod gets.

    `entry` is the name in `pod.spec.resourceClaims`.
    A grant that is not `ours` was planned only so that the node serves it: it is never written.
    """

    claim: ObjectKey
    entry: str
    allocation: Allocation
    ours: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Write the grants that are ours, reserve all of `reserve`, then take the gate away if `ungate`.

    `reserve` names claims of ours that are allocated already and lack the pod as consumer.
    `preempts` says that kube-scheduler has to evict pods of lower priority from the node first.
    `extended` names resources of the pod for which kube-scheduler chooses devices of the node itself.
    """

    node: str
    grants: tuple[Grant, ...]
    reserve: tuple[ObjectKey, ...] = ()
    ungate: bool = False
    score: int = 0
    preempts: bool = False
    extended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reserve:
    """All claims of the pod that are ours are allocated: add it as consumer of `claims`, then ungate it.

    `node` is the node that the allocations leave, None where they leave several.
    """

    claims: tuple[ObjectKey, ...]
    node: str | None = None
    ungate: bool = True


@dataclass(frozen=True, slots=True)
class Ungate:
    """The pod carries our gate and none of its claims is ours: take the gate away, with an Event."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Waits:
    """Somebody else has to act first; looked at again when the pod, its claims or the mappings change."""

    reason: Reason
    sentence: str


@dataclass(frozen=True, slots=True)
class DoesNotFit:
    """No usable node serves the pod; looked at again when anything changes that may help.

    `sentence` is for those who may read the pod's namespace; `full`, where it is given, also names objects
    of other namespaces, and is for those who may read all of them.
    """

    reason: Reason
    sentence: str
    full: str = field(default="", compare=False, repr=False)

    @property
    def told_in_full(self) -> str:
        """The sentence for those who may read all namespaces."""
        return self.full or self.sentence


@dataclass(frozen=True, slots=True)
class Invalid:
    """A claim, class or pod is wrong as it is written; only its owner can help."""

    reason: Reason
    sentence: str

    @property
    def told_in_full(self) -> str:
        """The sentence for those who may read all namespaces: it names nothing of others."""
        return self.sentence


@dataclass(frozen=True, slots=True)
class Cut:
    """The budget ran out: try again with backoff, never report it as impossible."""

    reason: Reason
    sentence: str


@dataclass(frozen=True, slots=True)
class NotOurs:
    """No claim of the pod is ours and it carries no gate of ours: leave it alone.

    `sentence` is empty, or says what made it impossible to tell (a claim or template that is missing).
    """

    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is nothing to do: the pod is done, is being deleted, or has all that it needs from us."""


Decision = Place | Reserve | Ungate | Waits | DoesNotFit | Invalid | Cut | NotOurs | Nothing
