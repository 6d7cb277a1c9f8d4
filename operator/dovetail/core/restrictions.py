"""What Dovetail may not do in a cluster: rights that are missing, and feature gates that are off."""

import enum
from dataclasses import dataclass

from dovetail.core.conditions import Condition, truth

PERMITTED = "Permitted"


class PermitReason(enum.StrEnum):
    """The reason of the condition `Permitted`."""

    ALL_GRANTED = "AllGranted"
    """True: no right is missing, and no gate was found off."""

    RIGHT_MISSING = "RightMissing"
    """False: the API server says that Dovetail's account lacks a right."""

    FEATURE_GATE_OFF = "FeatureGateOff"
    """False: the API server dropped fields that were written, so that their gate must be off."""


@dataclass(frozen=True, slots=True)
class MissingRight:
    """A right, such as "patch pods", and what it is needed for, such as "remove the scheduling gate"."""

    right: str
    purpose: str


@dataclass(frozen=True, slots=True)
class Restrictions:
    """All that is missing; gates are those that reading back showed to be off, by Kubernetes' names."""

    rights: tuple[MissingRight, ...] = ()
    gates: tuple[str, ...] = ()

    @property
    def condition(self) -> Condition:
        """The condition `Permitted`; its message names everything that is missing."""
        if self.rights:
            reason = PermitReason.RIGHT_MISSING
        elif self.gates:
            reason = PermitReason.FEATURE_GATE_OFF
        else:
            reason = PermitReason.ALL_GRANTED
        return Condition(PERMITTED, truth(reason is PermitReason.ALL_GRANTED), str(reason), self._message)

    @property
    def _message(self) -> str:
        words = [f"missing right to {missing.right}, needed to {missing.purpose}" for missing in self.rights]
        words += [f"feature gate {gate} is off: {WITHOUT_GATE}" for gate in self.gates]
        return "; ".join(words) or "no right is missing, and no feature gate was found off"


WITHOUT_GATE = "the API server drops its fields, and Dovetail does without them"

UNRESTRICTED = Restrictions()
