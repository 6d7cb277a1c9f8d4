"""The table of functions: what the checker allows is what the run dispatches on."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from dovetail.core.cel.kinds import Type
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.times import Duration, Timestamp
from dovetail.core.cel.values import (
    CelMap,
    Cidr,
    DomainMap,
    Growing,
    IdMap,
    Ip,
    Joined,
    NoSuchOverload,
    Optional,
    StringMap,
    TypeValue,
    Uint,
)
from dovetail.core.quantity import Quantity
from dovetail.core.semver import Semver

Implementation = Callable[..., Any]
"""What a form of a function does with values; one that `spends` is given the meter before them."""

CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "bytes": (bytes,),
    "double": (float,),
    "google.protobuf.Duration": (Duration,),
    "google.protobuf.Timestamp": (Timestamp,),
    "int": (int,),
    "kubernetes.Quantity": (Quantity,),
    "kubernetes.Semver": (Semver,),
    "list": (list, Growing, Joined),
    "map": (CelMap, StringMap, DomainMap, IdMap),
    "net.CIDR": (Cidr,),
    "net.IP": (Ip,),
    "null_type": (type(None),),
    "optional_type": (Optional,),
    "string": (str,),
    "type": (TypeValue,),
    "uint": (Uint,),
}
"""The Python classes of CEL's types, by name; libraries add those of their own types."""

TYPE_NAMES: Final[dict[type, str]] = {kind: name for name, kinds in CLASSES.items() for kind in kinds}


def represent(name: str, *kinds: type) -> None:
    """Say which Python classes hold the values of a CEL type."""
    CLASSES[name] = kinds
    TYPE_NAMES.update(dict.fromkeys(kinds, name))


def type_name(value: Any) -> str:
    """The name of a value's CEL type."""
    return TYPE_NAMES.get(type(value), type(value).__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    """One form of a function: its types, and what it does with values of these types."""

    id: str
    function: str
    params: tuple[Type, ...]
    result: Type
    run: Implementation
    is_member: bool = False
    checked: bool = True
    """False: the checker does not offer it, and only values of unknown type get there."""
    guarded: bool = True
    """False: it takes any values at run time, and judges them itself."""
    spends: bool = False
    """Its time, or what it builds, depends on the size of the values: `run` takes the meter first."""

    def with_meter(self) -> Implementation:
        """`run` with the meter as first argument, whether it spends or not."""
        if self.spends:
            return self.run
        plain = self.run
        return lambda meter, *values: plain(*values)

    def takes(self, values: tuple[Any, ...]) -> bool:
        """Whether these values may be passed: lists are judged by their first element, as in cel-go."""
        if len(values) != len(self.params):
            return False
        return not self.guarded or all(map(matches, self.params, values))

    @property
    def looks_inside(self) -> bool:
        """Whether the class of a value does not suffice to tell that it may be passed."""
        return self.guarded and any(_looks_inside(param) for param in self.params)


def _looks_inside(param: Type) -> bool:
    return param.kind in ("list", "map") and any(part.kind not in _ANYTHING for part in param.params)


_ANYTHING: Final = frozenset(("dyn", "any", "param"))


def matches(param: Type, value: Any) -> bool:
    """Whether a value may be passed for a parameter of this type."""
    if param.kind in _ANYTHING:
        return True
    if type(value) not in CLASSES[param.name]:
        return False
    if param.kind == "list" and value:
        return matches(param.params[0], value[0])
    if param.kind == "map" and len(value):
        key, item = next(iter(value.items()))
        return matches(param.params[0], key) and matches(param.params[1], item)
    return True


@dataclass(slots=True)
class Function:
    """A function by name, with all its forms in the order in which they are tried."""

    name: str
    overloads: list[Overload] = field(default_factory=list)

    def chosen(self, ids: Iterable[str]) -> "Dispatch":
        """The forms that the checker left over, and those that only the run reaches."""
        wanted = set(ids)
        return Dispatch(self.name, [o for o in self.overloads if o.id in wanted or not o.checked])


class Dispatch:
    """Finds the form of a function for the values at hand, and remembers it by their classes."""

    __slots__ = ("_overloads", "known", "name", "spends")

    def __init__(self, name: str, overloads: list[Overload]) -> None:
        self.name = name
        self.spends = any(overload.spends for overload in overloads)
        """Whether what `find` gives takes the meter before the values."""
        self._overloads = overloads
        self.known: dict[tuple[type, ...], Implementation] = {}

    def apply(self, meter: Meter, values: tuple[Any, ...]) -> Any:
        """Apply the form that takes these values; raises NoSuchOverload, and what the form raises."""
        run = self.known.get(tuple(map(type, values))) or self.find(values)
        return run(meter, *values) if self.spends else run(*values)

    def find(self, values: tuple[Any, ...]) -> Implementation:
        """What to call; raises NoSuchOverload."""
        for overload in self._overloads:
            if overload.takes(values):
                run = overload.with_meter() if self.spends else overload.run
                if not any(other.looks_inside for other in self._overloads):
                    self.known[tuple(map(type, values))] = run
                return run
        names = ", ".join(map(type_name, values))
        raise NoSuchOverload(f"no such overload: {self.name}({names})")


@dataclass(slots=True)
class Library:
    """A named set of overloads; the libraries together are the table."""

    name: str
    overloads: list[Overload] = field(default_factory=list)

    def add(
        self,
        name: str,
        overload: str,
        params: tuple[Type, ...],
        result: Type,
        run: Implementation,
        *,
        checked: bool = True,
        spends: bool = False,
    ) -> None:
        """Enter a global function, or an operator."""
        self.overloads.append(Overload(overload, name, params, result, run, checked=checked, spends=spends))

    def method(
        self,
        name: str,
        overload: str,
        params: tuple[Type, ...],
        result: Type,
        run: Implementation,
        *,
        guarded: bool = True,
        spends: bool = False,
    ) -> None:
        """Enter a function that is called on its first parameter."""
        self.overloads.append(
            Overload(overload, name, params, result, run, is_member=True, guarded=guarded, spends=spends)
        )
