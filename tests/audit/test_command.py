"""`dovetail audit` reads a dump or a cluster, prints what is wrong, and answers by its exit code."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from dovetail.cli.app import app
from dovetail.embedded import EmbeddedCluster
from tests.audit.cluster import claim, consumer, pod, published, result

Body = dict[str, Any]
VERSIONS = {"Pod": "v1", "Node": "v1", "DeviceOwnership": "dovetail.dev/v1alpha1"}
TWICE = [published("d0"), claim("a", "d0"), claim("b", "d0")]


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["audit", *arguments], catch_exceptions=False)


def manifest(body: Body) -> Body:
    """The object as kubectl would print it."""
    return {"apiVersion": VERSIONS.get(body["kind"], "resource.k8s.io/v1"), **body}


def dump(folder: Path, *bodies: Body) -> str:
    """A file with these objects."""
    path = folder / "dump.yaml"
    path.write_text(yaml.safe_dump_all([manifest(body) for body in bodies]))
    return str(path)


async def run_against(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str
) -> Result:
    """Run the command against a cluster of this process."""
    cluster.kubeconfig(folder / "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    return await asyncio.to_thread(run, *arguments)


def test_a_sound_dump_passes(tmp_path: Path) -> None:
    """Exit code 0, and what was read is said: an empty dump must not look like a sound cluster."""
    result = run("--from", dump(tmp_path, published("d0", "d1"), claim("a", "d0")))
    assert (result.exit_code, result.stdout) == (0, "Nothing found in 1 claim, 2 devices, 0 pods.\n")


def test_a_planted_fault_is_printed(tmp_path: Path) -> None:
    """Exit code 1, a line per finding, and a line that counts."""
    result = run("--from", dump(tmp_path, *TWICE))
    assert result.exit_code == 1
    assert result.stdout == (
        "DeviceHeldTwice: device gpu.example.com/n1/d0 is held 2 times, by default/a and default/b.\n"
        "1 finding in 2 claims, 1 device, 0 pods.\n"
    )


def test_findings_as_json(tmp_path: Path) -> None:
    """The JSON holds the fault, its sentence and its data."""
    result = run("--from", dump(tmp_path, *TWICE), "-o", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "findings": [
            {
                "fault": "DeviceHeldTwice",
                "sentence": "device gpu.example.com/n1/d0 is held 2 times, by default/a and default/b.",
                "claims": [
                    {"namespace": "default", "name": "a"},
                    {"namespace": "default", "name": "b"},
                ],
                "device": {"driver": "gpu.example.com", "pool": "n1", "device": "d0"},
                "wanted": "2",
            }
        ],
        "read": {"claims": 2, "devices": 1, "pods": 0},
    }


def test_a_list_and_a_folder_are_read(tmp_path: Path) -> None:
    """`kubectl get -o yaml` prints a List; a dump may be several files."""
    listed = {"apiVersion": "v1", "kind": "List", "items": [manifest(body) for body in TWICE[1:]]}
    (tmp_path / "claims.json").write_text(json.dumps(listed))
    (tmp_path / "slices.yaml").write_text(yaml.safe_dump(manifest(TWICE[0])))
    assert run("--from", str(tmp_path)).exit_code == 1


@pytest.mark.parametrize("text", ["kind: [", "just words", "kind: ResourceClaim"])
def test_what_cannot_be_read_is_an_error(tmp_path: Path, text: str) -> None:
    """Exit code 2 and a word about the file: a part that is missing may hold devices."""
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    result = run("--from", str(path))
    assert result.exit_code == 2
    assert "broken.yaml" in result.stderr


def test_a_missing_file_is_an_error() -> None:
    """Exit code 2."""
    result = run("--from", "no/such/file.yaml")
    assert result.exit_code == 2
    assert "no/such/file.yaml" in result.stderr


def test_a_malformed_claim_is_a_finding(tmp_path: Path) -> None:
    """What a malformed object holds is not known, so the audit does not pass."""
    broken = claim("a", "d0")
    broken["status"]["allocation"]["devices"]["results"] = "all of them"
    result = run("--from", dump(tmp_path, published("d0"), broken))
    assert result.exit_code == 1
    assert result.stdout.startswith("Unreadable: ResourceClaim default/a is malformed")


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """What somebody wrote into a dump cannot drive the terminal of who audits it."""
    hostile = claim("a\x1b[2J", "d0")
    result = run("--from", dump(tmp_path, hostile))
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    assert "default/a\N{REPLACEMENT CHARACTER}[2J" in result.stdout


def test_no_cluster_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Exit code 2 where there is nothing to audit."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert run().exit_code == 2


async def test_a_cluster_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without --from, the cluster of KUBECONFIG is audited; the optional kinds need not be served."""
    async with EmbeddedCluster(definitions=False) as cluster:
        cluster.load(*(manifest(body) for body in TWICE))
        found = await run_against(cluster, monkeypatch, tmp_path)
    assert (found.exit_code, found.stdout.splitlines()[-1]) == (
        1,
        "1 finding in 2 claims, 1 device, 0 pods.",
    )


async def test_what_passes_is_not_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A reservation for a pod that a controller removes between the two readings is no finding."""
    async with EmbeddedCluster() as cluster:
        cluster.load(manifest(published("d0")), manifest(claim("a", "d0", reserved_for=[consumer("p")])))
        readings: list[None] = []

        def released_in_between() -> None:
            readings.append(None)
            if len(readings) == 2:
                released = {"reservedFor": None, "allocation": None}
                cluster.patch("ResourceClaim", "a", {"status": released}, status=True)

        cluster.faults.before("list", "resourceclaims", released_in_between, times=2)
        result = await run_against(cluster, monkeypatch, tmp_path, "--settle", "0.01")
    assert (result.exit_code, len(readings)) == (0, 2)


async def test_what_lasts_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A reservation for a pod that is gone counts when it is there in both readings."""
    async with EmbeddedCluster() as cluster:
        cluster.load(manifest(published("d0")), manifest(claim("a", "d0", reserved_for=[consumer("p")])))
        result = await run_against(cluster, monkeypatch, tmp_path, "--settle", "0.01")
    assert result.exit_code == 1
    assert result.stdout.startswith("ReservedForGonePod: claim default/a is reserved for pod default/p")


def test_what_is_held_beside_a_device_plugin_is_found_unless_allowed(tmp_path: Path) -> None:
    """T-18, R-G4: the option says that plugins keep to other devices."""
    gpu = result("d0", driver="gpu.nvidia.com")
    user = pod("p", node="n1", takes={"nvidia.com/gpu": "1"})
    path = dump(tmp_path, published("d0", driver="gpu.nvidia.com"), claim("a", gpu), user)
    assert "GivenByPluginToo: pod default/p has nvidia.com/gpu" in run("--from", path).stdout
    assert run("--from", path, "--dual-mode-nodes", "allow").exit_code == 0
