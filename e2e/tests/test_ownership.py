"""The fence of a DeviceOwnership on the real control plane: kube-scheduler stays off, we do not."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

from e2e.harness import Cluster, Object, condition, objects, running

DRIVER = "gpu.example.com"
ATTRIBUTE = "dovetail.example/numa"
MAPPING = objects.mapping(
    "numa", ATTRIBUTE, [{"driver": DRIVER, "expression": f'device.attributes["{DRIVER}"].numa'}]
)


def ownership(*entries: Object, name: str = "gpus") -> Object:
    """A DeviceOwnership; without entries, of all devices of the driver."""
    return {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "DeviceOwnership",
        "metadata": {"name": name},
        "spec": {"devices": list(entries) or [{"driver": DRIVER}]},
    }


async def prepare(cluster: Cluster, *, nodes: int = 1, devices: int = 2) -> str:
    """Nodes with equal devices, their class and the mapping; returns a namespace with the templates.

    Template `plain` is for kube-scheduler, template `ours` for Dovetail.
    """
    for number in range(nodes):
        await cluster.add_node(f"n{number}")
        found = [objects.device(f"d{index}", numa=index % 2) for index in range(devices)]
        await cluster.apply(objects.resource_slice(f"n{number}", DRIVER, found))
    await cluster.apply(objects.device_class(DRIVER), MAPPING)
    namespace = await cluster.namespace()
    plain = objects.claim_spec({"gpu": DRIVER})
    ours = objects.claim_spec({"gpu": DRIVER}, match=ATTRIBUTE)
    await cluster.apply(objects.template("plain", plain), objects.template("ours", ours), namespace=namespace)
    return namespace


async def fence(cluster: Cluster, manifest: Object | None = None) -> Object:
    """Apply an ownership and wait until it is fenced."""
    await cluster.apply(manifest or ownership())
    name = (manifest or ownership())["metadata"]["name"]
    return await cluster.kube.wait_for(
        "DeviceOwnership", name, lambda item: (condition(item, "Fenced") or {}).get("status") == "True"
    )


def plain_pod(name: str, **spec: Any) -> Object:
    """A pod that kube-scheduler serves alone."""
    return objects.pod(name, templates={"gpu": "plain"}, gates=(), **spec)


def unschedulable(pod: Object) -> bool:
    """Whether kube-scheduler tried the pod in vain."""
    return (condition(pod, "PodScheduled") or {}).get("reason") == "Unschedulable"


async def test_kube_scheduler_stays_off_owned_devices(cluster: Cluster) -> None:
    """A plain claim finds no device behind the fence, and is named in the object's status."""
    namespace = await prepare(cluster)
    await cluster.operator(audit_seconds=1)
    owner = await fence(cluster)
    assert owner["status"]["fenced"] == {"devices": 2, "pools": 1}

    await cluster.kube.create(plain_pod("plain"), namespace)

    await cluster.kube.wait_for("Pod", "plain", unschedulable, namespace)
    owner = await cluster.kube.wait_for("DeviceOwnership", "gpus", lambda item: item["status"].get("stops"))
    assert [(entry["kind"], entry["count"]) for entry in owner["status"]["stops"]] == [("Plain", 1)]


async def test_the_toleration_of_the_status_passes_the_fence(cluster: Cluster) -> None:
    """A claim with the toleration that the object names is served by kube-scheduler."""
    namespace = await prepare(cluster)
    await cluster.operator()
    owner = await fence(cluster)
    wish = {"deviceClassName": DRIVER, "tolerations": [owner["status"]["toleration"]]}
    await cluster.apply(objects.template("passes", objects.claim_spec({"gpu": wish})), namespace=namespace)
    await cluster.kube.create(objects.pod("p", templates={"gpu": "passes"}, gates=()), namespace)
    await cluster.kube.wait_for("Pod", "p", running, namespace)


async def test_running_pods_do_not_notice_a_fence(cluster: Cluster) -> None:
    """A pod that has its device keeps it when the device is fenced."""
    namespace = await prepare(cluster)
    await cluster.operator()
    await cluster.kube.create(plain_pod("early"), namespace)
    await cluster.kube.wait_for("Pod", "early", running, namespace)
    await fence(cluster)
    await cluster.kube.stays("Pod", "early", running, namespace, seconds=2)


async def test_the_fence_goes_with_its_object(cluster: Cluster) -> None:
    """When the object is deleted its rules go, and kube-scheduler serves who waited."""
    namespace = await prepare(cluster)
    await cluster.operator()
    await fence(cluster)
    await cluster.kube.create(plain_pod("waits"), namespace)
    await cluster.kube.wait_for("Pod", "waits", unschedulable, namespace)
    await cluster.kube.delete("DeviceOwnership", "gpus")
    await cluster.kube.wait_for("Pod", "waits", running, namespace)
    assert await cluster.kube.list("DeviceTaintRule") == ()


async def test_a_claim_of_ours_gets_a_fenced_device(cluster: Cluster) -> None:
    """What is fenced against kube-scheduler is there for pods that Dovetail serves."""
    namespace = await prepare(cluster)
    await cluster.operator()
    await fence(cluster)
    await cluster.kube.create(objects.pod("ours", templates={"gpu": "ours"}), namespace)
    await cluster.kube.wait_for("Pod", "ours", running, namespace)


def held(claims: tuple[Object, ...]) -> list[tuple[str, str]]:
    """Pool and name of every device that a claim holds."""
    return [
        (result["pool"], result["device"])
        for claim in claims
        for result in ((claim.get("status") or {}).get("allocation") or {})
        .get("devices", {})
        .get("results", ())
    ]


async def test_no_device_is_given_twice_behind_a_fence(cluster: Cluster) -> None:
    """1,000 pods, theirs and ours in turns, on 500 devices: ours get all of them, and the audit is clean."""
    namespace = await prepare(cluster, nodes=50, devices=10)
    operator = await cluster.operator(audit_seconds=1, claim_generation="never")
    await fence(cluster)
    burst = [
        pod
        for number in range(500)
        for pod in (plain_pod(f"plain-{number}"), objects.pod(f"ours-{number}", templates={"gpu": "ours"}))
    ]

    await cluster.create_all(burst, namespace)
    await cluster.kube.wait_all(
        "Pod", lambda pods: sum(map(running, pods)) == 500, namespace, within=180, what="500 running pods"
    )

    pods = [pod for pod in await cluster.kube.list("Pod", namespace) if running(pod)]
    devices = held(await cluster.kube.list("ResourceClaim", namespace))
    assert {pod["metadata"]["name"].partition("-")[0] for pod in pods} == {"ours"}
    assert len(devices) == len(set(devices)) == 500
    assert [event for event in operator.events if event.get("event") == "audit_finding"] == []
    report = await audit(cluster)
    assert (report["read"]["devices"], report["findings"]) == (500, [])


async def test_the_audit_finds_a_planted_double_holding(cluster: Cluster) -> None:
    """Command, condition and metric name the device when a second claim holds it."""
    namespace = await prepare(cluster)
    operator = await cluster.operator(audit_seconds=1)
    await fence(cluster)
    await cluster.kube.create(objects.pod("ours", templates={"gpu": "ours"}), namespace)
    await cluster.kube.wait_for("Pod", "ours", running, namespace)
    assert (await audit(cluster))["findings"] == []

    (device,) = await plant(cluster, namespace)

    (finding,) = (await audit(cluster))["findings"]
    assert (finding["fault"], finding["device"]["device"]) == ("DeviceHeldTwice", device)
    owner = await cluster.kube.wait_for(
        "DeviceOwnership", "gpus", lambda item: (condition(item, "Clean") or {}).get("status") == "False"
    )
    assert device in (condition(owner, "Clean") or {})["message"]
    await operator.event("audit_finding", lambda event: event["fault"] == "DeviceHeldTwice")


async def plant(cluster: Cluster, namespace: str) -> list[str]:
    """Write the allocation of the one claim of a namespace into a second one; returns its devices."""
    (taken,) = await cluster.kube.list("ResourceClaim", namespace)
    spec = taken["spec"]
    twin = objects.claim("twin", spec)
    twin["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    stored = await cluster.kube.create(twin, namespace)
    stored["status"] = {"allocation": taken["status"]["allocation"]}
    await cluster.kube.replace(stored, "status")
    return [result["device"] for result in taken["status"]["allocation"]["devices"]["results"]]


async def audit(cluster: Cluster) -> Any:
    """What `dovetail audit` says of the cluster, run as a person runs it."""
    command = [sys.executable, "-m", "dovetail", "audit", "-o", "json", "--settle", "1"]
    environment = os.environ | {"KUBECONFIG": str(cluster.plane.kubeconfig)}
    done = await asyncio.to_thread(
        subprocess.run, command, env=environment, cwd=objects.ROOT, capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == bool(report["findings"])
    return report
