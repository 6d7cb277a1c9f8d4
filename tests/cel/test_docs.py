"""The documentation lists what the code offers."""

from pathlib import Path

from dovetail.core.cel.catalog import document

PAGE = Path(__file__).parents[2] / "docs" / "cel-functions.md"


def test_the_page_of_functions_is_current() -> None:
    """`make docs-cel` would change nothing."""
    assert PAGE.read_text() == document()
