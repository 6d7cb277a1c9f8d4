"""Bodies are spelled as other clients spell them: the API server compares opaque parameters byte by byte."""

import json
from collections.abc import Callable

import pytest

from dovetail.cluster.json_text import SPELLINGS, go_text, python_text

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
