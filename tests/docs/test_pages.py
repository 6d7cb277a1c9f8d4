"""What the documentation says is so: links lead somewhere, commands print what is shown, tables are whole."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.cli.app import COMMANDS
from dovetail.core.findings import Fault
from dovetail.core.ownership_status import FenceReason
from dovetail.core.reasons import Reason
from dovetail.core.restrictions import PermitReason
from dovetail.services.audit import Auditor
from dovetail.services.metrics import Metrics, WaitingPods
from dovetail.services.mind import Mind
from dovetail.services.settings import Settings
from tests.docs.pages import DEMO, ROOT, Command, commands, excerpt, pages, run_demo, settled

PAGES = pages()
DOCS = ROOT / "docs"
OPERATORS = DOCS / "operators"
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
TEST = re.compile(r"`((?:tests|e2e)/[\w/]+\.py)::(test_\w+)`")
TITLES = [str(page.relative_to(ROOT)) for page in PAGES]


def runnable() -> list[Command]:
    """Every command that can be run here."""
    return [command for page in PAGES for command in commands(page) if command.is_runnable]


def first_cells(page: Path) -> list[str]:
    """The code in the first cell of every table row of a page."""
    return re.findall(r"^\| `([^`]+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=TITLES)
def test_every_link_leads_to_a_file(page: Path) -> None:
    """A link within the repository names something that exists."""
    targets = [target for target, _ in LINK.findall(page.read_text(encoding="utf-8"))]
    inside = [target for target in targets if "://" not in target]
    assert [target for target in inside if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("command", runnable(), ids=lambda command: command.words)
def test_a_command_prints_what_the_page_shows(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output on a page is what the command prints; `make docs` writes it there."""
    monkeypatch.chdir(ROOT)
    assert command.run() == command.shown


def test_commands_are_found() -> None:
    """The pages do show commands, so that the test above tests something."""
    assert {command.page.name for command in runnable()} >= {"README.md", "refusals.md", "audit.md"}


@pytest.mark.parametrize("page", PAGES, ids=TITLES)
def test_one_sentence_has_one_line(page: Path) -> None:
    """Outside of code and tables, no line holds two sentences."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.splitlines() if not line.startswith("|")]
    assert [line for line in lines if re.search(r"[a-z`)][.!?] [A-Z`*]", line)] == []


@pytest.mark.parametrize("page", PAGES, ids=TITLES)
def test_nothing_is_belittled(page: Path) -> None:
    """What is easy for one reader is not for the next."""
    assert re.findall(r"\b(?:simply|just|easily)\b", page.read_text(encoding="utf-8"), re.IGNORECASE) == []


def test_each_promise_names_a_test_that_exists() -> None:
    """docs/guarantees.md names tests by file and function, and all of them are there."""
    named = TEST.findall((DOCS / "guarantees.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    assert [f"{file}::{name}" for file, name in named if f"def {name}(" not in _text(file)] == []


def _text(file: str) -> str:
    path = ROOT / file
    return path.read_text(encoding="utf-8") if path.exists() else ""


def test_every_setting_is_listed_with_its_default() -> None:
    """docs/operators/settings.md has one row per setting, in the order of the code."""
    rows = re.findall(
        r"^\| `(\w+)` \| `(.*?)` \|", (OPERATORS / "settings.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert rows == [(name, _shown(field.default)) for name, field in Settings.model_fields.items()]


def _shown(default: Any) -> str:
    match default:
        case bool():
            return str(default).lower()
        case "":
            return '""'
        case float() if default.is_integer():
            return str(int(default))
        case _:
            return str(default)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("users/refusals.md", [str(reason) for reason in Reason]),
        ("operators/audit.md", [str(fault) for fault in Fault]),
        ("operators/ownership.md", [str(reason) for reason in FenceReason]),
        ("operators/ownership.md", [str(reason) for reason in PermitReason]),
    ],
)
def test_every_reason_is_explained(page: str, words: list[str]) -> None:
    """Each word that a user can meet in a condition or finding has its row."""
    assert set(words) <= set(first_cells(DOCS / page))


def test_every_metric_is_listed() -> None:
    """docs/operators/metrics.md has a row per metric, named as Prometheus shows it."""
    page = (OPERATORS / "metrics.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(dovetail_\w+)", page, re.MULTILINE))
    metrics = Metrics()
    metrics.registry.register(WaitingPods(list))
    Auditor(mind=Mind.__new__(Mind), metrics=metrics, seconds=60)
    suffix = {"counter": "_total"}
    served = {family.name + suffix.get(family.type, "") for family in metrics.registry.collect()}
    assert listed == served


def test_every_command_is_mentioned() -> None:
    """Each command that exists appears in the overview of the commands."""
    there = [name for name in COMMANDS if (ROOT / f"operator/dovetail/cli/{name}.py").exists()]
    assert set(there) <= {cell.removeprefix("dovetail ") for cell in first_cells(DOCS / "README.md")}


def test_every_example_is_valid_yaml() -> None:
    """The manifests of docs/examples parse and name their kind."""
    for path in sorted((DOCS / "examples").glob("*.yaml")):
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        assert all({"apiVersion", "kind", "metadata"} <= set(body) for body in documents), path


def test_the_demo_tells_what_the_readme_shows() -> None:
    """The demo on the first page is what the demo prints, but for random names and the time it took."""
    (shown,) = [command.shown for command in commands(ROOT / "README.md") if command.words == DEMO]
    assert settled(excerpt(run_demo())) == settled(shown)
