"""The process that stays when the operator has to be ended: it watches, ends and starts the one that works.

Whatever the worker does, even code in C that lets no other thread of it run, this process goes on:
it ends the worker when it was told to stop and the worker is not gone in time, when one decision takes longer
than the worker itself can allow, and when the worker grows too much meanwhile.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import NoReturn

import structlog

from dovetail.services.journal import Cost, Doing, Journal

log = structlog.get_logger(__name__)

TICK_SECONDS = 0.05

END_SECONDS = 3.9
"""How long the worker may take to end when it was told to."""

BUSY_SHARE = 0.5
"""Something under way past its limit is stuck if the worker used at least this part of the time:
a process that was frozen, or got no CPU, is given its time."""

MEMORY_FACTOR = 1.5
"""The worker ends by itself what takes too much memory; this much more is for where it cannot."""

UNHURRIED_ENDS = 2
"""So many times the worker is started again at once; then after a pause that doubles."""

LONGEST_PAUSE_SECONDS = 30.0
COUNTED_SECONDS = 600.0
"""Ends longer ago than this no longer count."""

_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})
_PR_SET_PDEATHSIG = 1
_MEBIBYTE = 1024 * 1024


def supervised(work: Callable[[], int], journal: Journal, *, mebibytes: float) -> int:
    """Do the work in a process of its own, again whenever it had to be ended; the answer is its exit code.

    Returns in the process that works; the one that watches ends here, at once, with the same exit code.
    Where the system is not Linux the work is done in this process.
    """
    if sys.platform != "linux":
        return work()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    ends: list[float] = []
    while True:
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            _end_with(parent)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            journal.load()
            return work()
        watch = _Watch(pid, journal, mebibytes)
        code = watch.until_end()
        if code is not None:
            _leave(code)
        ends = [*(at for at in ends if monotonic() - at < COUNTED_SECONDS), monotonic()]
        if _is_told_to_stop_within(_pause(len(ends))):
            _leave(0)


def _leave(code: int) -> NoReturn:
    """End without the half second that Python takes to tidy up: there is nothing left here."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _pause(ends: int) -> float:
    late = ends - UNHURRIED_ENDS
    return float(min(2**late, LONGEST_PAUSE_SECONDS)) if late > 0 else 0.0


def _is_told_to_stop_within(seconds: float) -> bool:
    until = monotonic() + seconds
    while (rest := until - monotonic()) > 0:
        found = signal.sigtimedwait(_SIGNALS, rest)
        if found is not None and found.si_signo != signal.SIGCHLD:
            return True
    return False


def _end_with(parent: int) -> None:
    """Have the system end this process when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


@dataclass(slots=True)
class _Watch:
    """Watches one worker until it is gone."""

    pid: int
    journal: Journal
    mebibytes: float
    stop_by: float = float("inf")
    """When the worker has to be gone."""
    _number: int = -1
    """What was under way when it was last looked at, and what the worker had used by then."""
    _size: int = 0
    _cpu: float = 0.0
    _seen_at: float = field(default_factory=monotonic)

    def until_end(self) -> int | None:
        """The exit code; None where the worker was ended here because of what it did."""
        while True:
            found = signal.sigtimedwait(_SIGNALS, TICK_SECONDS)
            if found is not None and found.si_signo == signal.SIGCHLD:
                done, status = os.waitpid(self.pid, os.WNOHANG)
                if done:
                    return _code(os.waitstatus_to_exitcode(status))
            elif found is not None:
                self._stop(found.si_signo)
            if monotonic() >= self.stop_by:
                log.warning("operator_ended", reason="it was told to stop, and did not in time")
                self._kill()
                return 1
            doing = self.journal.doing()
            if (reason := self._excess(doing)) and doing is not None:
                log.error("operator_ended", reason=reason, remedy="it is started again")
                self._kill()
                self.journal.load()
                self.journal.note(doing.content, Cost.KILLED)
                self.journal.end()
                return None

    def _stop(self, number: int) -> None:
        """Pass it on, once: the worker is told to stop."""
        if self.stop_by == float("inf"):
            self.stop_by = monotonic() + END_SECONDS
            os.kill(self.pid, number)

    def _excess(self, doing: Doing | None) -> str:
        """What is wrong with what is under way; empty where nothing is."""
        now = monotonic()
        if doing is None or doing.number != self._number:
            self._number = doing.number if doing is not None else -1
            self._size, self._cpu, self._seen_at = _size(self.pid), _cpu_seconds(self.pid), now
            return ""
        self.journal.watched(now - self._seen_at)
        if _size(self.pid) - self._size > self.mebibytes * MEMORY_FACTOR * _MEBIBYTE:
            return "a decision took too much memory"
        late = now - doing.started > doing.limit
        if late and _cpu_seconds(self.pid) - self._cpu > doing.limit * BUSY_SHARE:
            return "a decision could not be stopped"
        return ""

    def _kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _code(code: int) -> int:
    """As a shell tells of a process that a signal ended."""
    return 128 - code if code < 0 else code


def _size(pid: int) -> int:
    """How much memory the process has, in bytes; 0 where it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _cpu_seconds(pid: int) -> float:
    """How much CPU time the process has used; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0.0
