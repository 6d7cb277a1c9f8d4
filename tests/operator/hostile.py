"""A picture of the cluster in which deciding about a pod with the label `bomb` goes wrong, and its operator.

What the label asks for stands for the next hole in the budgets: no claim is known that does it.
"""

import sys
from collections import deque
from itertools import count, islice
from typing import Any

from typing_extensions import override

from dovetail.api.depth import allow_deep_json
from dovetail.core.budget import Budget
from dovetail.core.footprints import Footprint
from dovetail.core.judging import Judge, Verdicts
from dovetail.core.world import World
from dovetail.services import workbench
from dovetail.services.journal import Journal
from dovetail.services.logs import set_up_logging
from dovetail.services.settings import Settings
from dovetail.services.supervision import supervised


def loop() -> None:
    """Python that does not end."""
    while True:
        pass


def grow() -> None:
    """Python that takes more and more memory."""
    held = []
    while True:
        held.append(b"x" * 1_000_000)


def block() -> None:
    """C that does not end for minutes, and lets no other thread run."""
    sum(range(10**11))


def swell() -> None:
    """C that takes gigabytes of memory, and lets no other thread run."""
    deque(islice(count(), 10**8))


BOMBS = {"loop": loop, "grow": grow, "block": block, "swell": swell}


class HostileJudge(Judge):
    """Looks for nodes; for a pod with a bomb, that goes off."""

    @override
    def verdicts(self, footprint: Footprint, budget: Budget) -> Verdicts:
        if bomb := footprint.pod.metadata.labels.get("bomb"):
            BOMBS[bomb]()
        return super().verdicts(footprint, budget)


class HostileWorld(World):
    """A picture whose judge is hostile."""

    @override
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.judge = HostileJudge(self.nodes)


def main() -> int:
    """`dovetail run` on such a picture, with settings from the environment."""
    workbench.World = HostileWorld  # type: ignore[attr-defined]
    settings = Settings()
    set_up_logging(form=settings.log_format, level=settings.log_level)
    journal = Journal.open(settings.state_directory)

    def work() -> int:
        from dovetail.app import run

        return run(settings, journal)

    return supervised(work, journal, mebibytes=settings.decision_mebibytes)


if __name__ == "__main__":
    allow_deep_json()
    sys.exit(main())
