"""What the operators wrote, counted from the API server's audit log, against what each attempt may cost."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from typing_extensions import override

from e2e.harness import Write

WINDOW_SECONDS = 60.0

MOST_WRITES_A_MINUTE = 4 * (2 + 2)
"""What one claim may cost in any minute: four attempts of two writes, each taken back in two steps."""

COUNTED = ("pods", "resourceclaims")


@dataclass(frozen=True, slots=True)
class Account:
    """Writes to pods and claims over a whole run, and what design §2.5 allows for them."""

    writes: int
    allowed: int
    busiest: int
    """The most writes to one claim within a minute, beyond one for each further consumer."""
    by_kind: Mapping[str, int]
    busiest_writes: str = ""
    """Which claim that was, and which writes."""

    @property
    def holds(self) -> bool:
        """Whether the budget was kept, in total and for each claim."""
        return self.writes <= self.allowed and self.busiest <= MOST_WRITES_A_MINUTE

    @override
    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.by_kind.items()))
        return (
            f"{self.writes} writes of {self.allowed} allowed ({kinds}); "
            f"at most {self.busiest} to one claim within a minute"
        ) + (f"; {self.busiest_writes}" if self.busiest > MOST_WRITES_A_MINUTE else "")


def close_account(
    writes: Iterable[Write],
    events: Iterable[Sequence[Mapping[str, Any]]],
    *,
    interruptions: int,
    consumers: Mapping[str, int],
) -> Account:
    """Add up what the operators wrote; `events` are their log lines.

    `consumers` has the number of pods that use each shared claim: each of them costs it one more write.
    """
    counted = [write for write in writes if write.resource in COUNTED and not write.dry_run]
    told = [entry for lines in events for entry in lines]
    most, where = _busiest(counted, consumers)
    return Account(
        writes=len(counted),
        allowed=allowance(told, interruptions),
        busiest=most,
        by_kind=Counter(_target(write) for write in counted),
        busiest_writes=where,
    )


def _target(write: Write) -> str:
    return f"{write.resource}/{write.subresource}" if write.subresource else write.resource


_COSTS: Mapping[str, int] = {
    # Finalizer and status of a claim; the gate; the condition that says so where the pod had to wait.
    "pod_allocated": 2,
    "gate_removed": 1,
    # The condition.
    "pod_waits": 1,
    # Each try may have got as far as the gate.
    "tried_again_later": 4,
    "device_clash": 2,
    "scheduler_took_back": 1,
    "not_taken_back": 2,
    "reservation_restored": 1,
    "claim_created": 2,
    "claim_released": 2,
    "claim_deleted": 1,
}
"""What each thing that an operator says that it did may have cost, besides what depends on claims."""

COST_OF_CLAIM = 2
COST_OF_TAKING_BACK = 2
INTERRUPTED_WRITES = 4 * 5
"""What an operator had begun for a few pods, and nobody told of, when it was interrupted."""


def allowance(events: Iterable[Mapping[str, Any]], interruptions: int) -> int:
    """The budget of design §2.5 for everything that was attempted: two writes for each claim, and so on."""
    total = interruptions * INTERRUPTED_WRITES
    for entry in events:
        name = str(entry.get("event", ""))
        total += _COSTS.get(name, 0)
        if name == "pod_allocated":
            total += COST_OF_CLAIM * int(entry.get("claims", 1))
        elif name == "taken_back":
            total += COST_OF_TAKING_BACK * int(entry.get("claims", 2)) + 1
    return total


def busiest_minute(writes: Iterable[Write], consumers: Mapping[str, int]) -> int:
    """The most writes to one claim within any minute, beyond one for each of its consumers."""
    return _busiest(writes, consumers)[0]


def _busiest(writes: Iterable[Write], consumers: Mapping[str, int]) -> tuple[int, str]:
    """The same, and which claim and writes they were."""
    most, told = 0, ""
    recent: defaultdict[tuple[str, str], deque[Write]] = defaultdict(deque)
    for write in sorted(writes, key=lambda item: item.at):
        if write.resource != "resourceclaims":
            continue
        known = recent[write.namespace, write.name]
        known.append(write)
        while known[0].at < write.at - WINDOW_SECONDS:
            known.popleft()
        if (count := len(known) - consumers.get(write.name, 0)) > most:
            most, told = count, f"{write.namespace}/{write.name}: {', '.join(map(_brief, known))}"
    return most, told


def _brief(write: Write) -> str:
    moment = datetime.fromtimestamp(write.at).astimezone()
    return f"{moment:%H:%M:%S.%f} {write.verb} {write.subresource or 'claim'} {write.code}"
