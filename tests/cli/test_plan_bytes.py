"""Whatever bytes `dovetail plan` is given, it answers by its exit status, and prints nothing that hides."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.api.text import harmless, readable_json
from tests.cli.commands import only_pod, plan, plan_json, write
from tests.planner.worlds import hardware, pod, template

ROOT = Path(__file__).parents[2]
UNSEEN = (
    "\u200b\u200e\u200f\u202a\u202e\u2060\u2066\u2069\u00ad\u061c\ufeff\u2028\u2029"
    "\x85\x9b\x7f\u3164\u034f\ufe0f"
)


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python program of its own that can import everything here."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def test_inputs_changed_at_random_end_with_a_status() -> None:
    """0, 1 or 2, without a traceback, in bounded time and memory: bytes, fields and values are changed."""
    ended = run("from tests.cli.mutations import run; print(run(1, 250))")
    assert (ended.stdout, ended.stderr, ended.returncode) == ("[]\n", "", 0)


@pytest.mark.parametrize("field", ["name", "namespace"])
def test_half_a_surrogate_pair_is_a_problem_with_its_place(tmp_path: Path, field: str) -> None:
    """The document and the path are named."""
    body = pod(template="template")
    body["metadata"][field] = "a\ud800"
    (tmp_path / "x.json").write_text(json.dumps(body))
    (problem,) = plan_json(tmp_path, status=2)["problems"]
    assert problem["document"] == 1
    assert problem["message"].startswith(f"metadata.{field}: the text is no Unicode")
    assert plan(str(tmp_path)).exit_code == 2


def test_characters_that_cannot_be_seen_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """Zero widths, directions, line separators, controls and fillers: a mark in text, an escape in JSON."""
    assert harmless(UNSEEN) == "\ufffd" * len(UNSEEN)
    assert harmless("Zürich 東京 a\u00a0b 😀") == "Zürich 東京 a\u00a0b 😀"
    write(tmp_path, *hardware("n1"), template(), pod(template="template", gates=[UNSEEN]))
    for form in ("text", "json"):
        result = plan(str(tmp_path), "-o", form)
        assert not set(result.stdout + result.stderr) & set(UNSEEN)
        assert "scheduling" in result.stdout + result.stderr


def test_json_for_people_loses_nothing() -> None:
    """What is escaped is read back as it was, beyond the first plane too."""
    value = {UNSEEN: ["\U000e0041", "\ud800", "Zürich 東京 😀", "\n\t"]}
    shown = readable_json(value)
    assert json.loads(shown) == value
    assert "東京 😀" in shown


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe\x00\xd8", "it is not UTF-16"),
        (b"a: \xff", "it is not UTF-8"),
        (b"a: b\0", "it is no text: a zero at character 4"),
        (b"\x7fELF\x02\x01\x01\0\0", "it is no text"),
        (b"kind: Pod\n" + b"x" * 5_000_000, "line"),
    ],
)
def test_what_is_no_text_is_a_problem(tmp_path: Path, content: bytes, words: str) -> None:
    """Binary files, wrong encodings, one endless line."""
    (tmp_path / "x.yaml").write_bytes(content)
    (problem,) = plan_json(tmp_path, status=2)["problems"]
    assert words in problem["message"]


def test_a_file_of_another_shell_is_read(tmp_path: Path) -> None:
    """UTF-16 and UTF-8 with a byte order mark."""
    write(tmp_path, *hardware("n1"), template(), pod(template="template"))
    file = tmp_path / "objects.yaml"
    text = file.read_text()
    for encoding in ("utf-16", "utf-8-sig"):
        file.write_text(text, encoding=encoding)
        assert only_pod(tmp_path)["outcome"] == "fits"


def test_a_file_without_an_end_is_a_problem() -> None:
    """It is read no further than any dump is long."""
    result = plan("/dev/zero")
    assert result.exit_code == 2
    assert "it is larger than 512 MiB" in result.stderr


def test_ten_thousand_documents_are_read(tmp_path: Path) -> None:
    """And as many problems are told in short."""
    text = "---\n".join(f"{{apiVersion: v1, kind: Podd, metadata: {{name: p{n}}}}}\n" for n in range(10_000))
    (tmp_path / "x.yaml").write_text(text)
    problems = plan_json(tmp_path, status=2)["problems"]
    assert len(problems) == 1001
    assert problems[-1]["message"] == "9000 more problems"


HOSTILE = {
    "merges": ["m0: &m0 {k0: v}", *(f"m{n}: &m{n} {{<<: *m{n - 1}, k{n}: v}}" for n in range(1, 9000))],
    "aliases": ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 11))],
    "brackets": ["[" * 100_000],
    "objects": ['{"a":' * 100_000],
    "dashes": ["- " * 100_000],
    "keys": ["? " * 100_000],
    "anchors": [f"a{n}: &a{n} x" for n in range(20_000)],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_documents_cost_little(tmp_path: Path, name: str) -> None:
    """A few seconds and a few hundred megabytes, in a process with the operator's depth of recursion."""
    (tmp_path / "x.yaml").write_text("\n".join(HOSTILE[name]))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30,) * 2); "
    ended = run(code + "from dovetail.__main__ import main; main()", "plan", str(tmp_path))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.returncode == 2, ended.stderr[-500:]
    assert ended.stderr.startswith("problem: ")
    assert after.ru_utime - before.ru_utime < 10
