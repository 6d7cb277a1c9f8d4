"""kube-scheduler's own allocator and CEL environment, asked by JSON lines."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Self

from e2e import build
from e2e.harness.errors import HarnessError

Answer = dict[str, Any]


class OracleFault(HarnessError):
    """The oracle could not read or serve a request, or ended."""


class Oracle:
    """The program `oracle` or `node-oracle` of `e2e/controlplane`; its Go source describes the questions.

    Threads may share one; each call waits for the calls before it.
    `threads` limits the processors that Go uses: 1 for fair comparisons.
    Use it as a context manager, or call `close`.
    """

    def __init__(self, *, program: str = "oracle", threads: int | None = None) -> None:
        groups = [group for group in build.GROUPS if group.name == program]
        env = dict(os.environ) | ({"GOMAXPROCS": str(threads)} if threads else {})
        self._process = subprocess.Popen(
            [build.build(groups)[program]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        self._lock = threading.Lock()
        self._ids = itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        self._process.wait()

    def ask(self, kind: str, request: Mapping[str, Any] | None = None, **fields: Any) -> Answer:
        """Answer one request; raises `OracleFault` where the oracle could not serve it."""
        answer = self.ask_all(kind, [{**(request or {}), **fields}])[0]
        if "fault" in answer:
            raise OracleFault(answer["fault"])
        return answer

    def ask_all(self, kind: str, requests: Iterable[Mapping[str, Any]]) -> list[Answer]:
        """Answer many requests, in their order; one that could not be served has the key `fault`."""
        with self._lock:
            lines = [
                json.dumps({**request, "id": next(self._ids), "kind": kind}) + "\n" for request in requests
            ]
            writer = threading.Thread(target=self._write, args=(lines,), daemon=True)
            writer.start()
            answers = [self._read() for _ in lines]
            writer.join()
        for answer in answers:
            del answer["id"]
        return answers

    def _write(self, lines: list[str]) -> None:
        # In a thread of its own: the oracle answers while it reads, and pipes are short.
        if self._process.stdin:
            self._process.stdin.writelines(lines)
            self._process.stdin.flush()

    def _read(self) -> Answer:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise OracleFault(f"the oracle ended with {self._process.poll()}")
        answer: Answer = json.loads(line)
        return answer
