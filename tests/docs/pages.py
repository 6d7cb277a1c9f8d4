"""The pages that people read, and the commands on them that can be run from manifests alone.

A command counts as runnable when it is `dovetail plan`, `audit --from` or `mappings` and every file that it
names is in the repository.
`python -m tests.docs.pages` runs them and writes what they print into the pages.
"""

import glob
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from dovetail.cli.app import app

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNNABLE = re.compile(r"dovetail (plan|audit --from|mappings)\b")
CUT = "…\n"
"""The last line of an output that goes on."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command with the output that the page shows: everything up to the next prompt."""

    page: Path
    words: str
    shown: str

    @property
    def is_runnable(self) -> bool:
        """Whether the command needs no cluster, and its files are there."""
        if not RUNNABLE.match(self.words) or "|" in self.words or ">" in self.words:
            return False
        return all(glob.glob(word, root_dir=ROOT) for word in self.words.split() if "." in word)  # noqa: PTH207

    def run(self) -> str:
        """What the command prints now, cut where the page cuts it."""
        arguments = [
            name
            for word in shlex.split(self.words)[1:]
            for name in (sorted(glob.glob(word, root_dir=ROOT)) if "." in word else [word])  # noqa: PTH207
        ]
        output = CliRunner().invoke(app, arguments, catch_exceptions=False).output
        if self.shown.endswith(CUT):
            kept = self.shown.count("\n") - 1
            return "".join(output.splitlines(keepends=True)[:kept]) + CUT
        return output


def pages() -> list[Path]:
    """Every page for people."""
    return sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "e2e").glob("*.md")])


def commands(page: Path) -> Iterator[Command]:
    """The commands of a page's console blocks, in order."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, shown = part.partition("\n")
            yield Command(page, line.strip(), shown)


DEMO = "make demo"


def run_demo() -> str:
    """What the demo prints."""
    command = [sys.executable, "-m", "dovetail", "demo"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def excerpt(demo: str) -> str:
    """The first pod, the pod that waits, the first node and the end; a line with an ellipsis for the rest."""
    lines = demo.splitlines()
    second_pod, waiting, second_node, end = (
        next(number for number, line in enumerate(lines) if re.match(pattern, line))
        for pattern in (r"Pod trainer-1", r"Pod simulator arrives", r"╭─ dgx", r"Pod simulator waits")
    )
    parts = (lines[:second_pod], lines[waiting:second_node], ["", *lines[end:]])
    return "\n…\n".join("\n".join(part) for part in parts) + "\n"


def settled(text: str) -> str:
    """The text of the demo without what differs from run to run: random names, and the time it took."""
    return re.sub(r"-devices-\w{5}|\(\d+\.\d s\)", "", text)


def refresh(page: Path) -> None:
    """Write into a page what its runnable commands print now."""
    text = page.read_text(encoding="utf-8")
    for command in commands(page):
        prompt = f"$ {command.words}\n"
        if command.is_runnable:
            text = text.replace(prompt + command.shown, prompt + command.run())
        elif command.words == DEMO and settled(told := excerpt(run_demo())) != settled(command.shown):
            text = text.replace(prompt + command.shown, prompt + told)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for each in pages():
        refresh(each)
