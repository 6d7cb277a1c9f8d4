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

REFUSED_SECONDS = 60.0
"""A rule that the API server refuses is sent again after this time: rights and policies change."""


class Quarantine:
    """Writes and deletes the rules, by level: what the picture shows decides."""

    def __init__(
        self,
        *,
        picture: Picture,
        pen: Pen,
        clashes: Clashes,
        metrics: Metrics,
        serves_rules: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        """`clashes` has to follow the picture before this does; `serves_rules`: whether the cluster does."""
        self._picture = picture
        self._pen = pen
        self._clashes = clashes
        self._serves_rules = serves_rules
        self._clock = clock
        self._since: dict[str, float] = {}
        self._devices: dict[str, Device] = {}
        """By rule, every device that has one or may need one."""
        self._refused: dict[str, str] = {}
        """By rule, what the API server said when it was last sent in vain."""
        self.desk = Desk(
            "quarantine", serve=self._settle, urgency=lambda key: (0, "", *key), workers=1, metrics=metrics
        )

    def follow(self, change: Change) -> None:
        """Take in a change of the picture."""
        if change.kind is CLAIM:
            self._follow_claim(change)
        elif change.kind is TAINT_RULE:
            self._follow_rule(change)

    def look_again(self) -> None:
        """Rights may have come, or the cluster serves rules now: look at every device that is held twice."""
        for device in self._clashes.held_twice():
            self._mark(device)

    def is_known(self, devices: Iterable[Device]) -> bool:
        """Whether kube-scheduler keeps off these devices by now; true as well where that cannot be had."""
        return all(self._is_known(rule_name(DeviceKey(*each))) for each in devices)

    def _is_known(self, rule: str) -> bool:
        if rule in self._refused or not self._serves_rules():
            return True
        return self._since.get(rule, self._clock()) <= self._clock() - KNOWN_AFTER_SECONDS

    def _follow_claim(self, change: Change) -> None:
        before = claims.devices_of(change.before) if change.before else frozenset()
        after = claims.devices_of(change.after) if change.after else frozenset()
        for device in before ^ after:
            if len(self._clashes.holders(device)) > 1 or (device in before and self._is_concerned(device)):
                self._mark(device)

    def _is_concerned(self, device: Device) -> bool:
        return bool(self._devices) and rule_name(DeviceKey(*device)) in self._devices

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
        name = key[1]
        device, rule = self._devices.get(name), self._picture.find(TAINT_RULE, key)
        if device is None:
            return
        if self._serves_rules():
            holders = self._clashes.holders(device)
            if len(holders) > 1 and rule is None:
                await self._write(key, device)
            elif not holders and rule is not None:
                await self._delete(key, rule)
        # The picture may be another one by now.
        if not self._clashes.holders(device) and self._picture.find(TAINT_RULE, key) is None:
            self._devices.pop(name, None)
            self._refused.pop(name, None)

    async def _write(self, key: Key, device: Device) -> None:
        rule = quarantine_rule(DeviceKey(*device))
        try:
            self._picture.see(TAINT_RULE, await self._pen.create(TAINT_RULE, "", rule))
        except Conflict:
            return
        except (Forbidden, Rejected) as error:
            # Without the right a clash is still backed out of, and reported.
            if self._refused.get(key[1]) != str(error):
                log.warning("no_quarantine", device="/".join(device), reason=str(error))
            self._refused[key[1]] = str(error)
            self.desk.queue.mark_later(key, REFUSED_SECONDS)
            return
        self._refused.pop(key[1], None)
        log.info("device_quarantined", device="/".join(device))

    async def _delete(self, key: Key, rule: Json) -> None:
        try:
            await self._pen.delete(TAINT_RULE, *key, uid=rule["metadata"]["uid"])
        except NotFound:
            return
        log.info("quarantine_lifted", rule=key[1])
