"""Quantities and semantic versions (Kubernetes' quantity and semver libraries)."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from dovetail.core.cel.kinds import BOOL, DOUBLE, INT, QUANTITY, SEMVER, STRING
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.signatures import Library
from dovetail.core.cel.values import LARGEST_INT, EvalError
from dovetail.core.quantity import Quantity
from dovetail.core.semver import Semver

QUANTITIES: Final = Library("quantities")
VERSIONS: Final = Library("versions")


LONGEST_REASON: Final = 200


def _parsed(parse: Callable[[str], Any], meter: Meter, text: str) -> Any:
    meter.read(text)
    try:
        return parse(text)
    except ValueError as error:
        raise EvalError(str(error)[:LONGEST_REASON]) from error


def _parses(parse: Callable[[str], Any], meter: Meter, text: str) -> bool:
    meter.read(text)
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _integer(amount: Quantity) -> int:
    if amount.integer is None:
        raise EvalError("cannot convert value to integer")
    return amount.integer


def _whole(amount: int) -> Quantity:
    return Quantity.of(amount, "DecimalExponent")


def _wrapped(number: int) -> int:
    """A number of 64 bits without a sign, read as one with a sign."""
    return number if number <= LARGEST_INT else number - (1 << 64)


def _quantity(meter: Meter, text: str) -> Quantity:
    quantity: Quantity = _parsed(Quantity.from_text, meter, text)
    return quantity


def _sum(meter: Meter, first: Quantity, second: Quantity) -> Quantity:
    meter.spend(2)  # numbers of thousands of digits
    return first.add(second)


def _difference(meter: Meter, first: Quantity, second: Quantity) -> Quantity:
    meter.spend(2)
    return first.sub(second)


def _version(meter: Meter, text: str, normalise: bool = False) -> Semver:
    version: Semver = _parsed(Semver.normalised if normalise else Semver.parse, meter, text)
    return version


def _is_version(meter: Meter, text: str, normalise: bool = False) -> bool:
    return _parses(Semver.normalised if normalise else Semver.parse, meter, text)


def _order(meter: Meter, first: Semver, second: Semver) -> int:
    if first.prerelease and second.prerelease:
        meter.spend(len(first.prerelease) + len(second.prerelease))
    return first.compare(second)


def _quantities() -> None:
    add, method = QUANTITIES.add, QUANTITIES.method
    pair = (QUANTITY, QUANTITY)
    add("quantity", "string_to_quantity", (STRING,), QUANTITY, _quantity, spends=True)
    add(
        "isQuantity", "is_quantity_string", (STRING,), BOOL, partial(_parses, Quantity.from_text), spends=True
    )
    add("sign", "quantity_sign", (QUANTITY,), INT, lambda amount: amount.sign)
    method("isGreaterThan", "quantity_is_greater_than", pair, BOOL, lambda a, b: a.nano > b.nano)
    method("isLessThan", "quantity_is_less_than", pair, BOOL, lambda a, b: a.nano < b.nano)
    method("compareTo", "quantity_compare_to", pair, INT, Quantity.compare)
    method("asApproximateFloat", "quantity_get_float", (QUANTITY,), DOUBLE, lambda a: a.approximate)
    method("asInteger", "quantity_get_int", (QUANTITY,), INT, _integer)
    method("isInteger", "quantity_is_integer", (QUANTITY,), BOOL, lambda a: a.integer is not None)
    method("add", "quantity_add", pair, QUANTITY, _sum, spends=True)
    method(
        "add",
        "quantity_add_int",
        (QUANTITY, INT),
        QUANTITY,
        lambda m, a, b: _sum(m, a, _whole(b)),
        spends=True,
    )
    method("sub", "quantity_sub", pair, QUANTITY, _difference, spends=True)
    method(
        "sub",
        "quantity_sub_int",
        (QUANTITY, INT),
        QUANTITY,
        lambda m, a, b: _difference(m, a, _whole(b)),
        spends=True,
    )


def _versions() -> None:
    add, method = VERSIONS.add, VERSIONS.method
    pair = (SEMVER, SEMVER)
    add("semver", "string_to_semver", (STRING,), SEMVER, _version, spends=True)
    add("semver", "string_bool_to_semver", (STRING, BOOL), SEMVER, _version, spends=True)
    add("isSemver", "is_semver_string", (STRING,), BOOL, _is_version, spends=True)
    add("isSemver", "is_semver_string_bool", (STRING, BOOL), BOOL, _is_version, spends=True)
    method(
        "isGreaterThan",
        "semver_is_greater_than",
        pair,
        BOOL,
        lambda m, a, b: _order(m, a, b) > 0,
        spends=True,
    )
    method("isLessThan", "semver_is_less_than", pair, BOOL, lambda m, a, b: _order(m, a, b) < 0, spends=True)
    method("compareTo", "semver_compare_to", pair, INT, _order, spends=True)
    method("major", "semver_major", (SEMVER,), INT, lambda version: _wrapped(version.major))
    method("minor", "semver_minor", (SEMVER,), INT, lambda version: _wrapped(version.minor))
    method("patch", "semver_patch", (SEMVER,), INT, lambda version: _wrapped(version.patch))


_quantities()
_versions()
