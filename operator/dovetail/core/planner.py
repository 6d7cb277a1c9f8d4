"""What to do with one pod: the claims it needs together, on one node that it can use (design, section 2)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from dovetail.api.pods import Pod
from dovetail.core.budget import Budget
from dovetail.core.decisions import Decision
from dovetail.core.world import World


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What the person who runs Dovetail decides about planning."""

    schedulers: frozenset[str] = frozenset({"default-scheduler"})
    """The schedulers whose pods are served: they must bind as kube-scheduler does."""


def plan_pod(
    world: World, pod: Pod, *, settings: PlanSettings, budget: Budget, avoid: Collection[str] = ()
) -> Decision:
    """Decide about one pod, without changing the world.

    `avoid` names nodes that must not be chosen now.
    Everything that is wrong with the pod, its claims or their classes is a value, never an exception;
    a spent budget is the value `Cut`.
    """
    raise NotImplementedError


def order_of(pods: Iterable[Pod]) -> list[Pod]:
    """The pods in the order in which they are served: by priority, then by age; else as they come."""
    raise NotImplementedError
