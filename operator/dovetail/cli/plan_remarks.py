"""What `dovetail plan` warns of, whatever becomes of the pods."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dovetail.api.mappings import GATE
from dovetail.api.pods import Pod
from dovetail.core.cases import case_of
from dovetail.core.decisions import Waits
from dovetail.core.forecast import Forecast
from dovetail.core.reasons import Reason
from dovetail.core.world import World

NOT_GATED = (
    f"the pod lacks the scheduling gate {GATE}: kube-scheduler tries in vain to allocate its claims, "
    "and may take back what Dovetail allocates"
)


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that a pod had better not do."""

    pod: Pod
    message: str


def remarks_on(world: World, forecasts: Iterable[Forecast]) -> Iterator[Remark]:
    """The pods with claims of ours that kube-scheduler will not leave alone."""
    for forecast in forecasts:
        case = case_of(world, forecast.pod)
        if case.is_ours and not case.is_gated:
            yield Remark(forecast.pod, NOT_GATED)


def is_misspelt(world: World, forecast: Forecast) -> bool:
    """The pod waits for an attribute that nobody will supply: a known one is spelt nearly like it."""
    decision = forecast.decision
    if not isinstance(decision, Waits) or decision.reason is not Reason.NO_MAPPING:
        return False
    claims = case_of(world, forecast.pod).unallocated
    return any(unsupplied.nearest for claim in claims for unsupplied in claim.whose.unsupplied)
