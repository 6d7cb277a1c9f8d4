"""`make cluster` leaves a cluster for a person, `make cluster-down` ends it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

from e2e.harness import local


def test_a_cluster_outlives_the_command_that_started_it(tmp_path: Path) -> None:
    """It is started once, answers to its kubeconfig, has the example nodes, and goes when it is told to."""
    home = tmp_path / "cluster"
    try:
        shown = local.up(home)
        assert local.up(home) == shown

        kubeconfig = re.findall(r"^export KUBECONFIG=(.+)$", shown, re.MULTILINE)[-1]
        kubectl = [str(Path(sys.executable).parent / "kubectl"), "--kubeconfig", kubeconfig]
        nodes = subprocess.run(
            [*kubectl, "get", "nodes", "-o", "yaml"], capture_output=True, text=True, check=True
        )
        names = {item["metadata"]["name"] for item in yaml.safe_load(nodes.stdout)["items"]}
        assert names == set(local.NODES)
    finally:
        ended = local.down(home)

    assert ended == 5
    assert not home.exists()
    assert local.down(home) == 0
