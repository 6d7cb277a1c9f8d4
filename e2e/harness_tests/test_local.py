"""`make cluster` leaves a cluster for a person, `make cluster-down` ends it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

from e2e.harness.local import NODES
from e2e.harness.objects import ROOT


def call(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a person would."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)


def test_a_cluster_outlives_the_command_that_started_it(tmp_path: Path) -> None:
    """It is started once, answers to its kubeconfig, has the example nodes, and goes when it is told to."""
    home = tmp_path / "cluster"
    local = (sys.executable, "-m", "e2e.harness.local", "--home", str(home))
    try:
        shown = call(*local, "up").stdout
        assert call(*local, "up").stdout == shown

        kubeconfig = re.findall(r"^export KUBECONFIG=(.+)$", shown, re.MULTILINE)[-1]
        kubectl = str(Path(sys.executable).parent / "kubectl")
        nodes = call(kubectl, "--kubeconfig", kubeconfig, "get", "nodes", "-o", "yaml").stdout
        assert {item["metadata"]["name"] for item in yaml.safe_load(nodes)["items"]} == set(NODES)
    finally:
        ended = call(*local, "down").stderr

    assert ended == "5 programs ended\n"
    assert not home.exists()
    assert call(*local, "down").stderr == "0 programs ended\n"
