"""How deep the JSON of an object may nest: the API server takes far more than anybody needs."""

import sys
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator

DEEPEST_JSON = 12_000
"""Opaque parameters are up to ten kilobytes, which may all be brackets; Python gives up at a thousand."""

MOST_LEVELS = 100
"""Parameters that nest deeper make their object malformed: no driver has such, and serializers fail."""


def allow_deep_json() -> None:
    """Let this process read whatever the API server stores.

    Without it, one claim of one tenant would keep a whole list from being read.
    """
    sys.setrecursionlimit(max(sys.getrecursionlimit(), DEEPEST_JSON))


def refuse_depth(value: Any) -> Any:
    """The value, if it nests no deeper than anybody needs; else ValueError."""
    level: list[Any] = [value]
    for _ in range(MOST_LEVELS):
        level = [part for each in level for part in _parts(each)]
        if not level:
            return value
    raise ValueError(f"nested more than {MOST_LEVELS} levels deep")


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


Shallow = Annotated[Any, AfterValidator(refuse_depth)]
"""JSON that only others understand, of reasonable depth."""
