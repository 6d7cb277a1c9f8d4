"""Malformed objects, told to their owners: when they are seen, and by each replica that becomes active."""

from collections.abc import Callable

import structlog

from dovetail.core.world import Problem
from dovetail.services.notices import Notices
from dovetail.services.picture import Change, Json, Key

log = structlog.get_logger(__name__)

MALFORMED = "Malformed"


class Complaints:
    """Remembers what is malformed, so that nothing is forgotten that was seen before the Lease was won."""

    def __init__(self, notices: Notices, *, is_leading: Callable[[], bool]) -> None:
        self._notices = notices
        self._is_leading = is_leading
        self._open: dict[tuple[str, Key], tuple[Problem, Json]] = {}

    def note(self, problem: Problem, body: Json) -> None:
        """An object cannot be read; the others go on."""
        key = "/".join(filter(None, problem.key))
        log.warning("object_malformed", kind=problem.kind, key=key, reason=problem.reason)
        self._open[problem.kind, problem.key] = (problem, body)
        if self._is_leading():
            self._say(problem, body)

    def follow(self, change: Change) -> None:
        """An object changed or went: if it is still malformed, it is noted again."""
        self._open.pop((change.kind.name, change.key), None)

    def repeat(self) -> None:
        """Say everything: this replica has become the active one."""
        for problem, body in self._open.values():
            self._say(problem, body)

    def _say(self, problem: Problem, body: Json) -> None:
        self._notices.say(body, "Warning", MALFORMED, problem.reason)
