"""The house stands as it was drawn: the source root is no package, files and functions stay small."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE_ROOT = ROOT / "operator"
PACKAGE = SOURCE_ROOT / "dovetail"
LONGEST_FILE = 400
LONGEST_FUNCTION = 50


def modules() -> list[Path]:
    """Every module of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def functions(module: Path) -> Iterator[tuple[str, int]]:
    """Name and length, without the docstring, of every function of a module."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            has_docstring = ast.get_docstring(node) is not None
            docstring = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
            yield node.name, (node.end_lineno or 0) - node.lineno + 1 - docstring


def test_the_source_root_holds_no_python_file() -> None:
    """`operator/` holds no module and no `__init__.py`, which would shadow the standard operator."""
    assert sorted(path.name for path in SOURCE_ROOT.glob("*.py")) == []


def test_the_standard_library_keeps_its_operator_in_every_folder() -> None:
    """Python started in the repository, or in the source root, imports the standard library's operator."""
    program = "import collections, operator; print(operator.itemgetter(0)('x'))"
    for folder in (ROOT, SOURCE_ROOT):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
        )
        assert done.stdout == "x\n"


def test_no_module_is_named_like_one_of_the_standard_library() -> None:
    """A module named like one of the standard library would shadow it for scripts in its folder."""
    names = {path.stem for path in modules()} | {path.parent.name for path in modules()}
    assert names & (sys.stdlib_module_names - {"__main__"}) == set()


def test_files_and_functions_stay_small() -> None:
    """No file has more than 400 lines, and no function more than 50."""
    long_files = {
        str(path.relative_to(ROOT)): lines
        for path in modules()
        if (lines := len(path.read_text().splitlines())) > LONGEST_FILE
    }
    long_functions = {
        f"{path.relative_to(ROOT)}:{name}": lines
        for path in modules()
        for name, lines in functions(path)
        if lines > LONGEST_FUNCTION
    }
    assert (long_files, long_functions) == ({}, {})


def test_every_module_says_in_its_first_line_what_it_knows() -> None:
    """Each module opens with a docstring."""
    silent = [
        str(path.relative_to(ROOT))
        for path in modules()
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []
