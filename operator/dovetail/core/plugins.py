"""Devices that a device plugin of their node offers as well: kubelet may hand them out behind DRA's back."""

from collections.abc import Iterable, Iterator

from dovetail.api.claims import DeviceClass
from dovetail.api.nodes import Node
from dovetail.core.attributes import Mappings
from dovetail.core.cel import Memory, Program
from dovetail.core.dual_mode import Plugged
from dovetail.core.features import Features
from dovetail.core.masks import mask_of
from dovetail.core.plugin_names import offers_devices_of
from dovetail.core.pools import PoolOffer
from dovetail.core.published import OfferedDevice
from dovetail.core.resources import allocatable_of
from dovetail.core.sources import Expressions


def plugin_resources(node: Node) -> frozenset[str]:
    """The extended resources of which the node has any: device plugins offer them.

    What DRA backs is never part of a node's status, and a plugin that was removed leaves zero.
    Raises ValueError for an amount that is no quantity.
    """
    return frozenset(name for name, amount in allocatable_of(node).items() if amount > 0 and "/" in name)


class PluginClasses:
    """The classes that are served under the name of an extended resource (KEP-5004).

    A device plugin that offers the same name stands for devices of the class (allocation-rules 2.14).
    """

    def __init__(self) -> None:
        self._selectors: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._memory = Memory()

    def put(self, device_class: DeviceClass) -> bool:
        """Take in a class; False where nothing changed that counts here."""
        name = device_class.metadata.name
        resource = device_class.spec.extended_resource_name
        if not resource:
            return self.drop(name)
        expressions = tuple(each.cel.expression if each.cel else "" for each in device_class.spec.selectors)
        before = self._selectors.get(name)
        self._selectors[name] = (resource, expressions)
        return before != (resource, expressions)

    def drop(self, name: str) -> bool:
        """Forget a class; False where nothing changed that counts here."""
        return self._selectors.pop(name, None) is not None

    def plugged(self, pool: PoolOffer, resources: Iterable[str], features: Features) -> Iterator[Plugged]:
        """The devices of the pool that are the node's own, and which of these resources they are offered as.

        A driver that is known by its plugin's names is concerned as a whole, else devices of classes are.
        """
        for resource in sorted(resources):
            known = offers_devices_of(resource, pool.key.driver)
            mask = _own(pool) & (-1 if known else self._named(pool, resource, features))
            if mask:
                yield Plugged(pool.key.driver, resource, mask)

    def _named(self, pool: PoolOffer, resource: str, features: Features) -> int:
        """The devices of all classes that have this name."""
        mask = 0
        for name, expressions in self._selectors.values():
            if name == resource:
                programs = _compiled(expressions, features)
                mask |= mask_of(
                    place for place, device in enumerate(pool.devices) if self._is(device, programs)
                )
        return mask

    def _is(self, device: OfferedDevice, programs: tuple[Program, ...] | None) -> bool:
        """Whether all selectors take the device; where one fails, nobody gets it through the class."""
        return programs is not None and all(
            self._memory.matches(program, device.view) is True for program in programs
        )


def _compiled(expressions: tuple[str, ...], features: Features) -> tuple[Program, ...] | None:
    """The selectors of a class; None where it takes nothing, since one of them is wrong."""
    compiler = Expressions(features, Mappings.none())
    programs = tuple(map(compiler.selector, expressions))
    sound = tuple(program for program in programs if isinstance(program, Program))
    return sound if len(sound) == len(programs) else None


def _own(pool: PoolOffer) -> int:
    """The devices that only this node can use: a device plugin offers no others."""
    mask, start = 0, 0
    for published in pool.slices:
        devices = published.content.devices
        if published.reach.node:
            mask |= ((1 << len(devices)) - 1) << start
        elif published.per_device:
            mask |= mask_of(start + place for place, device in enumerate(devices) if device.reach.node)
        start += len(devices)
    return mask & pool.here
