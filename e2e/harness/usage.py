"""What a program used so far, as Linux counts it: all processes of its group together.

The operator is two processes, one that watches and one that works.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def processes_of(leader: int) -> tuple[int, ...]:
    """The processes of a group, by their ids; those that have ended do not count."""
    return tuple(pid for pid, fields in _all() if int(fields[2]) == leader and fields[0] not in "ZX")


def cpu_seconds(leader: int) -> float:
    """CPU time of a group of processes, user and system; that of a child which ended counts on."""
    ticks = 0
    for _, fields in _all():
        if int(fields[2]) == leader:
            ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def memory_mib(leader: int) -> float:
    """Memory of a group of processes that is in RAM; what several processes share is counted once."""
    kib = 0
    for pid in processes_of(leader):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    kib += int(line.split()[1])
    return kib / 1024


def _all() -> Iterator[tuple[int, list[str]]]:
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            # Behind the name in parentheses, which may hold blanks: state, parent, group.
            yield int(place.name), (place / "stat").read_text().rpartition(")")[2].split()
