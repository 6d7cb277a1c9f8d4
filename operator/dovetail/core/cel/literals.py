"""What the tokens of literals stand for."""

import math
import re
from collections.abc import Callable
from typing import Any, Final

from dovetail.core.cel.values import LARGEST_INT, LARGEST_UINT, SMALLEST_INT, Uint


class BadLiteral(ValueError):
    """A literal has the right shape, but stands for nothing."""


_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\"'\\?`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))"
)
_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SURROGATES: Final = range(0xD800, 0xE000)


def read_int(text: str, *, negative: bool = False) -> int:
    """An integer, in decimal or with 0x in hexadecimal."""
    amount = _whole(text)
    amount = -amount if negative else amount
    if not SMALLEST_INT <= amount <= LARGEST_INT:
        raise BadLiteral("invalid int literal")
    return amount


def read_uint(text: str) -> Uint:
    """An unsigned integer, its `u` included in the text."""
    amount = _whole(text[:-1])
    if amount > LARGEST_UINT:
        raise BadLiteral("invalid uint literal")
    return Uint(amount)


def _whole(text: str) -> int:
    """The number; where it has far too many digits, one that is too large all the same."""
    digits = text.removeprefix("0x").lstrip("0") or "0"
    return int(digits[:32], 16 if text.startswith("0x") else 10)


def read_double(text: str, *, negative: bool = False) -> float:
    """A floating-point number."""
    amount = float(text)
    if math.isinf(amount):
        raise BadLiteral("invalid double literal")
    return -amount if negative else amount


def read_string(text: str) -> str:
    """A string, its quotes and prefix included in the text."""
    body, is_raw = _body(text)
    return body if is_raw else _ESCAPE.sub(_character, body)


def read_bytes(text: str) -> bytes:
    """Bytes, their `b` included in the text; an escaped number stands for one byte."""
    body, is_raw = _body(text[1:])
    if is_raw:
        return body.encode()
    octets, position = bytearray(), 0
    for match in _ESCAPE.finditer(body):
        octets += body[position : match.start()].encode() + _octet(match)
        position = match.end()
    return bytes(octets + body[position:].encode())


def _body(text: str) -> tuple[str, bool]:
    is_raw = text[0] in "rR"
    text = text[1:] if is_raw else text
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[quotes:-quotes].replace("\r\n", "\n").replace("\r", "\n"), is_raw


def _character(match: re.Match[str]) -> str:
    simple, short, four, eight, octal = match.groups()
    if simple:
        return _SIMPLE.get(simple, simple)
    code = int(octal, 8) if octal else int(short or four or eight, 16)
    if code > 0x10FFFF or code in _SURROGATES:
        raise BadLiteral("invalid unicode code point")
    return chr(code)


def _octet(match: re.Match[str]) -> bytes:
    simple, short, _, _, octal = match.groups()
    if simple:
        return _SIMPLE.get(simple, simple).encode()
    if not short and not octal:
        raise BadLiteral("unable to unescape string")
    return bytes((int(octal, 8) if octal else int(short, 16),))


READERS: Final[dict[str, Callable[[str], Any]]] = {
    "INT_LIT": read_int,
    "UINT_LIT": read_uint,
    "FLOAT_LIT": read_double,
    "STRING_LIT": read_string,
    "BYTES_LIT": read_bytes,
    "BOOL_LIT": lambda text: text == "true",
    "NULL_LIT": lambda text: None,
}
