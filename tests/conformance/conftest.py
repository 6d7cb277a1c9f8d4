"""Cases with the right answers: `pytest tests/conformance --cases DIR` takes any folder of them."""

from pathlib import Path

import pytest

DEFAULT_CASES = Path(__file__).parent.parent / "data" / "cases"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Have the folder chosen on the command line."""
    parser.addoption(
        "--cases",
        type=Path,
        default=DEFAULT_CASES,
        help="folder with cases of either format, subfolders included (default: tests/data/cases)",
    )
