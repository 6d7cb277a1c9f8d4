"""Objects out of files, directories and standard input, each with the place it came from."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dovetail.cli.old_versions import modernize
from dovetail.cli.yaml_documents import read_documents

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
MOST_NESTED_LISTS = 8


@dataclass(frozen=True, slots=True)
class Origin:
    """A document of a file, counted from 1; 0 stands for the file as a whole."""

    file: str
    document: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object as it was written, lists taken apart."""

    origin: Origin
    kind: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that could not be read or understood, and where it is."""

    origin: Origin
    message: str
    kind: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Home:
    """Where objects of a kind live: group, versions that are read, and whether they have a namespace."""

    group: str
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = False


_DRA = ("v1", "v1beta2", "v1beta1")
_HOMES: Mapping[str, _Home] = {
    "Pod": _Home("", namespaced=True),
    "Node": _Home(""),
    "Namespace": _Home(""),
    "PersistentVolume": _Home(""),
    "PersistentVolumeClaim": _Home("", namespaced=True),
    "ResourceClaim": _Home("resource.k8s.io", _DRA, namespaced=True),
    "ResourceClaimTemplate": _Home("resource.k8s.io", _DRA, namespaced=True),
    "DeviceClass": _Home("resource.k8s.io", _DRA),
    "ResourceSlice": _Home("resource.k8s.io", _DRA),
    "DeviceTaintRule": _Home("resource.k8s.io", ("v1", "v1beta2", "v1alpha3")),
    "DerivedAttribute": _Home("dovetail.dev", ("v1alpha1",)),
    "DeviceOwnership": _Home("dovetail.dev", ("v1alpha1",)),
    "PriorityClass": _Home("scheduling.k8s.io"),
    "StorageClass": _Home("storage.k8s.io"),
    "CSINode": _Home("storage.k8s.io"),
}


def read_manifests(paths: Iterable[str]) -> Iterator[Manifest | Trouble]:
    """Every object of the kinds that matter, in the order of the input; other kinds are passed over."""
    for path in paths:
        for file in _files(path):
            if isinstance(file, Trouble):
                yield file
            else:
                yield from _read_file(file)


def _files(path: str) -> Iterator[str | Trouble]:
    """A directory stands for the manifests in it and below, sorted; hidden ones are left out."""
    if path == STDIN or not Path(path).is_dir():
        yield path
        return
    found = [file for file in sorted(Path(path).rglob("*")) if _is_manifest(file, Path(path))]
    yield from map(str, found)
    if not found:
        yield Trouble(Origin(path), f"no file ends in {', '.join(SUFFIXES)}")


def _is_manifest(file: Path, root: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(root).parts)
    return not hidden and file.suffix.lower() in SUFFIXES and not file.is_dir()


def _read_file(file: str) -> Iterator[Manifest | Trouble]:
    try:
        content = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
        text = content.decode("utf-8-sig")
    except OSError as error:
        yield Trouble(Origin(file), error.strerror or str(error))
        return
    except UnicodeDecodeError as error:
        yield Trouble(Origin(file), f"it is not UTF-8: {error.reason} at byte {error.start}")
        return
    for document in read_documents(text):
        origin = Origin(file, document.number)
        if document.reason:
            yield Trouble(origin, document.reason)
        else:
            yield from _objects(origin, document.value)


def _objects(origin: Origin, value: object, depth: int = 0) -> Iterator[Manifest | Trouble]:
    if not isinstance(value, Mapping):
        yield Trouble(origin, "it is no Kubernetes object: a mapping with apiVersion and kind is expected")
        return
    kind, version = value.get("kind"), value.get("apiVersion")
    if not isinstance(kind, str) or not kind or not isinstance(version, str) or not version:
        missing = "kind" if not isinstance(kind, str) or not kind else "apiVersion"
        yield Trouble(origin, f"it is no Kubernetes object: it has no {missing}", name=_name(value))
    elif kind.endswith("List") and isinstance(value.get("items", ()), list | tuple | None):
        yield from _list(origin, value, depth)
    else:
        yield from _object(origin, kind, version, value)


def _list(origin: Origin, value: Mapping[str, Any], depth: int) -> Iterator[Manifest | Trouble]:
    if depth >= MOST_NESTED_LISTS:
        yield Trouble(origin, f"lists are nested more than {MOST_NESTED_LISTS} deep", value["kind"])
        return
    item_kind = value["kind"].removesuffix("List")
    for item in value.get("items") or ():
        # The items of a typed list (PodList) need not repeat what the list says of them.
        if isinstance(item, Mapping) and item_kind:
            item = {"apiVersion": value["apiVersion"], "kind": item_kind, **item}  # noqa: PLW2901
        yield from _objects(origin, item, depth + 1)


def _object(
    origin: Origin, kind: str, api_version: str, body: Mapping[str, Any]
) -> Iterator[Manifest | Trouble]:
    group, _, version = api_version.rpartition("/")
    home = _HOMES.get(kind)
    if home is None or home.group != group:
        return
    metadata = body.get("metadata")
    name = _name(body)
    if not isinstance(metadata, Mapping):
        yield Trouble(origin, "metadata is missing", kind)
    elif version not in home.versions:
        yield Trouble(origin, f"apiVersion {api_version} is not read; use {group}/v1", kind, name)
    elif not name:
        yield Trouble(origin, "metadata.name: it has none", kind)
    else:
        settled = {**metadata, "name": name} | ({} if home.namespaced else {"namespace": ""})
        if home.namespaced and not metadata.get("namespace"):
            settled["namespace"] = "default"
        yield Manifest(origin, kind, modernize(kind, version, {**body, "metadata": settled}))


def _name(body: Mapping[str, Any]) -> str:
    """The object's name; what a name is generated from, with room for what the API server would append."""
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping):
        return ""
    name, prefix = metadata.get("name"), metadata.get("generateName")
    if isinstance(name, str) and name:
        return name
    return f"{prefix}xxxxx" if isinstance(prefix, str) and prefix else ""
