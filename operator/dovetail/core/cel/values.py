"""What expressions compute with: CEL's values, where Python's own types do not do.

bool, int, float, str, bytes, None and list stand for themselves.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, Self

from typing_extensions import override

from dovetail.core.quantity import Quantity
from dovetail.core.semver import Semver

LARGEST_INT: Final = (1 << 63) - 1
SMALLEST_INT: Final = -(1 << 63)
LARGEST_UINT: Final = (1 << 64) - 1


class EvalError(Exception):
    """A run-time error of CEL: `&&`, `||` and the macros built on them may absorb it."""


class NoSuchKey(EvalError):
    """A field, key or index is missing; `path` names what was read, where that is known."""

    def __init__(self, key: object, path: tuple[str, ...] = ()) -> None:
        super().__init__(f"no such key: {key if not isinstance(key, str) else key[:MOST_SHOWN]}")
        self.key = key
        self.path = path


class NoSuchOverload(EvalError):
    """No form of a function takes values of these types."""


class Aborted(Exception):
    """The whole evaluation is over: nothing in CEL absorbs this, so it is no EvalError."""


class CostExceeded(Aborted):
    """The evaluation costs more than is allowed, by Kubernetes or by us."""

    def __init__(self, reason: str = "operation cancelled: actual cost limit exceeded") -> None:
        super().__init__(reason)


MOST_SHOWN: Final = 64


def shown(text: str) -> str:
    """A text as an error quotes it: the beginning is enough, and the whole may be a megabyte."""
    return repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…")


class Unhashable(Aborted):
    """A value was used as a key that cel-go cannot hash, which ends an evaluation there as here."""

    def __init__(self) -> None:
        super().__init__("a value of this type cannot be a key")


class Uint(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class Growing(list[Any]):
    """The list that a loop builds: adding to it changes it, as in cel-go."""

    __slots__ = ()


class Joined(list[Any]):
    """Two lists added: comparing one with an incomparable element is an error, as in cel-go."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be absent; see `NONE`."""

    value: Any = None
    has_value: bool = True


NONE: Final = Optional(None, has_value=False)


@dataclass(frozen=True, slots=True)
class Ip:
    """An IP address (net.IP)."""

    address: IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Cidr:
    """A network, its address not masked (net.CIDR)."""

    address: IPv4Address | IPv6Address
    bits: int


class CelMap:
    """A map; equal numbers of different types are different keys, yet each finds the other."""

    __slots__ = ("entries",)

    def __init__(self, pairs: Iterable[tuple[Any, Any]] = ()) -> None:
        self.entries = {_encode(key): value for key, value in pairs}

    def find(self, key: Any) -> Any:
        """The value at the key, or `MISSING`."""
        if not self.entries:
            return MISSING
        found = self.entries.get(_encode(key), MISSING)
        if found is not MISSING:
            return found
        for other in _equal_numbers(key):
            found = self.entries.get(_encode(other), MISSING)
            if found is not MISSING:
                return found
        return MISSING

    def has(self, key: Any) -> bool:
        """Whether `key in map` holds."""
        return self.find(key) is not MISSING

    def insert(self, key: Any, value: Any) -> None:
        """Add an entry in place; an existing key is an error."""
        if self.find(key) is not MISSING:
            # A key may be a list of lists of lists, too much to be written out.
            said = f" {shown(key)}" if isinstance(key, str) else ""
            raise EvalError(f"insert failed: key{said} already exists")
        self.entries[_encode(key)] = value

    def keys(self) -> Iterator[Any]:
        """The keys, in the order of insertion."""
        for key in self.entries:
            yield key[1] if isinstance(key, tuple) else key

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Keys and values."""
        return zip(self.keys(), self.entries.values(), strict=True)

    def __len__(self) -> int:
        return len(self.entries)


class StringMap(CelMap):
    """A map that only strings are keys of: what a device consists of."""

    __slots__ = ()

    @override
    def find(self, key: Any) -> Any:
        return self.entries.get(key, MISSING) if type(key) is str else MISSING


class IdMap(StringMap):
    """What one domain of a device holds; it knows its name, for the words of an error."""

    __slots__ = ("domain", "of")

    def __init__(self, of: str, domain: str) -> None:
        super().__init__()
        self.of = of
        self.domain = domain


EMPTY_MAP: Final = CelMap()


class DomainMap(StringMap):
    """`device.attributes` and `device.capacity`: a domain that is not there reads as an empty map.

    `in` and the macros see what is there.
    """

    __slots__ = ()

    @override
    def find(self, key: Any) -> Any:
        return self.entries.get(key, EMPTY_MAP) if type(key) is str else EMPTY_MAP

    @override
    def has(self, key: Any) -> bool:
        return type(key) is str and key in self.entries


class Missing:
    """No value; `MISSING` is the only one of it."""

    __slots__ = ()


MISSING: Final = Missing()

UNHASHABLE: Final[set[type]] = {bytes, Semver}
"""Types whose values cel-go can neither key a map by nor look up in one: it is an error to try."""

IDENTICAL: Final[set[type]] = {Quantity}
"""Types whose values are the same key only if they are the same value, as lists and maps are."""

_PLAIN_KEYS = (str, int)


def _encode(key: Any) -> Any:
    """A dictionary key that keeps the types apart: 1, 1u, 1.0 and true are four keys in cel-go."""
    kind = type(key)
    if kind in _PLAIN_KEYS:
        return key
    if kind in UNHASHABLE:
        raise Unhashable
    if isinstance(key, (list, CelMap)) or kind in IDENTICAL:
        return _ByIdentity(key)
    if kind is Optional and key.has_value:
        return _ByIdentity(Optional(key.value))  # equal to no other key, itself included
    return (kind, key)


class _ByIdentity(tuple[str, Any]):
    """A key that equals nothing but itself: cel-go keys lists and maps by their address."""

    __slots__ = ()

    def __new__(cls, value: Any) -> Self:
        return super().__new__(cls, ("", value))

    @override
    def __hash__(self) -> int:
        return id(self[1])

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self[1] is other[1]

    @override
    def __ne__(self, other: object) -> bool:
        return not self == other


def _equal_numbers(key: Any) -> Iterator[Any]:
    kind = type(key)
    if kind is float:
        if math.isfinite(key) and key == int(key):
            whole = int(key)
            if SMALLEST_INT < whole < LARGEST_INT:
                yield whole
            if 0 <= whole <= LARGEST_UINT:
                yield Uint(whole)
    elif kind is int and key >= 0:
        yield Uint(key)
    elif kind is Uint and key <= LARGEST_INT:
        yield int(key)
