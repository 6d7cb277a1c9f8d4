"""Protobuf's well-known types, which an expression may build by name: they become plain values."""

from collections.abc import Mapping
from typing import Any, Final

from dovetail.core.cel.kinds import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
)
from dovetail.core.cel.times import SECOND, Duration, checked_timestamp
from dovetail.core.cel.values import CelMap, EvalError, Uint


def _wrapper(kind: Type) -> Type:
    return Type(kind.kind, kind.name, (), nullable=True)


MESSAGES: Final[Mapping[str, Type]] = {
    "google.protobuf.BoolValue": _wrapper(BOOL),
    "google.protobuf.BytesValue": _wrapper(BYTES),
    "google.protobuf.DoubleValue": _wrapper(DOUBLE),
    "google.protobuf.FloatValue": _wrapper(DOUBLE),
    "google.protobuf.Int64Value": _wrapper(INT),
    "google.protobuf.Int32Value": _wrapper(INT),
    "google.protobuf.UInt64Value": _wrapper(UINT),
    "google.protobuf.UInt32Value": _wrapper(UINT),
    "google.protobuf.StringValue": _wrapper(STRING),
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Timestamp": TIMESTAMP,
    "google.protobuf.ListValue": list_of(DYN),
    "google.protobuf.Struct": map_of(STRING, DYN),
}
"""The types by name, and what they become."""

_EMPTY: Final[dict[str, Any]] = {
    "bool": False,
    "bytes": b"",
    "double": 0.0,
    "int": 0,
    "string": "",
    "uint": Uint(0),
}
_TIME_FIELDS: Final = {"seconds": INT, "nanos": INT}
_RANGES: Final = {
    "google.protobuf.Int32Value": range(-(1 << 31), 1 << 31),
    "google.protobuf.UInt32Value": range(1 << 32),
}


def message_fields(name: str) -> Mapping[str, Type]:
    """The fields of a message, with their types."""
    kind = MESSAGES[name]
    if kind.kind in ("duration", "timestamp"):
        return _TIME_FIELDS
    if kind.kind == "list":
        return {"values": kind}
    if kind.kind == "map":
        return {"fields": kind}
    return {"value": Type(kind.kind, kind.name)}


def build(name: str, fields: Mapping[str, Any]) -> Any:
    """The value of a message with these fields."""
    kind = MESSAGES.get(name)
    if kind is None:
        raise EvalError(f"unknown type {name!r}")
    seconds, nanos = fields.get("seconds", 0), fields.get("nanos", 0)
    match kind.kind:
        case "duration":
            return Duration.checked(seconds * SECOND + nanos)
        case "timestamp":
            return checked_timestamp(seconds + nanos // SECOND, nanos % SECOND)
        case "list":
            return fields.get("values", [])
        case "map":
            return fields.get("fields", CelMap())
        case _:
            return _wrapped(name, kind, fields)


def _wrapped(name: str, kind: Type, fields: Mapping[str, Any]) -> Any:
    value = fields.get("value", _EMPTY[kind.kind])
    if name in _RANGES and value not in _RANGES[name]:
        raise EvalError("integer overflow")
    return value
