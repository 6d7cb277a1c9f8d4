"""Protobuf's well-known types, which an expression may build by name: they become plain values."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from dovetail.core.cel.kinds import (
    ANY,
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
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.times import (
    SECOND,
    Duration,
    Timestamp,
    checked_timestamp,
    format_duration,
    format_timestamp,
)
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
    "google.protobuf.Value": DYN,
    "google.protobuf.Any": ANY,
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


_VALUE_FIELDS: Final = {
    "null_value": INT,
    "number_value": DOUBLE,
    "string_value": STRING,
    "bool_value": BOOL,
    "struct_value": map_of(STRING, DYN),
    "list_value": list_of(DYN),
}
_SAFE: Final = 1 << 53


def message_fields(name: str) -> Mapping[str, Type]:
    """The fields of a message, with their types."""
    kind = MESSAGES[name]
    by_kind = {
        "duration": _TIME_FIELDS,
        "timestamp": _TIME_FIELDS,
        "list": {"values": kind},
        "map": {"fields": kind},
        "dyn": _VALUE_FIELDS,
        "any": {"type_url": STRING, "value": BYTES},
    }
    return by_kind.get(kind.kind) or {"value": Type(kind.kind, kind.name)}


def build(name: str, fields: Mapping[str, Any], meter: Meter) -> Any:
    """The value of a message with these fields; EvalError where there is none, and what the meter raises."""
    kind = MESSAGES.get(name)
    if kind is None or kind.kind == "any":
        raise EvalError(f"a message of type {name!r} has no value")
    seconds, nanos = fields.get("seconds", 0), fields.get("nanos", 0)
    match kind.kind:
        case "duration":
            return Duration.checked(seconds * SECOND + nanos)
        case "timestamp":
            return checked_timestamp(seconds + nanos // SECOND, nanos % SECOND)
        case "list":
            return _json(fields.get("values", []), meter)
        case "map":
            return _json(fields.get("fields", CelMap()), meter)
        case "dyn":
            return _json([*fields.values(), None][0], meter) if "null_value" not in fields else None
        case _:
            return _wrapped(name, kind, fields)


def _wrapped(name: str, kind: Type, fields: Mapping[str, Any]) -> Any:
    value = fields.get("value", _EMPTY[kind.kind])
    if name in _RANGES and value not in _RANGES[name]:
        raise EvalError("integer overflow")
    return value


def _json(value: Any, meter: Meter) -> Any:
    """The value as JSON holds it: numbers are doubles, large integers text."""
    if isinstance(value, list):
        meter.build(len(value), 40)
        return [_json(item, meter) for item in value]
    if isinstance(value, CelMap):
        meter.build(len(value), 300)
        if not all(type(key) is str for key in value.keys()):  # noqa: SIM118 - keys are decoded
            raise EvalError("a key of a message must be a string")
        return CelMap((key, _json(item, meter)) for key, item in value.items())
    convert = _JSON.get(type(value))
    if convert is None:
        raise EvalError("a value of this type has no JSON")
    if type(value) is bytes:
        meter.build(2 * len(value), 1)
    return convert(value)


def _json_number(number: int) -> float | str:
    return float(number) if abs(number) < _SAFE else str(int(number))


def _same(value: Any) -> Any:
    return value


_JSON: Final[dict[type, Callable[[Any], Any]]] = {
    int: _json_number,
    Uint: _json_number,
    Duration: format_duration,
    Timestamp: format_timestamp,
    bytes: lambda octets: b64encode(octets).decode(),
    **dict.fromkeys((bool, float, str, type(None)), _same),
}
