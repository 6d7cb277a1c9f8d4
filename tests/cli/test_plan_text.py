"""What `dovetail plan` prints for people can be read with colours and without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import SLICES, plan, write
from tests.planner.worlds import (
    Body,
    allocated,
    claim,
    devices_spec,
    hardware,
    named,
    node,
    pod,
    request,
    template,
)

ROOT = Path(__file__).parents[2]


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with pipes for everything."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "operator")}
    return subprocess.run(
        [sys.executable, "-m", "dovetail", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=60,
    )


def everything(folder: Path) -> Path:
    """A pod of every outcome, and a problem."""
    plain = devices_spec(request("gpu", "gpu.example.com"), match=None)
    return write(
        folder,
        *hardware("n1"),
        node("full", unschedulable=True),
        template(),
        claim("plain", spec=plain),
        pod("a", template="template", claims=[named("plain", "plain")]),
        pod("b", template="template"),
        pod("c", template="template", gates=["example.com/quota"]),
        pod("d", template="gone"),
        pod("e", gated=False),
        pod("f", containers="none"),
    )


EXPECTED = """\
default/a fits on n1
  plain (claim plain, allocated by kube-scheduler; devices may differ)
    gpu: gpu.example.com/n1/dev-0
  devices (claim to be generated)
    gpu: gpu.example.com/n1/dev-1
    nic: nic.example.com/n1/dev-1
    aligned: dovetail.dev/numaNode = 1 (gpu, nic)
default/b does not fit
"""


def test_every_outcome_has_its_paragraph(tmp_path: Path) -> None:
    """Node, devices and what they have in common; or the sentence. At the end, the sum."""
    result = plan(str(everything(tmp_path)))
    assert result.exit_code == 2
    assert result.stdout.startswith(EXPECTED)
    assert "\ndefault/c waits\n  OtherGates: " in result.stdout
    assert "\ndefault/d cannot be served\n  ClaimsNotCreated: " in result.stdout
    assert "\ndefault/e is not Dovetail's\n" in result.stdout
    assert result.stdout.endswith(
        "5 pods: 1 fits, 1 does not fit, 1 waits, 1 cannot be served, 1 is not Dovetail's.\n"
    )


def test_problems_go_to_standard_error(tmp_path: Path) -> None:
    """One line each, with file, document, kind and name."""
    result = plan(str(everything(tmp_path)))
    place = f"problem: {tmp_path / 'objects.yaml'}, document "
    assert result.stderr.startswith(place)
    assert "Pod f: spec.containers: a list is expected" in result.stderr
    assert "problem" not in result.stdout


def test_a_pipe_gets_no_colours_and_no_folded_lines(tmp_path: Path) -> None:
    """In a process of its own, as people run it."""
    result = run("plan", str(everything(tmp_path)))
    assert result.returncode == 2
    assert "\x1b" not in result.stdout + result.stderr
    refusal = result.stdout.split("default/b does not fit\n")[1].split("\n")[0]
    assert "dovetail.dev/numaNode" in refusal
    assert refusal.endswith("Besides, 1 node is cordoned.")


def test_the_slices_of_a_real_node_can_be_piped_in() -> None:
    """Exit status 0 and nothing on standard error."""
    slices = "\n---\n".join(
        (SLICES / f"azure-gb300__{name}.yaml").read_text() for name in ("gpu-nvidia", "dranet")
    )
    classes = "".join(
        f"---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: {name}}}\n"
        f"spec: {{selectors: [{{cel: {{expression: 'device.driver == \"{driver}\"'}}}}]}}\n"
        for name, driver in (("gpu", "gpu.nvidia.com"), ("nic", "dra.net"))
    )
    pods = """---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu-nic}
spec:
  spec:
    devices:
      requests:
      - {name: gpu, exactly: {deviceClassName: gpu}}
      - {name: nic, exactly: {deviceClassName: nic}}
      constraints: [{matchAttribute: dovetail.dev/numaNode}]
---
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  containers: [{name: main, image: trainer, resources: {claims: [{name: devices}]}}]
  resourceClaims: [{name: devices, resourceClaimTemplateName: gpu-nic}]
"""
    result = run("plan", "-", stdin=f"{slices}\n{classes}{pods}")
    assert result.stderr == ""
    assert result.returncode == 0
    assert result.stdout.splitlines()[0] == "default/trainer fits on aks-gb300-vmss000001"
    assert "Note: only slices name these nodes" in result.stdout


def test_nothing_to_plan_is_said(tmp_path: Path) -> None:
    """Exit status 0."""
    result = plan(str(write(tmp_path, node("n1"))))
    assert result.exit_code == 0
    assert result.stdout == "No pod is waiting for a node.\n"


@pytest.mark.parametrize("hostile", ["[red]x[/red]", "[/]", ":smile:", "x" * 5000])
def test_what_people_write_is_never_markup(tmp_path: Path, hostile: str) -> None:
    """Schedulers, gates and messages are printed as they are."""
    elsewhere: Body = pod("p", template="template", schedulerName=hostile)
    result = plan(str(write(tmp_path, *hardware("n1"), template(), elsewhere)))
    assert result.exit_code == 0
    assert hostile in result.stdout
    gated: Body = pod("p", template="template", gates=[hostile])
    result = plan(str(write(tmp_path, *hardware("n1"), template(), gated)))
    assert result.exit_code == 2
    assert hostile in result.stderr


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    """What a manifest says cannot move the cursor or ring the bell."""
    gated: Body = pod("p", template="template", gates=["a\x1b[2Jb\x07"])
    result = plan(str(write(tmp_path, *hardware("n1"), template(), gated)))
    assert "\x1b" not in result.stdout
    assert "\x07" not in result.stdout


def test_a_command_loads_only_what_it_needs() -> None:
    """`plan` knows no framework and no client; help for all commands is there without a cluster."""
    program = (
        "import sys; from dovetail.cli.app import app; import dovetail.cli.plan;"
        "print([name for name in ('kopf', 'kubernetes_asyncio', 'aiohttp') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "operator")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout == "[]\n"
    listed = run("--help")
    assert listed.returncode == 0
    for command in ("run", "plan", "mappings", "ungate"):
        assert command in listed.stdout


def test_an_unknown_command_is_refused() -> None:
    """With the exit status of wrong usage."""
    result = run("plann")
    assert result.returncode == 2
    assert "plann" in result.stderr


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize(
    "written",
    [
        "[" * 100_000,
        '[{"attribute": "x", "requests": 5, "value": true}]',
        '[{"attribute": {"x": 1}, "requests": ["gpu"], "value": 1}]',
        '[{"attribute": "x", "requests": [{}], "value": 1}]',
        '[{"attribute": "x", "value": {}}]',
        '[{"attribute": "x", "value": NaN}]',
    ],
)
def test_an_annotation_that_is_not_ours_is_not_told(tmp_path: Path, output: str, written: str) -> None:
    """Whoever makes a claim can write any text there: it ends no plan."""
    held = claim(
        status=allocated("n1", "dev-0"), metadata={"annotations": {"dovetail.dev/alignment": written}}
    )
    folder = write(tmp_path, *hardware("n1"), held, pod(claims=[named("claim")]))

    result = plan(str(folder), "-o", output)

    assert result.exit_code == 0
    assert '"alignment": []' in result.output if output == "json" else "aligned" not in result.output
