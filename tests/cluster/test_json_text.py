"""Bodies are spelled as other clients spell them: the API server compares opaque parameters byte by byte."""

import json
from collections.abc import Callable

import pytest

from dovetail.cluster.json_text import SPELLINGS, go_text, python_text, read_json

PARAMETERS = {"z": "<a & b>", "a": ["é", "\u2028", 1, 1.5, True, None]}


def test_go_escapes_what_html_gives_a_meaning() -> None:
    """As encoding/json writes: no blanks, keys in their order, UTF-8 save for five characters."""
    assert go_text(PARAMETERS) == '{"z":"\\u003ca \\u0026 b\\u003e","a":["é","\\u2028",1,1.5,true,null]}'


def test_python_writes_blanks_and_ascii() -> None:
    """As Python's clients write what they send."""
    assert python_text(PARAMETERS).startswith('{"z": "<a & b>", "a": ["\\u00e9", ')


@pytest.mark.parametrize("spell", SPELLINGS)
def test_all_mean_the_same(spell: Callable[[object], str]) -> None:
    """What is read back is what was written."""
    assert json.loads(spell(PARAMETERS)) == PARAMETERS


@pytest.mark.parametrize(
    "text",
    [
        "123456789012345678901234567890",
        "-9223372036854775809",
        "18446744073709551616",
        "1.10",
        "-0.0",
        "1E5",
        "0.1e-7",
        "1e400",
        '"\\ud800"',
        '"\\u2028 \\u0000 ☃"',
        '{"a":1,"b":[null,true,{}],"a":2}',
        "[" * 900 + "]" * 900,
    ],
)
def test_reading_changes_nothing(text: str) -> None:
    """Whatever the API server may keep for somebody is what Python's own reader makes of it."""
    read, expected = read_json(text.encode()), json.loads(text)

    assert repr(read) == repr(expected)


@pytest.mark.parametrize("text", [b"", b"<html>", b"{", b"\xff", b"[1,]"])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    """As a ValueError, which whoever asked tells in its own words."""
    with pytest.raises(ValueError, match=r"."):
        read_json(text)
