"""Devices that two claims hold at once: an index over the claims of the picture (R2, R-A15)."""

from collections import defaultdict
from collections.abc import Callable

from dovetail.api.kinds import CLAIM
from dovetail.services import claims
from dovetail.services.picture import Change, Key

Device = tuple[str, str, str]
"""Driver, pool and name."""


class Clashes:
    """Follows the picture; answers who else holds a device that only one claim may hold."""

    def __init__(self) -> None:
        self._listener: Callable[[Key, frozenset[Key]], None] = lambda *_: None
        self._holders: defaultdict[Device, set[Key]] = defaultdict(set)

    def on_clash(self, listener: Callable[[Key, frozenset[Key]], None]) -> None:
        """Call `listener` with a claim that has just taken devices, and the claims that hold one already."""
        self._listener = listener

    def follow(self, change: Change) -> None:
        """Take in a change of the picture."""
        if change.kind is not CLAIM:
            return
        before = claims.devices_of(change.before) if change.before else frozenset()
        after = claims.devices_of(change.after) if change.after else frozenset()
        for device in before - after:
            self._holders[device].discard(change.key)
            if not self._holders[device]:
                del self._holders[device]
        for device in after - before:
            self._holders[device].add(change.key)
        if taken := self.others(change.key, after - before):
            self._listener(change.key, frozenset().union(*taken.values()))

    def holders(self, device: Device) -> frozenset[Key]:
        """The claims that hold a device for themselves alone."""
        return frozenset(self._holders.get(device, ()))

    def held_twice(self) -> tuple[Device, ...]:
        """The devices that more than one claim holds for itself alone."""
        return tuple(device for device, holders in self._holders.items() if len(holders) > 1)

    def others(self, key: Key, devices: frozenset[Device]) -> dict[Device, frozenset[Key]]:
        """The devices that other claims hold too, with these claims."""
        return {
            device: frozenset(self._holders[device] - {key})
            for device in devices
            if self._holders.get(device, set()) - {key}
        }
