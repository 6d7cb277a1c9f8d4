"""`dovetail demo` tells the truth, quickly, and says so when it cannot."""

import io
import json
import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from rich.console import Console

from dovetail.demo import world
from dovetail.demo.play import new_cluster, play
from dovetail.embedded import EmbeddedCluster

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "data" / "slices"
SHIPPED = ROOT / "operator" / "dovetail" / "demo" / "worlds"
LONGEST_SECONDS = 15


def told(*options: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a person would, in a pipe and far away from the repository."""
    return subprocess.run(
        [sys.executable, "-m", "dovetail", "demo", *options],
        cwd=Path.home(),
        env=os.environ | {"PYTHONPATH": str(ROOT / "operator"), "DOVETAIL_SHIPPED_MAPPINGS": "false"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_demo_ends_well_and_in_time() -> None:
    """Exit code 0, plain text, nothing on standard error, and less than 15 seconds of one processor.

    The time is the processor's, so that a busy machine does not fail the test.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = told()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (done.returncode, done.stderr) == (0, "")
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < LONGEST_SECONDS
    assert "\x1b" not in done.stdout
    assert "Checked against the API server" in done.stdout
    for wish in world.WISHES:
        assert f"Pod {wish.pod} arrives" in done.stdout
    assert done.stdout.count("appears, made from the template") == len(world.WISHES) + 1
    assert done.stdout.count("  runs on ") == len(world.WISHES)


def test_the_operator_speaks_when_asked_to() -> None:
    """With `--verbose` the log of the operator is on standard error, and the story is the same."""
    done = told("--verbose")
    assert done.returncode == 0
    assert "operator_ready" in done.stderr


async def _played(cluster: EmbeddedCluster) -> tuple[int, str]:
    heard = io.StringIO()
    code = await play(Console(file=heard, width=80), cluster, patience_seconds=1.0)
    return code, heard.getvalue()


async def test_a_pod_that_never_runs_fails_the_demo() -> None:
    """Without anything that binds pods, the demo ends with 1 and names the pod."""
    code, heard = await _played(EmbeddedCluster(claim_controller=True))
    assert code == 1
    assert "The demo failed: pod trainer-0 does not run" in heard


async def test_refused_writes_fail_the_demo() -> None:
    """When no allocation can be written, the demo ends with 1 and tells no verdict."""
    cluster = new_cluster()
    cluster.faults.fail("PUT", "resourceclaims/status", status=422, times=1000)
    code, heard = await _played(cluster)
    assert code == 1
    assert "Checked against" not in heard


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_shipped_slices_are_the_tested_ones(path: Path) -> None:
    """Each slice file of the demo is the file that the tests of the mappings use."""
    assert path.read_bytes() == (DATA / path.name).read_bytes()


def test_the_shipped_places_are_the_expected_ones() -> None:
    """`numa.json` says of each device what `expected.json` says, and nothing else."""
    expected = json.loads((DATA / "expected.json").read_text())
    places = {
        (body["spec"]["driver"], body["spec"]["pool"]["name"], key.partition("#")[2]): derived["numaNode"]
        for path in SHIPPED.glob("*.yaml")
        for body in world.slices()
        for key, derived in expected[path.name].items()
        if key.startswith(body["metadata"]["name"] + "#") and "numaNode" in derived
    }
    assert dict(world.numa_nodes()) == places


def test_an_installed_wheel_has_the_worlds(tmp_path: Path) -> None:
    """The wheel holds every file that the demo reads."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"dovetail/demo/worlds/{path.name}" for path in SHIPPED.iterdir()} <= names
