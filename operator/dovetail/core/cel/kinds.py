"""The types that the checker knows, as cel-go has them."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from typing_extensions import override

from dovetail.core.cel.effort import TooLarge

MAX_SIZE: Final = 1_000
"""Parts of a type, each counted as often as it stands there: `{v: v}`, again and again, doubles them."""


@dataclass(frozen=True)
class Type:
    """A static type. `kind` is the family; opaque and struct types differ by `name`.

    `nullable` marks the wrapper types of protobuf, which take null besides their own values.
    Whatever walks through a type walks through `size` parts: a larger one than `MAX_SIZE` is never made,
    TooLarge is raised instead.
    """

    kind: str
    name: str
    params: tuple["Type", ...] = ()
    nullable: bool = field(default=False, compare=False)
    size: int = field(default=1, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.params:
            size = 1 + sum(param.size for param in self.params)
            if size > MAX_SIZE:
                raise TooLarge(f"it is too large: the type of a part has more than {MAX_SIZE} parts")
            object.__setattr__(self, "size", size)

    @override
    def __str__(self) -> str:
        name = f"wrapper({self.name})" if self.nullable else self.name
        if not self.params:
            return name
        return f"{name}({', '.join(map(str, self.params))})"

    @cached_property
    def is_dyn(self) -> bool:
        """Takes any value, and tells nothing of it before the run."""
        return self.kind in ("dyn", "any")

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names of the type parameters inside."""
        if self.kind == "param":
            return frozenset((self.name,))
        return frozenset().union(*(param.variables for param in self.params))


DYN: Final = Type("dyn", "dyn")
ANY: Final = Type("any", "any")
BOOL: Final = Type("bool", "bool")
BYTES: Final = Type("bytes", "bytes")
DOUBLE: Final = Type("double", "double")
DURATION: Final = Type("duration", "google.protobuf.Duration")
ERROR: Final = Type("error", "error")
INT: Final = Type("int", "int")
NULL: Final = Type("null", "null_type")
STRING: Final = Type("string", "string")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp")
TYPE: Final = Type("type", "type")
UINT: Final = Type("uint", "uint")

DEVICE: Final = Type("struct", "kubernetes.DRADevice")
FORMAT: Final = Type("struct", "kubernetes.NamedFormat")
QUANTITY: Final = Type("struct", "kubernetes.Quantity")
SEMVER: Final = Type("struct", "kubernetes.Semver")
URL: Final = Type("struct", "kubernetes.URL")
IP: Final = Type("opaque", "net.IP")
CIDR: Final = Type("opaque", "net.CIDR")


def list_of(element: Type) -> Type:
    """The type of lists of such elements."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """The type of maps from such keys to such values."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """The type of values that may be absent."""
    return Type("opaque", "optional_type", (value,))


def type_of(value: Type) -> Type:
    """The type of the type itself."""
    return Type("type", "type", (value,))


def param(name: str) -> Type:
    """A type parameter."""
    return Type("param", name)


def unwrap_optional(kind: Type) -> tuple[Type, bool]:
    """What an optional holds, and whether it is an optional at all."""
    if kind.kind == "opaque" and kind.name == "optional_type":
        return kind.params[0], True
    return kind, False


def is_equivalent(first: Type, second: Type) -> bool:
    """Equal but for the names of type parameters."""
    if first.kind != second.kind or len(first.params) != len(second.params):
        return False
    if first.kind != "param" and first.name != second.name:
        return False
    return all(map(is_equivalent, first.params, second.params))
