"""Which of the kinds that a cluster may lack it serves now: they come and go while Dovetail runs."""

from collections.abc import Callable

import structlog

from dovetail.api.kinds import OPTIONAL, Kind

log = structlog.get_logger(__name__)


class Served:
    """What was found out at the start, and by each complete list since.

    `complain` is told topic and text, for /readyz: a kind that was served before, and is not any more.
    """

    def __init__(self, plurals: frozenset[str], *, complain: Callable[[str, str], None]) -> None:
        self.plurals = plurals
        """Of the optional kinds that are served now."""
        self._complain = complain
        self._changed: Callable[[], None] = lambda: None
        for kind in OPTIONAL:
            if kind.plural not in plurals:
                log.info("kind_not_served", kind=kind.resource, version=kind.version)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a kind has come or gone."""
        self._changed = listener

    def serves(self, kind: Kind) -> bool:
        """Whether the cluster serves an optional kind now."""
        return kind.plural in self.plurals

    def note(self, kind: Kind, is_served: bool) -> None:
        """A complete list was answered, or there is no such kind; of other kinds nothing is noted."""
        if kind not in OPTIONAL or is_served == self.serves(kind):
            return
        self.plurals = self.plurals | {kind.plural} if is_served else self.plurals - {kind.plural}
        text = "" if is_served else f"it was; every {kind.name} counts as absent until it is served again"
        self._complain(f"{kind.resource} is not served in {kind.version}", text)
        if is_served:
            log.info("kind_served", kind=kind.resource, version=kind.version)
        else:
            log.warning("kind_not_served", kind=kind.resource, version=kind.version)
        self._changed()
