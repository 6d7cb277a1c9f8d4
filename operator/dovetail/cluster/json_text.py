"""JSON as other clients write it, byte for byte.

The API server keeps opaque parameters of claims as the bytes that it was sent, and takes any other bytes
for a change, which it refuses: `field is immutable`.
Over JSON it shows them compact and in Go's spelling, so that is what has to be sent back.
Where a client once sent them in another spelling, that has to be sent back.
"""

import json
from typing import Any

import msgspec

_IN_GO = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_TABLE = str.maketrans(_IN_GO)


def go_text(body: object) -> str:
    """Without blanks, with characters as they are, save those that HTML gives a meaning (encoding/json)."""
    # These characters occur within strings only.
    return plain_text(body).translate(_TABLE)


def python_text(body: object) -> str:
    """With a blank after each comma and colon, in ASCII."""
    return json.dumps(body)


def plain_text(body: object) -> str:
    """Without blanks, with all characters as they are, as JavaScript and most others write."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def ascii_text(body: object) -> str:
    """Without blanks, in ASCII: Python's writer where it is told to be brief."""
    return json.dumps(body, separators=(",", ":"))


SPELLINGS = (go_text, python_text, plain_text, ascii_text)
"""The most frequent first."""


def read_json(text: bytes) -> Any:
    """What the text says, numbers exactly as Python's own reader has them; ValueError where it is no JSON."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # It is faster, and refuses what Python's reader takes: lone surrogates, numbers beyond all bounds.
        return json.loads(text)
