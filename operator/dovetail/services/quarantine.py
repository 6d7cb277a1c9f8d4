"""Keeps a device that two claims hold from a third: a taint rule while anybody holds it (R2)."""

from collections.abc import Callable, Iterable

import structlog

from dovetail.api.kinds import CLAIM, TAINT_RULE
from dovetail.cluster.pen import Pen
from dovetail.core.quarantine import quarantine_rule, quarantined, rule_name
from dovetail.core.values import DeviceKey
from dovetail.errors import Conflict, Forbidden, NotFound, Rejected
from dovetail.services import claims
from dovetail.services.clashes import Clashes, Device
from dovetail.services.desk import Desk
from dovetail.services.metrics import Metrics
from dovetail.services.picture import Change, Json, Key, Picture

log = structlog.get_logger(__name__)

KNOWN_AFTER_SECONDS = 1.0
"""So long after it was written kube-scheduler is taken to know a rule."""


class Quarantine:
    """Writes and deletes the rules, by level: what the picture shows decides."""

    def __init__(
        self,
        *,
        picture: Picture,
        pen: Pen,
        clashes: Clashes,
        metrics: Metrics,
        serves_rules: bool,
        clock: Callable[[], float],
    ) -> None:
        """`clashes` has to follow the picture before this does."""
        self._picture = picture
        self._pen = pen
        self._clashes = clashes
        self._works = serves_rules
        self._clock = clock
        self._since: dict[str, float] = {}
        self._devices: dict[str, Device] = {}
        self.desk = Desk(
            "quarantine", serve=self._settle, urgency=lambda key: (0, "", *key), workers=1, metrics=metrics
        )

    def follow(self, change: Change) -> None:
        """Take in a change of the picture."""
        if not self._works:
            return
        if change.kind is CLAIM:
            self._follow_claim(change)
        elif change.kind is TAINT_RULE:
            self._follow_rule(change)

    def is_known(self, devices: Iterable[Device]) -> bool:
        """Whether kube-scheduler keeps off these devices by now; true as well where that cannot be had."""
        if not self._works:
            return True
        known = self._clock() - KNOWN_AFTER_SECONDS
        return all(self._since.get(rule_name(DeviceKey(*each)), self._clock()) <= known for each in devices)

    def _follow_claim(self, change: Change) -> None:
        before = claims.devices_of(change.before) if change.before else frozenset()
        after = claims.devices_of(change.after) if change.after else frozenset()
        for device in before ^ after:
            if len(self._clashes.holders(device)) > 1 or (device in before and self._since):
                self._mark(device)

    def _follow_rule(self, change: Change) -> None:
        name, rule = change.key[1], change.after or change.before
        device = quarantined(rule) if rule is not None else None
        if device is None:
            return
        if change.after is None:
            self._since.pop(name, None)
        else:
            self._since.setdefault(name, self._clock())
        self._mark((device.driver, device.pool, device.device))

    def _mark(self, device: Device) -> None:
        name = rule_name(DeviceKey(*device))
        self._devices[name] = device
        self.desk.queue.mark(("", name))

    async def _settle(self, key: Key) -> None:
        device, rule = self._devices[key[1]], self._picture.find(TAINT_RULE, key)
        holders = self._clashes.holders(device)
        if len(holders) > 1 and rule is None:
            await self._write(device)
        elif not holders and rule is not None:
            await self._delete(key, rule)
        if not holders:
            self._devices.pop(key[1], None)

    async def _write(self, device: Device) -> None:
        rule = quarantine_rule(DeviceKey(*device))
        try:
            self._picture.see(TAINT_RULE, await self._pen.create(TAINT_RULE, "", rule))
        except Conflict:
            return
        except (Forbidden, Rejected) as error:
            # Without the right a clash is still backed out of, and reported.
            self._works = False
            log.warning("no_quarantine", reason=str(error))
            return
        log.info("device_quarantined", device="/".join(device))

    async def _delete(self, key: Key, rule: Json) -> None:
        try:
            await self._pen.delete(TAINT_RULE, *key, uid=rule["metadata"]["uid"])
        except NotFound:
            return
        log.info("quarantine_lifted", rule=key[1])
