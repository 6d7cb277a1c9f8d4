"""Who this process is to the others, and whether it may go on at once where one of its own pod left off.

A container that is started anew finds the Lease in the name of its dead predecessor, and would wait until
that has run out.
It need not where it knows that the predecessor is dead: a process that can lock a file in a directory of its
pod holds the lock until it ends, however it ends, and the kernel gives the lock to nobody else before.
A predecessor that is frozen, or not dead yet, still holds it.

What has to be proved is that the holder of the Lease was a process that held *this* lock.
So its identity names the pod by UID and the file by a word that was drawn when the file was made: two pods of
one name, two directories of one pod and a directory that two pods share are told apart.
"""

import fcntl
import os
import uuid
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

LOCK_FILE = "process.lock"
WORD_BYTES = 64


class Seat:
    """The identity of this process, and the lock by which it can prove that it has its pod to itself.

    Without a directory, a UID or the lock, it is a process like any other, and succeeds nobody.
    """

    def __init__(self, *, pod: str, pod_uid: str = "", directory: str = "") -> None:
        """`directory` is one that nobody but the containers of the pod has: an emptyDir."""
        self._path = Path(directory) / LOCK_FILE if directory and pod_uid else None
        self._pod = "_".join(filter(None, (pod, pod_uid)))
        self._locked: int | None = None
        self._prefix = ""
        self._was_told = False
        self._lock()
        self.identity = f"{self._prefix or self._pod + '_'}{uuid.uuid4()}"

    def succeeds(self, holder: str) -> bool:
        """Whether the holder of a Lease was a process of this pod that is dead by now."""
        self._lock()
        return bool(self._prefix) and holder.startswith(self._prefix)

    def leave(self) -> None:
        """Give the lock up: this process writes no more."""
        if self._locked is not None:
            os.close(self._locked)
            self._locked, self._path, self._prefix = None, None, ""

    def _lock(self) -> None:
        """Take the lock unless it is held, by us or by another; the file descriptor keeps it."""
        if self._path is None or self._locked is not None:
            return
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            log.warning("no_state_directory", path=str(self._path), reason=str(error))
            self._path = None
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            word = _word_in(descriptor)
        except OSError as error:
            os.close(descriptor)
            if not self._was_told:
                log.warning("predecessor_may_be_alive", path=str(self._path), reason=str(error))
            self._was_told = True
            return
        self._locked, self._prefix = descriptor, f"{self._pod}_{word}_"


def _word_in(descriptor: int) -> str:
    """What the file is called by; drawn by whoever locks it first."""
    known = os.pread(descriptor, WORD_BYTES, 0).decode("ascii", "replace")
    if len(known) == 32 and known.isalnum():
        return known
    word = uuid.uuid4().hex
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, word.encode(), 0)
    return word
