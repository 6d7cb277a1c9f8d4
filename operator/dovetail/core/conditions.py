"""The conditions of Dovetail's own objects: what they consist of, and when they last changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dovetail.api.text import harmless

Truth = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition without its times."""

    type: str
    status: Truth
    reason: str
    message: str

    def dated(self, before: Mapping[str, Any] | None, *, generation: int, now: str) -> dict[str, Any]:
        """The entry of `status.conditions`; it keeps the time of `before` while its status is the same."""
        is_unchanged = before is not None and before.get("status") == self.status
        return {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": harmless(self.message),
            "observedGeneration": generation,
            "lastTransitionTime": before.get("lastTransitionTime", now) if before and is_unchanged else now,
        }


def truth(holds: bool) -> Truth:
    """True or False, as conditions write it."""
    return "True" if holds else "False"
