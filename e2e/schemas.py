"""The fields of Kubernetes' objects, from the OpenAPI documents of a running API server.

`python -m e2e.schemas` writes `operator/dovetail/core/validation/fields.json`, which `dovetail plan` reads:
every type by name, each field with the name of its type; `[]T` is a list of T, `{}T` a map to T.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from e2e.harness.controlplane import ControlPlane
from e2e.harness.kube import Kube
from e2e.harness.programs import Options

FILE: Final = Path(__file__).parents[1] / "operator" / "dovetail" / "core" / "validation" / "fields.json"

DOCUMENTS: Final = {
    "api/v1": (
        "Pod",
        "PodTemplate",
        "ReplicationController",
        "Node",
        "Namespace",
        "PersistentVolume",
        "PersistentVolumeClaim",
    ),
    "apis/apps/v1": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "apis/batch/v1": ("CronJob", "Job"),
    "apis/resource.k8s.io/v1": (
        "DeviceClass",
        "DeviceTaintRule",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceSlice",
    ),
    "apis/scheduling.k8s.io/v1": ("PriorityClass",),
    "apis/storage.k8s.io/v1": ("CSINode", "StorageClass"),
}
"""What `dovetail plan` reads, by the path below `/openapi/v3/`."""

_PREFIXES: Final = ("io.k8s.apimachinery.pkg.apis.", "io.k8s.apimachinery.pkg.", "io.k8s.api.")
_LEAVES: Final = {
    "api.resource.Quantity": "Quantity",
    "meta.v1.FieldsV1": "any",
    "meta.v1.MicroTime": "Time",
    "meta.v1.Time": "Time",
    "runtime.RawExtension": "any",
    "util.intstr.IntOrString": "IntOrString",
}

Schema = Mapping[str, Any]


def compact(documents: Mapping[str, Schema]) -> dict[str, Any]:
    """The types that the kinds of `DOCUMENTS` are made of."""
    types: dict[str, dict[str, str]] = {}
    kinds: dict[str, str] = {}
    for path, names in DOCUMENTS.items():
        schemas = documents[path]["components"]["schemas"]
        api_version = path.split("/", 1)[1]
        for name in names:
            full = _full_name(schemas, api_version, name)
            kinds[f"{api_version}/{name}"] = _short(full)
            _add(types, schemas, full)
    return {"kinds": dict(sorted(kinds.items())), "types": dict(sorted(types.items()))}


def text(found: Mapping[str, Any]) -> str:
    """The file's text: one line for each kind and type."""
    parts = []
    for section in ("kinds", "types"):
        lines = [f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in found[section].items()]
        parts.append(f"  {json.dumps(section)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


async def read(kube: Kube) -> dict[str, Any]:
    """What the API server says now."""
    return compact({path: await kube.request("GET", f"/openapi/v3/{path}") for path in DOCUMENTS})


def _full_name(schemas: Schema, api_version: str, kind: str) -> str:
    for name, schema in schemas.items():
        for known in schema.get("x-kubernetes-group-version-kind", ()):
            group = f"{known['group']}/{known['version']}" if known["group"] else known["version"]
            if (group, known["kind"]) == (api_version, kind):
                return str(name)
    raise LookupError(f"the API server serves no {kind} of {api_version}")


def _add(types: dict[str, dict[str, str]], schemas: Schema, full: str) -> None:
    """The type and every type below it."""
    if _short(full) in types:
        return
    fields: dict[str, str] = {}
    types[_short(full)] = fields
    for field, schema in sorted(schemas[full].get("properties", {}).items()):
        fields[field] = _type_of(schema)
        for below in _references(schema):
            if _short(below) not in _LEAVES:
                _add(types, schemas, below)


def _type_of(schema: Schema) -> str:
    if reference := _reference(schema):
        return _LEAVES.get(_short(reference), _short(reference))
    match schema:
        case {"type": "array", "items": items}:
            return f"[]{_type_of(items)}"
        case {"type": "object", "additionalProperties": items}:
            return f"{{}}{_type_of(items)}"
        case {"type": "object"}:
            return "any"
        case {"format": "int32" | "int64" | "byte" as name} | {"type": "string" | "boolean" as name}:
            return str(name)
        case _:
            raise ValueError(f"no type is known for {schema}")


def _reference(schema: Schema) -> str:
    (inner,) = schema.get("allOf", (schema,))
    return str(inner.get("$ref", "")).removeprefix("#/components/schemas/")


def _references(schema: Schema) -> Iterable[str]:
    if reference := _reference(schema):
        yield reference
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, Mapping):
            yield from _references(inner)


def _short(full: str) -> str:
    for prefix in _PREFIXES:
        if full.startswith(prefix):
            return full.removeprefix(prefix)
    return full


async def _write() -> None:
    async with ControlPlane(Options(controllers=(), scheduler=False, kwok=False)) as plane:
        FILE.write_text(text(await read(plane.kube)))


if __name__ == "__main__":
    asyncio.run(_write())
