"""`dovetail ungate`: pods run when Dovetail is taken away."""

import asyncio

import pytest
from typer.testing import CliRunner, Result

from dovetail.cli.app import app
from dovetail.embedded import EmbeddedCluster
from tests.operator.worlds import is_gated, pairs, pod


async def ungate(*arguments: str) -> Result:
    """The command, beside the API server of this process."""
    return await asyncio.to_thread(CliRunner().invoke, app, ["ungate", *arguments])


async def test_our_gate_is_taken_from_all_pods_and_others_stay(bare: EmbeddedCluster) -> None:
    """Every pod is named; a gate of somebody else stays."""
    bare.load(*pairs())
    bare.create(pod("a"))
    bare.create(pod("b", gates=("dovetail.dev/allocation", "example.com/other")))
    bare.create(pod("c", gates=("example.com/other",)))

    said = await ungate()

    assert said.exit_code == 0
    assert "pod default/a: ungated" in said.output
    assert "2 pods ungated" in said.output
    assert not [body for body in bare.objects("Pod") if is_gated(body)]
    assert bare.get("Pod", "b")["spec"]["schedulingGates"] == [{"name": "example.com/other"}]


async def test_a_dry_run_changes_nothing(bare: EmbeddedCluster) -> None:
    """It names the pods only."""
    bare.create(pod("a"))

    said = await ungate("--dry-run")

    assert "pod default/a: gated" in said.output
    assert "1 pod carries the gate" in said.output
    assert is_gated(bare.get("Pod", "a"))


@pytest.mark.parametrize("status", [403, 409])
async def test_a_refusal_is_reported_and_the_others_go_on(bare: EmbeddedCluster, status: int) -> None:
    """One pod cannot be patched: it is named, the other is ungated, and the exit code is 1."""
    bare.create(pod("a"))
    bare.create(pod("b"))
    bare.faults.fail("PATCH", "pods", status=status)

    said = await ungate()

    assert said.exit_code == 1
    assert "1 pod ungated" in said.output
    assert len([body for body in bare.objects("Pod") if is_gated(body)]) == 1


async def test_without_a_cluster_it_says_so() -> None:
    """One line, exit code 1, no traceback."""
    said = await asyncio.to_thread(
        CliRunner(env={"KUBECONFIG": "/nonexistent/config"}).invoke, app, ["ungate"]
    )

    assert said.exit_code == 1
    assert "error:" in said.output
