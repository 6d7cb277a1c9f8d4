"""A device as expressions read it: values made ready when first asked for, and kept."""

from functools import lru_cache
from itertools import count
from typing import Any, Final

from typing_extensions import override

from dovetail.core.cel.values import MISSING, DomainMap, IdMap, StringMap
from dovetail.core.cel.verdicts import Failure, FailureKind
from dovetail.core.devices import DeviceView
from dovetail.core.semver import Semver
from dovetail.core.values import AttributeValue, Kind, Unusable

MAX_KNOWN: Final = 500_000
"""Different values that are told apart by number; beyond, numbering starts afresh."""


class View:
    """Everything that an expression can see of one device."""

    __slots__ = ("_device", "_roots", "attributes", "broken", "marks")

    def __init__(self, device: DeviceView) -> None:
        self._device = device
        self._roots: dict[bool, StringMap] = {}
        self.attributes = _Attributes(device)
        self.marks = _Marks(device)
        self.broken = _fault(device)

    @property
    def driver(self) -> str:
        """`device.driver`."""
        return self._device.key.driver

    @property
    def name(self) -> str:
        """`device.name`."""
        return self._device.key.device

    @property
    def pool(self) -> str:
        """`device.pool`."""
        return self._device.key.pool

    @property
    def allowMultipleAllocations(self) -> bool:  # noqa: N802 - the name in expressions
        """`device.allowMultipleAllocations`."""
        return self._device.allow_multiple_allocations

    @property
    def capacity(self) -> Any:
        """Capacities by qualified name."""
        return self._device.capacity

    def root(self, *, own: bool) -> StringMap:
        """The variable `device` itself, as maps within maps, keys in alphabetical order."""
        known = self._roots.get(own)
        if known is None:
            device = self._device
            known = StringMap()
            known.entries = {
                "driver": self.driver,
                "allowMultipleAllocations": self.allowMultipleAllocations,
                "attributes": _domains("attributes", sorted(device.attributes), self.attributes),
                "capacity": _domains("capacity", sorted(device.capacity), device.capacity),
            }
            if own:
                known.entries |= {"name": self.name, "pool": self.pool}
            self._roots[own] = known
        return known


def _domains(of: str, names: list[str], values: Any) -> DomainMap:
    domains = DomainMap()
    for name in names:
        domain, _, ident = name.partition("/")
        inner = domains.entries.setdefault(domain, IdMap(of, domain))
        inner.entries[ident] = values[name]
    return domains


class _Attributes(dict[str, Any]):
    """Values of attributes by qualified name; `MISSING` where the device has none."""

    __slots__ = ("_device",)

    def __init__(self, device: DeviceView) -> None:
        super().__init__()
        self._device = device

    def __missing__(self, name: str) -> Any:
        attribute = self._device.attributes.get(name)
        value = MISSING if attribute is None else _native(attribute)
        self[name] = value
        return value


def _native(attribute: AttributeValue | Unusable) -> Any:
    if isinstance(attribute, Unusable):
        return MISSING
    values = [_version(str(value)) for value in attribute.values] if attribute.kind is Kind.VERSION else None
    if attribute.is_list:
        return list(attribute.values) if values is None else values
    return attribute.values[0] if values is None else values[0]


@lru_cache(maxsize=4096)
def _version(text: str) -> Semver:
    return Semver.parse(text)


def _fault(device: DeviceView) -> Failure | None:
    """Why nothing can be evaluated on the device: an attribute without a usable value."""
    for name, attribute in device.attributes.items():
        if isinstance(attribute, Unusable):
            return _unusable(name, "unsupported attribute value")
        if attribute.kind is Kind.VERSION:
            try:
                _native(attribute)
            except ValueError as error:
                return _unusable(name, f"parse semantic version: {error}")
    return None


def _unusable(name: str, reason: str) -> Failure:
    domain, _, ident = name.partition("/")
    return Failure(f"attribute {name}: {reason}", FailureKind.UNUSABLE, domain, ident)


class _Marks(dict[str, int]):
    """A number for each part of the device that an expression may read: equal parts, equal numbers.

    The names are those of `Program.reads`; a missing part has the number 0.
    """

    __slots__ = ("_device",)

    def __init__(self, device: DeviceView) -> None:
        super().__init__()
        self._device = device

    def __missing__(self, name: str) -> int:
        content = _content(self._device, name)
        mark = 0 if content is None else _NUMBERS[content]
        self[name] = mark
        return mark


def _content(device: DeviceView, name: str) -> Any:
    """What a part of the device holds, in a form that can be hashed."""
    if name == "*":
        parts = (_attribute(device, key) for key in sorted(device.attributes))
        return (device.key, device.allow_multiple_allocations, *parts, *_capacities(device, ""))
    if name.endswith("/*"):
        prefix = name[:-1]
        parts = (_attribute(device, key) for key in sorted(device.attributes) if key.startswith(prefix))
        return ("domain", prefix, *parts)
    if name.startswith("capacity:"):
        return _capacity(device, name.removeprefix("capacity:"))
    if name.startswith("device:"):
        view = prepared(device)
        return (name, getattr(view, name.removeprefix("device:")))
    return _attribute(device, name)[1:] if name in device.attributes else None


def _attribute(device: DeviceView, name: str) -> tuple[Any, ...]:
    attribute = device.attributes[name]
    if isinstance(attribute, Unusable):
        return (name, None)
    return (name, attribute.kind, attribute.values, attribute.is_list)


def _capacity(device: DeviceView, name: str) -> Any:
    if name.endswith("/*"):
        return ("capacity", name, *_capacities(device, name[:-1]))
    amount = device.capacity.get(name)
    return (
        None if amount is None else ("capacity", amount.unscaled, amount.scale, amount.format, amount.small)
    )


def _capacities(device: DeviceView, prefix: str) -> list[Any]:
    return [(key, _capacity(device, key)) for key in sorted(device.capacity) if key.startswith(prefix)]


class _Numbers(dict[Any, int]):
    """Numbers contents as they come; a number is never given twice."""

    def __init__(self) -> None:
        super().__init__()
        self._next = count(1)

    @override
    def __getitem__(self, content: Any) -> int:
        known = self.get(content)
        if known is None:
            if len(self) >= MAX_KNOWN:
                self.clear()
            known = self.setdefault(content, next(self._next))
        return known


_NUMBERS: Final = _Numbers()


def prepared(device: DeviceView) -> View:
    """The view of a device, made on first use and kept with the device."""
    view: View | None = device.prepared
    if view is None:
        view = View(device)
        object.__setattr__(device, "prepared", view)
    return view
