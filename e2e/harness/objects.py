"""Manifests that tests build on: nodes with devices, classes, templates, claims and pods."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from e2e.harness.kube import Object

ROOT = Path(__file__).resolve().parents[2]
SLICES = ROOT / "tests" / "data" / "slices"
GATE = "dovetail.dev/allocation"

AZURE_GB300 = ("azure-gb300__gpu-nvidia", "azure-gb300__dranet", "azure-gb300__dra-cpu__main-grouped")
DGX_H100_TOMORROW = (
    "dgx-h100__gpu-nvidia__main",
    "dgx-h100__dranet__main",
    "dgx-h100__dra-cpu__main-grouped",
    "dgx-h100__dra-memory",
)


def load(path: Path) -> tuple[Object, ...]:
    """All manifests of a YAML file; Lists are unfolded."""
    found: list[Object] = []
    for document in yaml.safe_load_all(path.read_text()):
        if document:
            found += document["items"] if document["kind"].endswith("List") else [document]
    return tuple(found)


def slices_of(files: Iterable[str], node: str | None = None) -> tuple[Object, ...]:
    """The ResourceSlices of files below `tests/data/slices`, as published by `node` where one is given.

    Owner references are left out: the garbage collector would follow them to nodes that do not exist.
    """
    found = [item for name in files for item in load(SLICES / f"{name}.yaml")]
    if node is not None:
        names = {item["spec"].get("nodeName") for item in found} - {None}
        text = json.dumps(found)
        for name in names:
            text = text.replace(name, node)
        found = json.loads(text)
    for item in found:
        item["metadata"].pop("ownerReferences", None)
    return tuple(item for item in found if item["kind"] == "ResourceSlice")


def classes_for(slices: Iterable[Object]) -> tuple[Object, ...]:
    """One DeviceClass per driver, named like the driver, that takes all its devices."""
    return tuple(device_class(driver) for driver in sorted({item["spec"]["driver"] for item in slices}))


def device_class(name: str, expression: str | None = None) -> Object:
    """A DeviceClass; without an expression it takes the devices of the driver of that name."""
    selector = {"cel": {"expression": expression or f'device.driver == "{name}"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [selector]},
    }


def resource_slice(node: str, driver: str, devices: Sequence[Object], *, generation: int = 1) -> Object:
    """The one slice of a driver's pool on a node; the pool has the node's name."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
            "devices": list(devices),
        },
    }


def device(name: str, **attributes: str | int | bool | Sequence[int] | Sequence[str]) -> Object:
    """A device with attributes of its driver's domain; lists need the gate DRAListTypeAttributes."""
    return {"name": name, "attributes": {key: _attribute(value) for key, value in attributes.items()}}


def _attribute(value: str | int | bool | Sequence[int] | Sequence[str]) -> Object:
    match value:
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case str():
            return {"string": value}
        case _:
            return {"ints" if isinstance(value[0], int) else "strings": list(value)}


def claim_spec(
    requests: Mapping[str, str | Object],
    *,
    match: str | Sequence[str] = (),
    constraints: Sequence[Object] = (),
    config: Sequence[Object] = (),
) -> Object:
    """The spec of a claim: request names with a class each, or with the content of `exactly`.

    `match` names attributes that all devices of the claim must share.
    """
    exactly = {
        name: {"deviceClassName": wish} if isinstance(wish, str) else wish for name, wish in requests.items()
    }
    shared = [match] if isinstance(match, str) else match
    devices: Object = {
        "requests": [{"name": name, "exactly": wish} for name, wish in exactly.items()],
        "constraints": [*({"matchAttribute": attribute} for attribute in shared), *constraints],
        "config": list(config),
    }
    return {"devices": {key: value for key, value in devices.items() if value}}


def template(name: str, spec: Object) -> Object:
    """A ResourceClaimTemplate."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": spec},
    }


def claim(name: str, spec: Object) -> Object:
    """A ResourceClaim that a person made."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": spec,
    }


def pod(
    name: str,
    *,
    templates: Mapping[str, str] | None = None,
    claims: Mapping[str, str] | None = None,
    gates: Sequence[str] = (GATE,),
    cpu: str = "100m",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A pod with claims, by entry name: made from templates, or made by a person.

    It carries Dovetail's scheduling gate unless `gates` says otherwise.
    Further fields of the spec are given by keyword.
    """
    entries = [
        *({"name": entry, "resourceClaimTemplateName": made} for entry, made in (templates or {}).items()),
        *({"name": entry, "resourceClaimName": made} for entry, made in (claims or {}).items()),
    ]
    container = {
        "name": "main",
        "image": "registry.invalid/none",
        "resources": {"requests": {"cpu": cpu}, "claims": [{"name": entry["name"]} for entry in entries]},
    }
    body = {
        "containers": [container],
        "resourceClaims": entries,
        "schedulingGates": [{"name": gate} for gate in gates],
        "terminationGracePeriodSeconds": 0,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {key: value for key, value in (body | spec).items() if value not in ([], None)},
    }


def mapping(name: str, attribute: str, rules: Sequence[Object], **spec: Any) -> Object:
    """A DerivedAttribute."""
    return {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "DerivedAttribute",
        "metadata": {"name": name},
        "spec": {"attribute": attribute, "rules": list(rules)} | spec,
    }


def node(
    name: str,
    *,
    cpu: str = "64",
    memory: str = "256Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Object] = (),
    unschedulable: bool = False,
    declared_features: Sequence[str] = (),
) -> Object:
    """A node that is Ready, with its hostname label."""
    resources = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [ready],
            "declaredFeatures": list(declared_features),
        },
    }
