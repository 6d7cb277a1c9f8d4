"""A plan made from a dump of a cluster is what the operator then does there."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner

from dovetail.cli.app import app
from dovetail.cli.yaml_documents import read_documents
from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import Body, aligned, claim, condition, device_class, node, plain, pod, template

SLICES = Path(__file__).parents[1] / "data" / "slices"
KINDS = ("Node", "ResourceSlice", "DeviceClass", "ResourceClaimTemplate", "ResourceClaim", "Pod")


def published(*names: str) -> list[Body]:
    """Slices of real drivers, without the owners that would have to exist."""
    texts = [(SLICES / f"{name}.yaml").read_text() for name in names]
    slices = [document.value for text in texts for document in read_documents(text)]
    for body in slices:
        body["metadata"].pop("ownerReferences", None)
    return slices


def cluster_of_many() -> list[Body]:
    """Two nodes with GPUs and NICs of different makers, one that is cordoned, and pods that want them."""
    slices = published(
        "azure-gb300__gpu-nvidia", "azure-gb300__dranet", "oci-gb200__gpu-nvidia", "oci-gb200__dranet"
    )
    hosts = sorted({body["spec"]["nodeName"] for body in slices})
    classes = [device_class("gpu", "gpu.nvidia.com"), device_class("nic", "dra.net")]
    wide = aligned("gpu", "nic", gpu=2, nic=2)
    claims = {
        "shared": aligned(),
        "first": aligned(),
        "wide": wide,
        "impossible": aligned("gpu", "nic", gpu=3),
        "plain": plain("gpu"),
        "busy": aligned(),
        "nowhere": aligned(),
    }
    pods = [
        pod("a", claim="shared", priority=90, cpu="3"),
        pod("b", claim="shared", priority=80, cpu="3"),
        pod("c", claim="first", priority=70),
        pod("d", claim="wide", priority=60, cpu="3"),
        pod("e", claim="impossible", priority=50),
        # Held, or it would be a rival for the devices, which the operator waits for.
        pod("f", claim="plain", priority=40, gates=("example.com/hold",)),
        pod("g", claim="busy", priority=30, cpu="3"),
        pod("h", claim="nowhere", priority=20, nodeSelector={"zone": "nowhere"}),
        pod("i", priority=10),
    ]
    return [
        *slices,
        *(node(host) for host in hosts),
        node("spare", unschedulable=True),
        *classes,
        template(),
        *(claim(name, spec) for name, spec in claims.items()),
        *pods,
    ]


def plan_of(cluster: EmbeddedCluster, folder: Path) -> list[dict[str, Any]]:
    """What `dovetail plan` says of a dump of the cluster."""
    items = [body for kind in KINDS for body in cluster.objects(kind)]
    dump = folder / "dump.yaml"
    dump.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    result = CliRunner().invoke(app, ["plan", str(dump), "-o", "json"])
    answer = json.loads(result.stdout)
    assert answer["problems"] == []
    pods: list[dict[str, Any]] = answer["pods"]
    return pods


def allocations_of(cluster: EmbeddedCluster, name: str) -> dict[str, Body]:
    """What the claims of a pod have, by the pod's entries, without the time."""
    body = cluster.get("Pod", name)
    made = {
        each["name"]: each.get("resourceClaimName")
        for each in body["status"].get("resourceClaimStatuses", ())
    }
    found = {}
    for entry in body["spec"]["resourceClaims"]:
        held = cluster.get("ResourceClaim", entry.get("resourceClaimName") or made[entry["name"]])
        allocation = dict(held["status"]["allocation"])
        allocation.pop("allocationTimestamp")
        found[entry["name"]] = allocation
    return found


async def test_the_operator_does_what_the_plan_says(
    bare: EmbeddedCluster, operator: OperatorStarter, tmp_path: Path
) -> None:
    """Pod by pod: the same devices on the same node, or the same sentence."""
    # Nodes come with their status, which a mere creation would drop.
    bare.load(*(body for body in cluster_of_many() if body["kind"] == "Node"))
    for body in cluster_of_many():
        if body["kind"] != "Node":
            bare.create(body)
    planned = plan_of(bare, tmp_path)
    assert {each["outcome"] for each in planned} == {"fits", "doesNotFit", "notOurs"}

    await operator()

    for each in planned:
        name = each["name"]
        if each["outcome"] == "fits":
            await bare.wait_for("Pod", partial(_is_open, name), timeout_seconds=30)
            planned_claims = {entry["name"]: entry["allocation"] for entry in each["claims"]}
            assert allocations_of(bare, name) == planned_claims, name
        elif each["outcome"] == "doesNotFit":
            told = await bare.wait_for("Pod", partial(_is_told, name), timeout_seconds=30)
            assert condition(told)["message"] == each["message"], name


def _is_open(name: str, body: Body) -> bool:
    return body["metadata"]["name"] == name and not body["spec"].get("schedulingGates")


def _is_told(name: str, body: Body) -> bool:
    return body["metadata"]["name"] == name and bool(condition(body))
