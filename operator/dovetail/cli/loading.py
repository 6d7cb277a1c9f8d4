"""The picture of a cluster that manifests draw, with everything in them that is wrong."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dovetail.api.placement import PriorityClass
from dovetail.cli.manifests import Manifest, Origin, Trouble, read_manifests
from dovetail.core.decisions import ObjectKey
from dovetail.core.dual_mode import describe
from dovetail.core.features import Features
from dovetail.core.world import World

SYSTEM_PRIORITIES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""The classes that every cluster has."""

MOST_NAMES = 20
"""So many nodes are named in one note."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A world out of manifests; `troubles` are in the order of the input, `notes` say what was assumed."""

    world: World
    troubles: tuple[Trouble, ...]
    notes: tuple[str, ...]


def load(
    paths: Iterable[str], features: Features, *, shipped_mappings: bool, exclude_dual_mode: bool
) -> Loaded:
    """Read manifests into a world in which nodes that only slices name exist."""
    world = World(
        features,
        shipped_mappings=shipped_mappings,
        assume_nodes=True,
        exclude_dual_mode=exclude_dual_mode,
    )
    manifests: dict[tuple[str, ObjectKey], Manifest] = {}
    troubles: list[Trouble] = []
    files: dict[str, None] = {}
    for found in read_manifests(paths):
        files[found.origin.file] = None
        if isinstance(found, Trouble):
            troubles.append(found)
        elif (first := manifests.get(_key(found))) is not None:
            troubles.append(_trouble(found, f"it is in the input twice, first in {_place(first.origin)}"))
        else:
            manifests[_key(found)] = found
    # Priorities are known once all classes are.
    ordered = sorted(manifests.values(), key=lambda manifest: manifest.kind == "Pod")
    notes: dict[str, None] = {}
    for manifest in ordered:
        body = _settled(world, manifest.body, notes) if manifest.kind == "Pod" else manifest.body
        world.put(manifest.kind, body)
    for (kind, key), problem in world.problems.items():
        troubles.append(_trouble(manifests[kind, key], problem.reason))
    troubles += _mapping_troubles(world, manifests)
    notes.update(dict.fromkeys(_dual_mode_notes(world)))
    return Loaded(world, tuple(_in_input_order(troubles, list(files))), tuple(notes))


def _settled(world: World, body: Mapping[str, Any], notes: dict[str, None]) -> Mapping[str, Any]:
    """A pod with what the API server would fill in: a UID and a priority."""
    metadata, spec = body["metadata"], body.get("spec")
    if not metadata.get("uid"):
        name = f"{metadata.get('namespace')}/{metadata.get('name')}"
        metadata = {**metadata, "uid": hashlib.sha256(name.encode()).hexdigest()[:32]}
    if isinstance(spec, Mapping) and spec.get("priority") is None:
        priority = _priority(world, spec.get("priorityClassName"), notes)
        spec = {**spec, "priority": priority}
    return {**body, "metadata": metadata, "spec": spec}


def _priority(world: World, name: object, notes: dict[str, None]) -> int:
    classes = [found for found in world.others["PriorityClass"].values() if isinstance(found, PriorityClass)]
    if not name:
        return max((found.value for found in classes if found.global_default), default=0)
    for found in classes:
        if found.metadata.name == name:
            return found.value
    if isinstance(name, str) and name in SYSTEM_PRIORITIES:
        return SYSTEM_PRIORITIES[name]
    notes[f"PriorityClass {name!r} is not in the input: its pods count with priority 0."] = None
    return 0


def _dual_mode_notes(world: World) -> Iterator[str]:
    """What nodes offer by device plugin and by DRA; those that offer the same are told of together."""
    nodes: dict[str, list[str]] = {}
    for state in world.nodes:
        if modes := world.inventory.dual_modes(state.name):
            nodes.setdefault(describe(modes), []).append(state.name)
    for offers, names in nodes.items():
        yield f"these nodes offer {offers}: {listed(names)}."


def listed(names: Sequence[str]) -> str:
    """The names, as far as one note holds them."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{', '.join(names[:MOST_NAMES])}{more}"


def _mapping_troubles(world: World, manifests: Mapping[tuple[str, ObjectKey], Manifest]) -> Iterable[Trouble]:
    """Mappings that cannot be used: against the rules, not compiling, or for an attribute that is taken."""
    reasons: dict[str, str] = dict(world.mappings.invalid)
    for name, older in world.mappings.duplicates.items():
        reasons.setdefault(name, f"its attribute is defined by the older DerivedAttribute {older!r}")
    for name, compiled in world.mappings.objects.items():
        if compiled.problems:
            reasons[name] = "; ".join(problem.message for problem in compiled.problems)
    for name, reason in reasons.items():
        yield _trouble(manifests["DerivedAttribute", ("", name)], reason)


def _key(manifest: Manifest) -> tuple[str, ObjectKey]:
    metadata = manifest.body["metadata"]
    return manifest.kind, (str(metadata.get("namespace") or ""), str(metadata["name"]))


def _trouble(manifest: Manifest, message: str) -> Trouble:
    return Trouble(manifest.origin, message, manifest.kind, str(manifest.body["metadata"]["name"]))


def _place(origin: Origin) -> str:
    return f"{origin.file}, document {origin.document}" if origin.document else origin.file


def _in_input_order(troubles: list[Trouble], files: list[str]) -> list[Trouble]:
    """By file as they were read, then by document."""
    return sorted(troubles, key=lambda trouble: (files.index(trouble.origin.file), trouble.origin.document))
