"""What a process leaves to the next one: what it was deciding when it ended, and which claims cost too much.

It is a table in memory that processes share, in a file where there is a place for one: written without
system calls, so that noting each decision costs next to nothing, and there whatever ends the process.
"""

import mmap
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from pathlib import Path
from time import monotonic, time

import structlog

log = structlog.get_logger(__name__)

FILE = "decisions"
MAGIC = b"dovetail journal 1".ljust(24)[:24]

_NOW = struct.Struct("=Qdd16sQ")
"""Number, start, limit and content of what is being done, and how long it has been watched, in ms.
An odd number says that it is under way."""

_NUMBER = struct.Struct("=Q")
_SLOT = struct.Struct("=16sddII")
"""Content, when it may be tried again, when that was noted, how often it cost too much, and `Cost`."""

_NOW_AT = len(MAGIC)
_SEEN_AT = _NOW_AT + _NOW.size - _NUMBER.size
_SLOTS_AT = 128
SLOTS = 1024
SIZE = _SLOTS_AT + SLOTS * _SLOT.size

SUSPECT_SECONDS = 0.5
"""What had been under way for as long when the process ended is taken to be why."""

FORGET_SECONDS = 3600.0
"""So long after it could be tried again nothing is held against a content any more."""


class Cost(IntEnum):
    """How a content cost too much."""

    CUT = 0
    """Its budget ran out."""
    STOPPED = 1
    """It ran past its budget, and was stopped."""
    KILLED = 2
    """The process had to be ended."""


PAUSES = {Cost.CUT: (5.0, 300.0), Cost.STOPPED: (5.0, 300.0), Cost.KILLED: (60.0, 3600.0)}
"""How long a content is left alone at first, and at most; the pause doubles each time."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What is under way; `limit` is how many seconds it may take before the process is ended for it."""

    number: int
    started: float
    limit: float
    content: bytes


def content_of(*parts: str) -> bytes:
    """A name for what something consists of."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass"))
        digest.update(b"\0")
    return digest.digest()


class Journal:
    """One process writes it, the one that watches it reads it; opened again, it knows what was noted.

    Contents are bounded in number: the one that may be tried again first goes first.
    """

    def __init__(self, table: mmap.mmap, *, clock: Callable[[], float] = time) -> None:
        self._table = table
        self._clock = clock
        self._slots: dict[bytes, int] = {}
        self._inherited: set[bytes] = set()
        """Contents that were last noted before this process began."""
        self._number = 0
        self.load()

    @classmethod
    def open(cls, directory: str, *, clock: Callable[[], float] = time) -> "Journal":
        """The journal in a directory; in memory alone without one, or where it cannot be kept there."""
        if not directory:
            return cls(_blank(), clock=clock)
        try:
            journal = cls(_in_file(Path(directory) / FILE), clock=clock)
        except OSError as error:
            log.warning("journal_not_kept", directory=directory, reason=str(error))
            return cls(_blank(), clock=clock)
        if (doing := journal.doing()) is not None and journal._seen() >= SUSPECT_SECONDS:
            journal.note(doing.content, Cost.KILLED)
        journal.end()
        return journal

    def load(self) -> None:
        """Know what others noted in the meantime."""
        now = self._clock()
        self._number = _NUMBER.unpack_from(self._table, _NOW_AT)[0]
        self._slots = {}
        for slot in range(SLOTS):
            content, until, noted, times, _ = self._read(slot)
            is_sane = noted <= now and until - noted <= PAUSES[Cost.KILLED][1]
            if times and is_sane and now < until + FORGET_SECONDS:
                self._slots[content] = slot
        self._inherited = set(self._slots)

    # -- what is being done ----------------------------------------------------------------------

    def begin(self, content: bytes, limit: float) -> None:
        """Something begins that may take so many seconds."""
        self._number = (self._number + 1) | 1
        _NOW.pack_into(self._table, _NOW_AT, self._number, monotonic(), limit, content, 0)

    def end(self) -> None:
        """It is over."""
        self._number = (self._number | 1) + 1
        _NUMBER.pack_into(self._table, _NOW_AT, self._number)

    def doing(self) -> Doing | None:
        """What is under way now."""
        number, started, limit, content, _ = _NOW.unpack_from(self._table, _NOW_AT)
        if not number & 1 or _NUMBER.unpack_from(self._table, _NOW_AT)[0] != number:
            return None
        return Doing(number, started, limit, content)

    def watched(self, seconds: float) -> None:
        """Note, for whoever comes next, how long somebody has seen the same thing under way."""
        _NUMBER.pack_into(self._table, _SEEN_AT, int(seconds * 1000))

    def _seen(self) -> float:
        return float(_NUMBER.unpack_from(self._table, _SEEN_AT)[0]) / 1000

    # -- what cost too much ----------------------------------------------------------------------

    def note(self, content: bytes, cost: Cost) -> float:
        """The content cost too much; how long it is left alone."""
        now = self._clock()
        slot = self._slots.get(content)
        times = self._read(slot)[3] if slot is not None else 0
        first, most = PAUSES[cost]
        pause = float(min(first * 2 ** min(times, 16), most))
        if slot is None:
            slot = self._slots[content] = self._room()
        _SLOT.pack_into(self._table, self._at(slot), content, now + pause, now, times + 1, cost)
        self._inherited.discard(content)
        return pause

    def rest(self, content: bytes) -> float:
        """How long the content is still left alone; 0 where it may be tried.

        One whose budget ran out is left alone by the process that comes after: within one, whoever serves
        the pod knows best when something changed that may help.
        """
        slot = self._slots.get(content)
        if slot is None:
            return 0.0
        _, until, _, _, cost = self._read(slot)
        if cost == Cost.CUT and content not in self._inherited:
            return 0.0
        return max(until - self._clock(), 0.0)

    def forget(self, content: bytes) -> None:
        """The content was dealt with within its budget."""
        slot = self._slots.pop(content, None)
        self._inherited.discard(content)
        if slot is not None:
            _SLOT.pack_into(self._table, self._at(slot), bytes(16), 0.0, 0.0, 0, 0)

    def _room(self) -> int:
        """A slot that is free, or is made free."""
        if len(self._slots) >= SLOTS:
            self.forget(min(self._slots, key=lambda content: self._read(self._slots[content])[1]))
        taken = set(self._slots.values())
        return next(slot for slot in range(SLOTS) if slot not in taken)

    def _read(self, slot: int) -> tuple[bytes, float, float, int, int]:
        found: tuple[bytes, float, float, int, int] = _SLOT.unpack_from(self._table, self._at(slot))
        return found

    @staticmethod
    def _at(slot: int) -> int:
        return _SLOTS_AT + slot * _SLOT.size


def _blank() -> mmap.mmap:
    table = mmap.mmap(-1, SIZE)
    table[: len(MAGIC)] = MAGIC
    return table


def _in_file(path: Path) -> mmap.mmap:
    """The file, whole on the disk before it is mapped: a disk that is full must not end the process later."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        before = os.pread(file, SIZE, 0)
        if len(before) != SIZE or not before.startswith(MAGIC):
            os.ftruncate(file, 0)
            os.pwrite(file, MAGIC.ljust(SIZE, b"\0"), 0)
        return mmap.mmap(file, SIZE)
    finally:
        os.close(file)
