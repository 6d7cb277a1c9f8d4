"""A device that turns up in a second claim: the gated pod looks again at once, others are only told (R2)."""

from collections.abc import Callable, Iterator

import structlog

from dovetail.api.kinds import CLAIM, POD
from dovetail.core.wording import claims_of as named_claims
from dovetail.services import claims
from dovetail.services.consumers import Consumers
from dovetail.services.gates import is_gated
from dovetail.services.notices import Notices
from dovetail.services.picture import Json, Key, Picture, key_of

log = structlog.get_logger(__name__)


class ClashReports:
    """Tells those who have to do with a clash; the audit goes on saying it for as long as it lasts."""

    def __init__(
        self,
        *,
        picture: Picture,
        consumers: Consumers,
        notices: Notices,
        look_again: Callable[[Key], None],
        is_leading: Callable[[], bool],
    ) -> None:
        self._picture = picture
        self._consumers = consumers
        self._notices = notices
        self._look_again = look_again
        self._is_leading = is_leading

    def report(self, claim: Key, others: frozenset[Key]) -> None:
        """A claim was seen with a device that the others hold too."""
        if not self._is_leading():
            return
        for key in (claim, *sorted(others)):
            body = self._picture.find(CLAIM, key)
            if body is None or not claims.is_written_by_us(body):
                continue
            rivals = sorted({claim, *others} - {key})
            for pod in self._pods_of(body):
                if is_gated(pod):
                    self._look_again(key_of(pod))
                else:
                    sentence = f"a device of claim {key[1]} is in {named_claims(rivals, key[0])} as well"
                    self._notices.say(pod, "Warning", "DeviceClash", sentence)
                    names = ", ".join(map("/".join, rivals))
                    log.warning("device_clash", claim="/".join(key), rivals=names, gated=False)

    def _pods_of(self, claim: Json) -> Iterator[Json]:
        for key in sorted(self._consumers.with_uids(claims.consumers(claim))):
            pod = self._picture.find(POD, key)
            if pod is not None:
                yield pod
