"""The picture of a cluster that manifests draw, with everything in them that is wrong."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dovetail.api.placement import PriorityClass
from dovetail.cli.admission import Admitted, admit_all
from dovetail.cli.creation import (
    GATE_ASSUMED,
    namespaces_that_end,
    namespaces_that_opt_in,
    not_created,
    with_gate,
)
from dovetail.cli.gathering import gather, listed
from dovetail.cli.known_kinds import WORKLOADS
from dovetail.cli.manifests import Key, Manifest, Trouble
from dovetail.cli.refused import Refused
from dovetail.cli.workloads import expand
from dovetail.core.dual_mode import describe
from dovetail.core.features import Features
from dovetail.core.world import MODELS, World

SYSTEM_PRIORITIES: Mapping[str, int] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""The classes that every cluster has."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A world out of manifests; `troubles` are in the order of the input, `notes` say what was assumed.

    `refused` are objects that the API server would not take: slices and classes count all the same, so
    that what else stands in a pod's way is told.
    """

    world: World
    troubles: tuple[Trouble, ...]
    notes: tuple[str, ...]
    refused: tuple[Refused, ...] = ()
    ending: frozenset[str] = frozenset()
    """The namespaces that are being deleted."""


NOT_THERE: frozenset[str] = frozenset({"Pod", "ResourceClaim", "ResourceClaimTemplate"})
"""Kinds of which a refused object counts as wrong; those of other kinds count as they are written."""


def load(
    paths: Sequence[str],
    features: Features,
    *,
    shipped_mappings: bool,
    exclude_dual_mode: bool,
    lenient: bool = False,
) -> Loaded:
    """Read manifests into a world in which nodes that only slices name exist.

    `lenient`: fields that Kubernetes does not know are no problem.
    """
    world = World(
        features,
        shipped_mappings=shipped_mappings,
        assume_nodes=True,
        exclude_dual_mode=exclude_dual_mode,
    )
    gathered = gather(paths)
    admitted = admit_all(gathered.manifests, features, lenient=lenient)
    notes = dict.fromkeys(gathered.notes()) | admitted.notes
    ending = namespaces_that_end(admitted.manifests.values())
    for key, trouble in not_created(admitted.manifests.values(), ending).items():
        admitted.refused.setdefault(key, trouble.message)
        admitted.troubles.append(trouble)
    known = {key: each for key, each in admitted.manifests.items() if each.kind in MODELS}
    for manifest in known.values():
        if manifest.kind != "Pod":
            _put(world, manifest, admitted)
    expanded = expand(admitted.standing(WORKLOADS), world.nodes, ending)
    notes.update(dict.fromkeys(expanded.notes))
    for manifest in expanded.volume_claims:
        world.put(manifest.kind, manifest.body)
    _put_pods(world, expanded.pods, admitted, notes)
    known.update((manifest.key, manifest) for manifest in (*expanded.volume_claims, *expanded.pods))
    troubles = [*gathered.troubles, *admitted.troubles, *expanded.troubles]
    troubles += dict.fromkeys(
        known[key].trouble(problem.reason)
        for key, problem in world.problems.items()
        if key not in admitted.refused
    )
    troubles += _mapping_troubles(world, known)
    notes.update(dict.fromkeys(_dual_mode_notes(world)))
    refused = tuple(Refused(admitted.manifests[key], reason) for key, reason in admitted.refused.items())
    return Loaded(world, gathered.in_input_order(troubles), tuple(notes), refused, ending)


def _put_pods(world: World, pods: Iterable[Manifest], admitted: Admitted, notes: dict[str, None]) -> None:
    """Priorities are known once all classes are, and nodes before the pods of DaemonSets."""
    opted_in = namespaces_that_opt_in(admitted.manifests.values())
    for manifest in pods:
        body = with_gate(manifest.body, manifest.namespace in opted_in)
        if body is not manifest.body:
            notes[GATE_ASSUMED] = None
        _put(world, replace(manifest, body=_settled(world, body, notes)), admitted)


def _put(world: World, manifest: Manifest, admitted: Admitted) -> None:
    reason = admitted.refused.get(manifest.key)
    if reason is not None and manifest.kind in NOT_THERE:
        world.refuse(manifest.kind, manifest.body, reason)
    else:
        world.put(manifest.kind, manifest.body)


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


def _mapping_troubles(world: World, manifests: Mapping[Key, Manifest]) -> Iterable[Trouble]:
    """Mappings that cannot be used: against the rules, not compiling, or for an attribute that is taken."""
    reasons: dict[str, str] = dict(world.mappings.invalid)
    for name, older in world.mappings.duplicates.items():
        reasons.setdefault(name, f"its attribute is defined by the older DerivedAttribute {older!r}")
    for name, compiled in world.mappings.objects.items():
        if compiled.problems:
            reasons[name] = "; ".join(problem.message for problem in compiled.problems)
    for name, reason in reasons.items():
        yield manifests["DerivedAttribute", ("", name)].trouble(reason)
