"""The environment of an expression: which functions, types and variables its gates give it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from dovetail.core.cel import kinds
from dovetail.core.cel.kinds import ANY, DYN, Type, list_of, map_of
from dovetail.core.cel.library import (
    amounts,
    authorization,
    conversions,
    formats,
    moments,
    networks,
    operators,
    optionals,
    regexes,
    sequences,
    strings,
    urls,
)
from dovetail.core.cel.signatures import Function, Library
from dovetail.core.cel.values import TypeValue
from dovetail.core.cel.verdicts import Environment

LIBRARIES: Final[tuple[Library, ...]] = (
    operators.LIBRARY,
    conversions.LIBRARY,
    moments.LIBRARY,
    urls.LIBRARY,
    regexes.LIBRARY,
    sequences.LISTS,
    authorization.LIBRARY,
    optionals.LIBRARY,
    amounts.QUANTITIES,
    strings.LIBRARY,
    sequences.SETS,
    networks.IPS,
    networks.CIDRS,
    formats.LIBRARY,
    sequences.LOOPS,
    amounts.VERSIONS,
    sequences.EXTENDED,
)
"""The libraries of the environment, in the order in which Kubernetes adds them; a gate adds `includes`."""

TYPES: Final[Mapping[str, Type]] = {
    "bool": kinds.BOOL,
    "bytes": kinds.BYTES,
    "double": kinds.DOUBLE,
    "google.protobuf.Duration": kinds.DURATION,
    "google.protobuf.Timestamp": kinds.TIMESTAMP,
    "int": kinds.INT,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "net.CIDR": kinds.CIDR,
    "net.IP": kinds.IP,
    "null_type": kinds.NULL,
    "optional_type": kinds.optional_of(DYN),
    "string": kinds.STRING,
    "type": kinds.TYPE,
    "uint": kinds.UINT,
}
"""Types that an expression can name."""

CONSTANTS: Final[Mapping[str, Any]] = {"google.protobuf.NullValue.NULL_VALUE": 0}


@dataclass(frozen=True, eq=False)
class Scope:
    """What an expression can refer to."""

    functions: Mapping[str, Function]
    device: Mapping[str, Type]
    attribute: Type
    lists: bool
    own: bool

    def type_value(self, name: str) -> TypeValue | None:
        """The type of this name as a value."""
        return TypeValue(name) if name in TYPES else None


@cache
def scope(environment: Environment) -> Scope:
    """The scope that the gates make."""
    lists = environment.list_type_attributes or environment.stored
    libraries = LIBRARIES + ((sequences.INCLUDES,) if lists else ())
    functions: dict[str, Function] = {}
    for library in libraries:
        for overload in library.overloads:
            functions.setdefault(overload.function, Function(overload.function)).overloads.append(overload)
    attribute = DYN if lists else ANY
    return Scope(functions, _device(environment, attribute), attribute, lists, environment.own)


def _device(environment: Environment, attribute: Type) -> dict[str, Type]:
    fields = {
        "driver": kinds.STRING,
        "attributes": map_of(kinds.STRING, map_of(kinds.STRING, attribute)),
        "capacity": map_of(kinds.STRING, map_of(kinds.STRING, kinds.QUANTITY)),
    }
    if environment.consumable_capacity or environment.stored:
        fields["allowMultipleAllocations"] = kinds.BOOL
    if environment.own:
        fields |= {"name": kinds.STRING, "pool": kinds.STRING}
    return fields
