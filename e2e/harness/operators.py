"""The operator as its own process, with its log as events."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from e2e.harness.errors import NotSeen, ProgramEnded
from e2e.harness.objects import ROOT
from e2e.harness.processes import Program

READY = "operator_ready"


class Operator:
    """`python -m dovetail run` with a kubeconfig; it can be killed, stopped, frozen and started again.

    Settings are given by their names, as `claim_generation="always"`.
    `settings` are kept as they were given.
    `events` are its log lines as JSON, over all its runs; a line that is not JSON is kept as `{"text": …}`.
    """

    def __init__(
        self,
        name: str,
        kubeconfig: Path,
        log: Path,
        *,
        settings: Mapping[str, object],
        arguments: tuple[str, ...] = ("run",),
        command: tuple[str, ...] = (sys.executable, "-m", "dovetail"),
    ) -> None:
        self.settings = dict(settings)
        own = {f"DOVETAIL_{key.upper()}": _text(value) for key, value in settings.items()}
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("DOVETAIL_")}
        env = {**inherited, "PYTHONUNBUFFERED": "1", **own, "KUBECONFIG": str(kubeconfig)}
        self.program = Program(name, (*command, *arguments), log, env=env, cwd=ROOT, listener=self._listen)
        self.events: list[dict[str, Any]] = []
        self._arrived = asyncio.Event()
        self._over = False
        self._loop = asyncio.get_running_loop()

    async def start(self, *, within: float = 120) -> None:
        """Start it and wait until it says that it is ready."""
        seen = len(self.events)
        self._over = False
        self.program.start()
        await self.event(READY, after=seen, within=within)

    async def kill(self) -> None:
        """End it at once, as a crash does (SIGKILL)."""
        await self.program.kill()

    async def stop(self, *, within: float = 5) -> float:
        """Ask it to end (SIGTERM); return the seconds it took. Longer than `within` is an error."""
        return await self.program.stop(within=within)

    def freeze(self) -> None:
        """Stop all its threads (SIGSTOP) until `wake`."""
        self.program.pause()

    def wake(self) -> None:
        """Let a frozen operator go on (SIGCONT)."""
        self.program.resume()

    async def event(
        self,
        name: str,
        predicate: Callable[[dict[str, Any]], bool] = lambda _: True,
        *,
        after: int = 0,
        within: float = 30,
    ) -> dict[str, Any]:
        """Wait for a log event by name, from the `after`th event on; return it."""
        try:
            async with asyncio.timeout(within):
                while True:
                    # Cleared first: an event that arrives while the list is read is not missed.
                    self._arrived.clear()
                    for entry in self.events[after:]:
                        if entry.get("event") == name and predicate(entry):
                            return entry
                    if self._over:
                        raise ProgramEnded(f"{self.program.name}, waited on for {name},", *self._end())
                    await self._arrived.wait()
        except TimeoutError:
            raise NotSeen(f"event {name}", within, self.program.tail()) from None

    def _end(self) -> tuple[int | None, str]:
        return self.program.exit_code, self.program.tail()

    def _listen(self, line: bytes | None) -> None:
        """Take one line of output, in the thread that reads it; None is its end."""
        if line is None:
            self._over = True
        else:
            self.events.append(_event_of(line))
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._arrived.set)


def _event_of(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    return entry if isinstance(entry, dict) else {"text": line.decode(errors="replace").rstrip()}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
