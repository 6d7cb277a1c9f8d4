"""The steps that e2e/README.md tells a person to take work on the cluster of `make cluster`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.harness.objects import ROOT
from e2e.harness.processes import free_port
from tests.docs.pages import commands

README = ROOT / "e2e" / "README.md"
BIN = Path(sys.executable).parent
KOPF = "kopf run -m dovetail.app --standalone --all-namespaces"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a person who evaluated what `make cluster` printed."""
    local = f"{sys.executable} -m e2e.harness.local --home {tmp_path / 'cluster'}"
    mine = os.environ | {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "DOVETAIL_LISTEN": f"127.0.0.1:{free_port()}",
    }
    printed = run(f"{local} up", mine)
    yield mine | {"KUBECONFIG": printed.rpartition("export KUBECONFIG=")[2].strip()}
    run(f"{local} down", mine)


def run(words: str, environment: dict[str, str]) -> str:
    """Run a command as a shell does; returns its output."""
    done = subprocess.run(
        ["bash", "-c", words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def running(words: str, environment: dict[str, str]) -> Iterator[None]:
    """A command in a terminal of its own, ended as by Ctrl-C."""
    program, *arguments = words.split()
    process = subprocess.Popen([BIN / program, *arguments], cwd=ROOT, env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)
    assert process.returncode == 0


SHOWN = {
    "kubectl get resourceclaims": '"attribute":"dovetail.dev/numaNode"',
    "kubectl get pod simulator": "Nothing fits: ",
    "kubectl get devown": "True",
    "dovetail audit": "Nothing found in ",
    "dovetail ungate": "pod default/simulator: ungated",
}
"""What the steps show, by the beginning of the command; the others only have to succeed."""


def test_the_steps_of_the_page_work(shell: dict[str, str]) -> None:
    """From the definitions to the last pod ungated, every command does what the page says."""
    words = [command.words for command in commands(README)]
    first, last = words.index("kubectl apply --server-side -f crds/"), words.index("dovetail ungate")
    run(words[first], shell)
    with running(words[first + 1], shell):
        for step in words[first + 2 : last + 1]:
            shown = next((text for start, text in SHOWN.items() if step.startswith(start)), "")
            assert shown in run(step, shell), step


def test_kopf_starts_the_same_operator(shell: dict[str, str]) -> None:
    """`kopf run`, as the page has it, serves the first example."""
    assert f"`{KOPF}`" in README.read_text()
    with running(KOPF, shell):
        run("kubectl apply -f docs/examples/gpu-and-nic.yaml", shell)
        run("kubectl wait pod trainer --for=condition=Ready --timeout=60s", shell)
