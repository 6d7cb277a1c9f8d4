"""How commands end when their own answer does not end them, and what they say of a wrong command line."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.commands import write
from tests.planner.worlds import hardware, pod, template

ROOT = Path(__file__).parents[2]
DOVETAIL = (sys.executable, "-m", "dovetail")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "operator"), "COLUMNS": "500"}


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command as a process."""
    return subprocess.run(
        [*DOVETAIL, *arguments],
        capture_output=True,
        text=True,
        env=ENVIRONMENT | variables,
        check=False,
        timeout=60,
    )


def shell(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A script in which `dovetail` is the command; its last line is the statuses of its last pipe."""
    function = f'dovetail() {{ "{sys.executable}" -m dovetail "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", f'{function}{script}\necho "${{PIPESTATUS[0]}}" >&3', "bash", *arguments],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        check=False,
        timeout=60,
    )


@pytest.fixture
def world(tmp_path: Path) -> str:
    """A folder with a pod that fits."""
    return str(write(tmp_path, *hardware("n1"), template(), pod(template="template")))


def test_the_version_is_that_of_the_package() -> None:
    """As an option of the command itself."""
    ended = run("--version")
    assert (ended.stdout, ended.stderr, ended.returncode) == (f"dovetail {version('dovetail')}\n", "", 0)


@pytest.mark.parametrize(
    "command", ["plan {}", "plan -o json {}", "audit --from {}", "mappings", "--help", "--version", "plan -h"]
)
def test_a_pipe_that_nobody_reads_ends_a_command_quietly(world: str, command: str) -> None:
    """With the status that SIGPIPE gives, which is none of the command's own answers, and without a word."""
    ended = shell(f"exec 3>&1; dovetail {command.format(chr(34) + '$1' + chr(34))} | true", world)
    assert (ended.stdout, ended.stderr) == ("141\n", "")


def test_a_pipe_that_nobody_reads_any_more_is_the_same_for_errors(world: str) -> None:
    """What was wrong can be told nobody."""
    ended = shell('exec 3>&1; dovetail plan "$1/gone" 2>&1 >/dev/null | true', world)
    assert (ended.stdout, ended.stderr) == ("141\n", "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_what_is_closed_from_the_start_changes_no_answer(world: str, closed: str) -> None:
    """The status is that of the plan."""
    ended = shell(f'exec 3>&1; dovetail plan "$1" 3>&- {closed}', world)
    assert ended.stdout.splitlines()[-1] == "0"
    assert "Traceback" not in ended.stderr


def test_a_full_disk_is_told(world: str) -> None:
    """With a status that is none of the command's own answers."""
    ended = shell('exec 3>&1; dovetail plan "$1" > /dev/full', world)
    assert ended.stdout == "74\n"
    assert ended.stderr == "error: the output cannot be written: No space left on device\n"


def test_a_terminal_that_knows_few_characters_is_told_the_rest_in_escapes(world: str) -> None:
    """No encoding is a reason to fail: the status is that of the problem, a name that no pod can have."""
    text = (Path(world) / "objects.yaml").read_text().replace("name: pod\n", "name: pöd\n")
    (Path(world) / "objects.yaml").write_text(text, encoding="utf-8")
    ended = run("plan", world, PYTHONIOENCODING="ascii")
    assert ended.returncode == 2
    assert "Pod p\\xf6d: metadata.name" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("command", [["plan"], ["audit", "--from"]])
def test_a_file_that_cannot_be_opened_is_called_so(tmp_path: Path, command: list[str]) -> None:
    """Missing, behind a file, in a loop, too long; it is not called malformed."""
    (tmp_path / "file").write_text("")
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nothing")
    for name, words in (
        ("missing.yaml", "No such file or directory"),
        ("gone.yaml", "No such file or directory"),
        ("file/x.yaml", "Not a directory"),
        ("loop.yaml", "Too many levels of symbolic links"),
        ("x" * 300, "File name too long"),
    ):
        ended = run(*command, str(tmp_path / name))
        assert ended.returncode == 2
        assert ended.stderr.endswith(f"{name}: {words}\n")
        assert "malformed" not in ended.stderr


def test_a_fault_of_our_own_has_a_status_of_its_own() -> None:
    """It is never taken for an answer about pods."""
    program = (
        "import sys, dovetail.__main__ as door\n"
        "def fail(**_): raise RuntimeError('boom')\n"
        "door.app = fail\n"
        "door.main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    assert ended.returncode == 70
    assert "RuntimeError: boom" in ended.stderr


WRONG = [
    (["run", "--resync-seconds", "soon"], {}, "--resync-seconds: 'soon' has to be a number"),
    (["run", "--resync-seconds", "0.5"], {}, "--resync-seconds: '0.5' has to be 1 or more"),
    (["run", "--decision-seconds", "nan"], {}, "--decision-seconds: 'nan' has to be a finite number"),
    (["run", "--writers", "1.5"], {}, "--writers: '1.5' has to be a whole number"),
    (["run", "--writers", "65"], {}, "--writers: '65' has to be 64 or less"),
    (
        ["run", "--log-level", "loud"],
        {},
        "--log-level: 'loud' has to be 'debug', 'info', 'warning' or 'error'",
    ),
    (["run", "--listen", "here"], {}, "--listen: 'here' does not end in a colon"),
    (["run", "--scheduler-names", ","], {}, "--scheduler-names: no scheduler is named in ','"),
    (["run", "--feature-gates", "A=true"], {}, "--feature-gates: unknown feature gate 'A'"),
    (["run"], {"DOVETAIL_WRITERS": "many"}, "DOVETAIL_WRITERS: 'many' has to be a whole number"),
    (["run"], {"DOVETAIL_SHIPPED_MAPPINGS": "x"}, "DOVETAIL_SHIPPED_MAPPINGS: 'x' has to be true or false"),
    (["plan", "x", "--decision-seconds", "nan"], {}, "'--decision-seconds': nan has to be 0.001 or more"),
    (["plan", "x", "-o", "xml"], {}, "'--output' / '-o': 'xml' has to be text or json"),
    (["audit", "--settle", "x"], {}, "'--settle': 'x' has to be a number"),
    (
        ["audit"],
        {"DOVETAIL_DUAL_MODE_NODES": "x"},
        "'DOVETAIL_DUAL_MODE_NODES'): 'x' has to be exclude or allow",
    ),
    (["mappings", "-o", "xml"], {}, "'xml' has to be yaml or json"),
]


@pytest.mark.parametrize(("arguments", "variables", "words"), WRONG)
def test_a_wrong_value_is_named_with_its_setting(
    arguments: list[str], variables: dict[str, str], words: str
) -> None:
    """By flag or by variable, whichever gave it; with the value, and in words of our own."""
    ended = run(*arguments, **variables)
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "Value error" not in ended.stderr
    assert "Input should" not in ended.stderr
