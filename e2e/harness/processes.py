"""Programs that end when their tests end, whatever ends the tests."""

from __future__ import annotations

import asyncio
import atexit
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from e2e.harness.errors import NotSeen, ProgramEnded
from e2e.harness.usage import processes_of

# Asks Linux to kill the program when its parent dies (PR_SET_PDEATHSIG is 1), then becomes the program;
# a parent that died before that is noticed.
# A function run between fork and exec would do the same, but may hang in a process with threads.
_DIE_WITH_PARENT = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or os._exit(1); os.execvp(sys.argv[2], sys.argv[2:])"
)
_MORTAL = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT] if sys.platform == "linux" else []
_POLL_SECONDS = 0.05
_LOG_TAIL_BYTES = 4000

_running: set[Program] = set()
_handed_out: set[int] = set()


@dataclass(eq=False)
class Program:
    """A program in a process group of its own, its output in a file.

    It may be started again after it ended. With `linger` it outlives this process;
    otherwise it is killed when this process ends, even when this process is killed.
    A listener is told each line of output, in a thread of its own, and None at the end of each run,
    before the end is told to whoever waits for it: what comes later is of the next run.
    """

    name: str
    command: Sequence[str | Path]
    log: Path
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    linger: bool = False
    listener: Callable[[bytes | None], None] | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _reader: threading.Thread | None = field(default=None, init=False)

    @property
    def pid(self) -> int:
        """The process id; the program must have been started."""
        if self._process is None:
            raise ProgramEnded(self.name, None, "never started")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the program has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last run, negative for a signal; None while it runs."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Start the program; what it prints is appended to its log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._wrapper(), *(str(part) for part in self.command)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if self.listener else output,
                stderr=subprocess.STDOUT,
                env=None if self.env is None else dict(self.env),
                cwd=self.cwd,
                start_new_session=True,
            )
        if self.listener:
            self._reader = threading.Thread(
                target=self._read, args=(self._process, self.listener), daemon=True
            )
            self._reader.start()
        if not self.linger:
            _running.add(self)

    def _read(self, process: subprocess.Popen[bytes], listener: Callable[[bytes | None], None]) -> None:
        if process.stdout is None:
            return
        with process.stdout as output, self.log.open("ab", buffering=0) as log:
            for line in output:
                log.write(line)
                listener(line)
        listener(None)

    def _wrapper(self) -> list[str]:
        return [*_MORTAL, str(os.getpid())] if _MORTAL and not self.linger else []

    def signal(self, number: int) -> None:
        """Send a signal to the program and its children; nothing happens when it has ended."""
        if self._process is not None and self.running:
            os.killpg(self._process.pid, number)

    def pause(self) -> None:
        """Freeze the program (SIGSTOP)."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Wake a frozen program (SIGCONT)."""
        self.signal(signal.SIGCONT)

    async def kill(self) -> None:
        """End the program at once (SIGKILL) and wait until it is gone, with all its children."""
        self.signal(signal.SIGKILL)
        await self.ended(within=10)
        deadline = time.monotonic() + 10
        while self._process is not None and processes_of(self._process.pid):
            if time.monotonic() > deadline:
                raise NotSeen(f"end of the children of {self.name}", 10, "still running")
            await asyncio.sleep(_POLL_SECONDS)

    async def stop(self, *, within: float = 10) -> float:
        """Ask the program, and none of its children, to end (SIGTERM); return the seconds it took.

        It is up to the program to pass the signal on, as it is in a container.

        After `within` seconds it is killed and `NotSeen` raised.
        """
        start = time.monotonic()
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGTERM)
        try:
            await self.ended(within=within)
        except NotSeen:
            await self.kill()
            raise
        return time.monotonic() - start

    async def ended(self, *, within: float) -> int:
        """Wait until the program has ended and its output is read; return its exit code."""
        if self._process is None:
            return 0
        try:
            code = await asyncio.to_thread(self._process.wait, within)
        except subprocess.TimeoutExpired:
            raise NotSeen(f"end of {self.name}", within, "still running") from None
        _running.discard(self)
        if self._reader is not None:
            # Children may hold the pipe for a moment longer than the program itself.
            await asyncio.to_thread(self._reader.join, within)
            if self._reader.is_alive():
                raise NotSeen(f"end of the output of {self.name}", within, "a child still has it open")
        return code

    def end_now(self) -> None:
        """Kill the program without waiting in an event loop: for exits."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        _running.discard(self)

    def tail(self) -> str:
        """The end of the log."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as text:
            text.seek(max(0, self.log.stat().st_size - _LOG_TAIL_BYTES))
            return text.read().decode(errors="replace")

    async def ready(self, probe: Callable[[], bool], *, within: float = 60) -> None:
        """Wait until `probe` (which may block for a moment) says yes.

        A probe that raises OSError counts as no; `ProgramEnded` tells of a program that ended meanwhile.
        """
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            if not self.running:
                raise ProgramEnded(self.name, self.exit_code, self.tail())
            try:
                if await asyncio.to_thread(probe):
                    return
            except OSError:
                pass
            await asyncio.sleep(_POLL_SECONDS)
        raise NotSeen(f"readiness of {self.name}", within, self.tail())


@atexit.register
def end_all() -> None:
    """Kill every program that was started here and still runs."""
    for program in list(_running):
        program.end_now()


def free_port() -> int:
    """A loopback port that nobody listens on, outside the range that the kernel gives to clients.

    A server may therefore be stopped and started on its port again: no connection takes it meanwhile.
    """
    for _ in range(1000):
        port = random.randint(20_000, 32_000)
        if port in _handed_out:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _handed_out.add(port)
        return port
    raise OSError("no free port on the loopback")
