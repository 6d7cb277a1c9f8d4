"""Objects out of files, directories and standard input, each with the place it came from."""

import os
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typing_extensions import override

from dovetail.cli.known_kinds import home_of, preferred, unknown
from dovetail.cli.old_versions import modernize
from dovetail.cli.yaml_documents import read_documents
from dovetail.core.decisions import ObjectKey

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
MOST_NESTED_LISTS = 8
MOST_BYTES = 512 << 20
"""A file that is larger is none of manifests; some, such as /dev/zero, have no end."""

Key = tuple[str, ObjectKey]
"""Kind, and namespace with name."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A document of a file, counted from 1; 0 stands for the file as a whole."""

    file: str
    document: int = 0

    @override
    def __str__(self) -> str:
        return f"{self.file}, document {self.document}" if self.document else self.file


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object as it was written, lists taken apart."""

    origin: Origin
    kind: str
    body: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The object's namespace; empty where it has none."""
        return str(self.body["metadata"].get("namespace") or "")

    @property
    def key(self) -> Key:
        """What no two objects share."""
        return self.kind, (self.namespace, self.name)

    @property
    def title(self) -> str:
        """The object in words."""
        return f"{self.kind} {self.namespace + '/' if self.namespace else ''}{self.name}"

    def trouble(self, message: str) -> "Trouble":
        """What is wrong with it."""
        return Trouble(self.origin, message, self.kind, self.name)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that could not be read or understood, and where it is."""

    origin: Origin
    message: str
    kind: str = ""
    name: str = ""

    @override
    def __str__(self) -> str:
        what = " ".join(part for part in (self.kind, self.name) if part)
        return f"{self.origin}: {what + ': ' if what else ''}{self.message}"


@dataclass(frozen=True, slots=True)
class Ignored:
    """An object that means nothing here; `kind` is as kubectl writes it: with the group, where it has one."""

    origin: Origin
    kind: str


Found = Manifest | Trouble | Ignored


def read_manifests(paths: Iterable[str]) -> Iterator[Found]:
    """Every object, in the order of the input; a file that is named again is read once."""
    read: set[str] = set()
    for path in paths:
        for file in _files(path):
            if isinstance(file, Trouble):
                yield file
            elif (resolved := os.path.realpath(file)) not in read:
                read.add(resolved)
                yield from _read_file(file)


def _files(path: str) -> Iterator[str | Trouble]:
    """A directory stands for the manifests in it and below, sorted; hidden ones are left out."""
    if path == STDIN or not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for some names
        yield path
        return
    troubles: list[OSError] = []
    found = []
    for folder, folders, files in os.walk(path, onerror=troubles.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(folder, name) for name in files if _is_manifest(name)]
    yield from map(str, sorted(found))
    yield from (Trouble(Origin(str(error.filename or path)), _words(error)) for error in troubles)
    if not found and not troubles:
        yield Trouble(Origin(path), f"no file ends in {', '.join(SUFFIXES)}")


def _is_manifest(name: str) -> bool:
    return not name.startswith(".") and name.lower().endswith(SUFFIXES)


def _words(error: OSError) -> str:
    return error.strerror or str(error)


def _read_file(file: str) -> Iterator[Found]:
    try:
        text = _decoded(_content(file))
    except OSError as error:
        yield Trouble(Origin(file), _words(error))
        return
    except ValueError as error:
        yield Trouble(Origin(file), str(error))
        return
    for document in read_documents(text):
        origin = Origin(file, document.number)
        if document.reason:
            yield Trouble(origin, document.reason)
        else:
            yield from _objects(origin, document.value)


def _content(file: str) -> bytes:
    """All of a file; raises ValueError where it is larger than any dump, or has no end."""
    with nullcontext(sys.stdin.buffer) if file == STDIN else Path(file).open("rb") as source:
        content = source.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
    return content


def _decoded(content: bytes) -> str:
    """UTF-8, or UTF-16 that says so in its first bytes, as some shells write it."""
    encoding = "utf-16" if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        name = encoding.removesuffix("-sig").upper()
        raise ValueError(f"it is not {name}: {error.reason} at byte {error.start}") from error
    if (position := text.find("\0")) >= 0:
        raise ValueError(f"it is no text: a zero at character {position}")
    return text


def _objects(origin: Origin, value: object, depth: int = 0) -> Iterator[Found]:
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


def _list(origin: Origin, value: Mapping[str, Any], depth: int) -> Iterator[Found]:
    if depth >= MOST_NESTED_LISTS:
        yield Trouble(origin, f"lists are nested more than {MOST_NESTED_LISTS} deep", value["kind"])
        return
    item_kind = value["kind"].removesuffix("List")
    for item in value.get("items") or ():
        # The items of a typed list (PodList) need not repeat what the list says of them.
        if isinstance(item, Mapping) and item_kind:
            item = {"apiVersion": value["apiVersion"], "kind": item_kind, **item}  # noqa: PLW2901
        yield from _objects(origin, item, depth + 1)


def _object(origin: Origin, kind: str, api_version: str, body: Mapping[str, Any]) -> Iterator[Found]:
    group, _, version = api_version.rpartition("/")
    home = home_of(kind, group)
    metadata = body.get("metadata")
    name = _name(body)
    if home is None:
        reason = unknown(kind, api_version)
        yield Trouble(origin, reason, name=name) if reason else Ignored(origin, kind_in(kind, group))
    elif not isinstance(metadata, Mapping):
        yield Trouble(origin, "metadata is missing", kind)
    elif version not in home.versions:
        yield Trouble(origin, f"apiVersion {api_version} is not read; use {preferred(home)}", kind, name)
    elif not name:
        yield Trouble(origin, "metadata.name: it has none", kind)
    elif not isinstance(metadata.get("namespace") or "", str):
        yield Trouble(origin, "metadata.namespace: it is no string", kind, name)
    else:
        settled = {**metadata, "name": name} | ({} if home.namespaced else {"namespace": ""})
        if home.namespaced and not metadata.get("namespace"):
            settled["namespace"] = "default"
        yield Manifest(origin, kind, modernize(kind, version, {**body, "metadata": settled}))


def kind_in(kind: str, group: str) -> str:
    """A kind with its group, as kubectl writes it."""
    return f"{kind}.{group}" if group else kind


def _name(body: Mapping[str, Any]) -> str:
    """The object's name; what a name is generated from, with room for what the API server would append."""
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping):
        return ""
    name, prefix = metadata.get("name"), metadata.get("generateName")
    if isinstance(name, str) and name:
        return name
    return f"{prefix}xxxxx" if isinstance(prefix, str) and prefix else ""
