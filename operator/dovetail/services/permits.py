"""Which rights are missing and which gates are off: in the log, on /readyz, and for conditions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import structlog

from dovetail.core.restrictions import UNRESTRICTED, WITHOUT_GATE, MissingRight, Restrictions
from dovetail.errors import ClusterError
from dovetail.services.rights import Right

log = structlog.get_logger(__name__)


class Permits:
    """Asks for the rights again and again, so that one that comes late is noticed without a restart.

    `missing` asks the API server which rights are missing; `complain` is told topic and text, for /readyz.
    """

    def __init__(
        self,
        *,
        missing: Callable[[], Awaitable[Iterable[Right]]],
        complain: Callable[[str, str], None],
        seconds: float,
    ) -> None:
        self._missing = missing
        self._complain = complain
        self._seconds = seconds
        self._changed: Callable[[], None] = lambda: None
        self.restrictions = UNRESTRICTED

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever `restrictions` are others."""
        self._changed = listener

    async def check(self) -> None:
        """Ask for every right; raises `ClusterError` where there is no answer."""
        before = self.restrictions.rights
        found = tuple(MissingRight(str(right), right.purpose) for right in await self._missing())
        for missing in found:
            if missing not in before:
                log.error("right_missing", right=missing.right, purpose=missing.purpose)
                self._complain(f"missing right to {missing.right}", f"needed to {missing.purpose}")
        for granted in before:
            if granted not in found:
                log.info("right_granted", right=granted.right)
                self._complain(f"missing right to {granted.right}", "")
        self._restrict(Restrictions(found, self.restrictions.gates))

    def note_gate(self, gate: str, is_off: bool) -> None:
        """A feature gate was found off, and is not relied on; or it is about to be tried again."""
        self._complain(f"feature gate {gate} is off", WITHOUT_GATE if is_off else "")
        gates = {*self.restrictions.gates, gate} if is_off else {*self.restrictions.gates} - {gate}
        self._restrict(Restrictions(self.restrictions.rights, tuple(sorted(gates))))

    async def run(self) -> None:
        """Check for ever, beginning after the first pause."""
        while True:
            await asyncio.sleep(self._seconds)
            try:
                await self.check()
            except ClusterError as error:
                log.warning("rights_not_checked", error=str(error))

    def _restrict(self, restrictions: Restrictions) -> None:
        if restrictions != self.restrictions:
            self.restrictions = restrictions
            self._changed()
