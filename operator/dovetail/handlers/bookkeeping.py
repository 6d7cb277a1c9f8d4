"""What Kopf notes about objects between two events: nothing, since only raw events are followed.

Kopf's own storages would write nothing either, but would copy every object twice for each of its events.
"""

from collections.abc import Iterable
from typing import Any

import kopf
from typing_extensions import override

NO_ESSENCE = kopf.BodyEssence()


class NoDiffBase(kopf.DiffBaseStorage):
    """Knows no earlier state of any object."""

    @override
    def build(self, *, body: kopf.Body, extra_fields: Iterable[Any] | None = None) -> kopf.BodyEssence:
        """Every object looks the same."""
        return NO_ESSENCE

    @override
    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence:
        """It has always looked so."""
        return NO_ESSENCE

    @override
    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Keep nothing."""


class NoProgress(kopf.ProgressStorage):
    """Knows no handler that would have to be called again."""

    @override
    def fetch(self, *, key: Any, body: kopf.Body) -> None:
        """Nothing was kept."""
        return

    @override
    def store(self, *, key: Any, record: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """Keep nothing."""

    @override
    def purge(self, *, key: Any, body: kopf.Body, patch: kopf.Patch) -> None:
        """Nothing is there to be removed."""

    @override
    def touch(self, *, body: kopf.Body, patch: kopf.Patch, value: str | None) -> None:
        """Nobody waits to be woken."""

    @override
    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """There is nothing of ours in it."""
        return essence
