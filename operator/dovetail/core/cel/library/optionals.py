"""Optional values (cel-go's optional library, version 2)."""

from typing import Any, Final

from dovetail.core.cel.kinds import BOOL, list_of, optional_of, param
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.signatures import Library
from dovetail.core.cel.times import Duration, Timestamp
from dovetail.core.cel.values import NONE, CelMap, EvalError, NoSuchOverload, Optional

LIBRARY: Final = Library("optionals")

_V = param("V")
_OPTIONAL = optional_of(_V)

_FIRST_MOMENT: Final = Timestamp(-62_135_596_800)


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Any) -> bool:
    match value:
        case None:
            return True
        case bool() | int() | float():
            return value == 0
        case str() | bytes() | list() | CelMap():
            return len(value) == 0
        case Duration():
            return value.nanos == 0
        case Timestamp():
            return value == _FIRST_MOMENT
        case _:
            return False


def _value(optional: Optional) -> Any:
    if not optional.has_value:
        raise EvalError("optional.none() dereference")
    return optional.value


def _unwrap(meter: Meter, values: list[Any]) -> list[Any]:
    meter.build(len(values))
    if any(type(value) is not Optional for value in meter.each(values)):
        raise EvalError("a value of the list is not optional")
    return [value.value for value in values if value.has_value]


def _planned(*_: Any) -> Any:
    raise NoSuchOverload("no such overload: or")


LIBRARY.add("optional.of", "optional_of", (_V,), _OPTIONAL, Optional)
LIBRARY.add("optional.ofNonZeroValue", "optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero)
LIBRARY.add("optional.none", "optional_none", (), _OPTIONAL, lambda: NONE)
LIBRARY.add("optional.unwrap", "optional_unwrap", (list_of(_OPTIONAL),), list_of(_V), _unwrap, spends=True)
LIBRARY.method("unwrapOpt", "optional_unwrapOpt", (list_of(_OPTIONAL),), list_of(_V), _unwrap, spends=True)
LIBRARY.method("value", "optional_value", (_OPTIONAL,), _V, _value)
LIBRARY.method("hasValue", "optional_hasValue", (_OPTIONAL,), BOOL, lambda optional: optional.has_value)
LIBRARY.method("or", "optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, _planned)
LIBRARY.method("orValue", "optional_orValue_value", (_OPTIONAL, _V), _V, _planned)
LIBRARY.method(
    "first", "list_first", (list_of(_V),), _OPTIONAL, lambda values: Optional(values[0]) if values else NONE
)
LIBRARY.method(
    "last", "list_last", (list_of(_V),), _OPTIONAL, lambda values: Optional(values[-1]) if values else NONE
)
