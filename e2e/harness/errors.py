"""What can go wrong while real programs are started and watched.

HarnessError
├── ApiError          the API server refused a request
├── ProgramEnded      a program ended before it was ready
└── NotSeen           what was waited for did not happen in time
"""

from __future__ import annotations

from typing import Any


class HarnessError(Exception):
    """Everything that the harness raises of its own."""


class ApiError(HarnessError):
    """The API server answered with an error; `status` is the HTTP code, `reason` Kubernetes' word for it."""

    def __init__(self, method: str, path: str, status: int, body: Any) -> None:
        details = body if isinstance(body, dict) else {"message": str(body)}
        super().__init__(
            f"{method} {path}: {status} {details.get('reason', '')}: {details.get('message', '')}"
        )
        self.status = status
        self.reason: str = details.get("reason", "")
        self.body = details


class ProgramEnded(HarnessError):
    """A program ended although it was needed; the message has the end of its log."""

    def __init__(self, name: str, code: int | None, log: str) -> None:
        super().__init__(f"{name} ended with {code}:\n{log}")


class NotSeen(HarnessError):
    """Something did not happen in time; the message says what was seen last."""

    def __init__(self, what: str, seconds: float, last: str) -> None:
        super().__init__(f"{what} not seen within {seconds:g} s; last seen: {last}")
