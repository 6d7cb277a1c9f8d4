"""Ends work that runs past its limit: an exception in the thread that does it, raised from another one.

It reaches whatever is written in Python.
What blocks in C is ended from outside the process: see `dovetail.services.supervision`.
"""

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import TypeVar

from dovetail.errors import TooCostly

T = TypeVar("T")

TICK_SECONDS = 0.05
"""How often work is looked at."""

AGAIN_SECONDS = 0.25
"""An exception can get lost where Python ignores them (in a finalizer, say): then it is raised once more."""

IDLE_TICKS = 40
"""So many ticks without work, and the watchdog sleeps until there is some."""

MEBIBYTE = 1024 * 1024
_PAGE = 4096
_STATM = Path("/proc/self/statm")


class _Stop(BaseException):
    """Raised in the thread that works. Whoever catches `Exception` does not catch it."""


@dataclass(slots=True, eq=False)
class _Job:
    thread: int
    deadline: float
    mebibytes: float
    base: int
    is_over: bool = False
    reason: str = ""
    again_at: float = field(default=float("-inf"))


class Watchdog:
    """Watches one thread at a time."""

    def __init__(
        self, *, clock: Callable[[], float] = monotonic, resident: Callable[[], int] | None = None
    ) -> None:
        """`resident` tells the size of the process in bytes."""
        self._clock = clock
        self._resident = resident or resident_bytes
        self._job: _Job | None = None
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._is_asleep = True
        self._is_closed = False
        self.is_hurried = False
        """Whether work is ended because the process ends, whatever it took."""
        self._base = 0
        self._thread: threading.Thread | None = None

    def guard(self, work: Callable[[], T], *, seconds: float, mebibytes: float) -> T:
        """Do the work; raises `TooCostly` where it took longer, or the process grew by more meanwhile.

        The work is ended wherever it is, so it must not leave behind what others rely on half changed.
        """
        job = _Job(threading.get_ident(), self._clock() + seconds, mebibytes, self._base)
        try:
            try:
                # In this order: who goes to sleep looks for a job once more after it has said so.
                self._job = job
                if self._is_asleep:
                    self._rouse(job)
                return work()
            finally:
                self._release(job)
        except _Stop:
            try:
                self._release(job)
            except _Stop:
                # Raised again before the first one got here.
                self._release(job)
            raise TooCostly(job.reason) from None
        except MemoryError:
            raise TooCostly("there is no memory left for it") from None
        except RecursionError:
            raise TooCostly("it is nested too deeply") from None

    def hurry(self) -> None:
        """End what is being done, and whatever is begun from now on: the process ends."""
        self.is_hurried = True

    def close(self) -> None:
        """Watch no more."""
        self._is_closed = True
        self._wake.set()

    def _release(self, job: _Job) -> None:
        """From here on nothing is raised for the job any more."""
        with self._lock:
            job.is_over = True
        if job.reason:
            _raise_in(job.thread, None)
        self._job = None

    def _rouse(self, job: _Job) -> None:
        job.base = self._base = self._resident()
        self._is_asleep = False
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
            self._thread.start()
        self._wake.set()

    def _watch(self) -> None:
        idle = 0
        while not self._is_closed:
            job = self._job
            if job is not None:
                idle = 0
                self._look(job)
            else:
                idle += 1
                self._base = self._resident()
            if idle > IDLE_TICKS:
                idle = 0
                self._wake.clear()
                self._is_asleep = True
                if self._job is None:
                    self._wake.wait()
                self._is_asleep = False
            else:
                sleep(TICK_SECONDS)

    def _look(self, job: _Job) -> None:
        now, size = self._clock(), self._resident()
        if self.is_hurried:
            reason = "the process ends"
        elif now >= job.deadline:
            reason = "it takes too long"
        elif size - job.base > job.mebibytes * MEBIBYTE:
            reason = "it takes too much memory"
        else:
            return
        with self._lock:
            if not job.is_over and now >= job.again_at:
                job.reason, job.again_at = reason, now + AGAIN_SECONDS
                _raise_in(job.thread, _Stop)


def resident_bytes() -> int:
    """How much memory this process has; 0 where the system does not tell."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except OSError:
        return 0


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise in a thread as soon as it is at work in Python; None takes back what has not been raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )
