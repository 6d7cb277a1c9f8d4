"""Without a cluster to connect to, each command says so in one sentence, and fails."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REASON = (
    "reading the cluster's address failed: "
    "KUBECONFIG is not set, ~/.kube/config is the default, and there is no such file"
)


def without_cluster(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a process whose home holds no kubeconfig, outside of any pod."""
    lacking = ("KUBECONFIG", "KUBERNETES_SERVICE_HOST")
    kept = {name: value for name, value in os.environ.items() if name not in lacking}
    return subprocess.run(
        [sys.executable, "-m", "dovetail", *arguments],
        env=kept | {"HOME": str(home), "PYTHONPATH": "operator"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(("command", "code"), [("audit", 2), ("ungate", 1)])
def test_a_command_for_people_says_it_in_one_line(tmp_path: Path, command: str, code: int) -> None:
    """Nothing of the client library's own words is printed."""
    ended = without_cluster(tmp_path, command)

    assert (ended.returncode, ended.stdout) == (code, "")
    assert ended.stderr == f"error: {REASON}\n"


def test_the_operator_says_it_in_one_line_of_its_log(tmp_path: Path) -> None:
    """Neither Kopf nor Python add anything about what was not started."""
    ended = without_cluster(tmp_path, "run")

    (line,) = ended.stderr.splitlines()
    assert (json.loads(line)["event"], json.loads(line)["reason"]) == ("operator_cannot_start", REASON)
    assert (ended.returncode, ended.stdout) == (1, "")
