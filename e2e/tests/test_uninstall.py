"""Dovetail is taken away as docs/operators/uninstall.md says, and nobody who runs is harmed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest_asyncio

from e2e.harness import OPERATOR_NAMESPACE, Cluster, condition, objects, running
from e2e.tests.test_ownership import fence, prepare, unschedulable

POLICY = f"{OPERATOR_NAMESPACE}-dovetail-gate"
DEFINITIONS = ("derivedattributes.dovetail.dev", "deviceownerships.dovetail.dev")


@pytest_asyncio.fixture(loop_scope="session")
async def removable(cluster: Cluster) -> AsyncIterator[Cluster]:
    """A cluster from which Dovetail may be removed; it is installed again for the next test."""
    yield cluster
    await cluster.install()


async def ungate(cluster: Cluster) -> str:
    """Run `dovetail ungate`; returns what it printed."""
    environment = os.environ | {"KUBECONFIG": str(cluster.plane.kubeconfig)}
    command = [sys.executable, "-m", "dovetail", "ungate"]
    done = await asyncio.to_thread(
        subprocess.run, command, env=environment, cwd=objects.ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_taking_dovetail_away_harms_no_running_pod(removable: Cluster) -> None:
    """Policy, ownership, operator, gates, definitions go in turn: who runs goes on, nobody stays gated."""
    cluster, kube = removable, removable.kube
    namespace = await prepare(cluster, devices=1)
    operator = await cluster.operator()
    await fence(cluster)
    await kube.create(objects.pod("runs", templates={"gpu": "ours"}), namespace)
    await kube.wait_for("Pod", "runs", running, namespace)
    claims = await kube.list("ResourceClaim", namespace)
    await kube.create(objects.pod("waits", templates={"gpu": "ours"}), namespace)
    await kube.wait_for(
        "Pod", "waits", lambda pod: condition(pod, "dovetail.dev/Allocated") is not None, namespace
    )

    await kube.delete("MutatingAdmissionPolicyBinding", f"{POLICY}-namespaces")
    await kube.delete("MutatingAdmissionPolicyBinding", f"{POLICY}-pods")
    await kube.delete("MutatingAdmissionPolicy", POLICY)
    await kube.delete("DeviceOwnership", "gpus")
    await kube.wait_all("DeviceTaintRule", lambda rules: not rules)
    await operator.stop()
    printed = await ungate(cluster)
    for definition in DEFINITIONS:
        await kube.delete("CustomResourceDefinition", definition)
        await kube.wait_gone("CustomResourceDefinition", definition)

    assert f"pod {namespace}/waits: ungated" in printed
    await kube.wait_for("Pod", "waits", unschedulable, namespace)
    await kube.stays("Pod", "runs", running, namespace, seconds=2)
    assert (await kube.get("ResourceClaim", claims[0]["metadata"]["name"], namespace))["status"] == claims[0][
        "status"
    ]
    await kube.delete("Pod", "runs", namespace)
    await kube.wait_gone("ResourceClaim", claims[0]["metadata"]["name"], namespace)
