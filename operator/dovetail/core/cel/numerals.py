"""Numbers as Go writes and reads them."""

import math
import re
from typing import Final

from dovetail.core.cel.values import LARGEST_INT, LARGEST_UINT, SMALLEST_INT, EvalError, Uint, shown

_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UINT: Final = re.compile(r"[0-9]+", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_HEX: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+", re.ASCII)
_MISPLACED: Final = re.compile(r"(?<![0-9])_|_(?![0-9])", re.ASCII)
_MISPLACED_IN_HEX: Final = re.compile(r"(?<![0-9a-fA-FxX])_|_(?![0-9a-fA-F])", re.ASCII)
_SPECIAL: Final = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE | re.ASCII)
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "FALSE", "false", "False"))


def format_double(value: float) -> str:
    """The shortest text that reads back as the number, with an exponent from 1e+06 up and below 1e-04."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, exponent = shortest(value)
    if -4 <= exponent < 6:
        return sign + _plain(digits, exponent)
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def shortest(value: float) -> tuple[str, str, int]:
    """Sign, the fewest digits that tell the number apart, and the power of ten of the first digit."""
    text = repr(abs(value))
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len((whole + fraction).lstrip("0"))
    exponent = len(whole) - 1 - leading + int(power or 0)
    return "-" if value < 0 else "", digits.rstrip("0") or "0", exponent


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    digits = digits.ljust(exponent + 1, "0")
    return digits[: exponent + 1] + ("." + digits[exponent + 1 :] if len(digits) > exponent + 1 else "")


def parse_int(text: str) -> int:
    """A decimal integer of 64 bits; EvalError otherwise."""
    if len(text) < 100 and _INT.fullmatch(text) and SMALLEST_INT <= int(text) <= LARGEST_INT:
        return int(text)
    raise EvalError(f"type conversion error: {shown(text)} is no int")


def parse_uint(text: str) -> Uint:
    """A decimal integer of 64 bits without a sign; EvalError otherwise."""
    if len(text) < 100 and _UINT.fullmatch(text) and int(text) <= LARGEST_UINT:
        return Uint(text)
    raise EvalError(f"type conversion error: {shown(text)} is no uint")


def parse_double(text: str) -> float:
    """A floating-point number in one of Go's notations; EvalError otherwise, or where it is too large."""
    if _SPECIAL.fullmatch(text):
        return float(text)
    value: float | None = None
    digits = text.replace("_", "")
    if _DECIMAL.fullmatch(digits) and not _MISPLACED.search(text):
        value = float(digits)
    elif _HEX.fullmatch(digits) and not _MISPLACED_IN_HEX.search(text):
        value = _hex(digits)
    if value is None or math.isinf(value):
        raise EvalError(f"type conversion error: {shown(text)} is no double")
    return value


def _hex(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return math.inf


def parse_bool(text: str) -> bool:
    """One of the twelve words that Go takes for a truth value; EvalError otherwise."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise EvalError(f"type conversion error: {shown(text)} is no bool")


def double_to_int(value: float) -> int:
    """The integer toward zero; EvalError where it does not fit."""
    if not -(2.0**63) < value < 2.0**63:
        raise EvalError("integer overflow")
    return int(value)


def double_to_uint(value: float) -> Uint:
    """The integer toward zero; EvalError where it does not fit."""
    if not 0 <= value < 2.0**64:
        raise EvalError("unsigned integer overflow")
    return Uint(int(value))
