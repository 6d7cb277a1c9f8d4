"""The pods that the workloads of an input ask for, named and owned as their controllers would have it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from dovetail.cli.gathering import listed
from dovetail.cli.known_kinds import WORKLOADS
from dovetail.cli.manifests import Key, Manifest, Trouble
from dovetail.cli.workload_owners import Batch, Known, nothing
from dovetail.cli.workload_parts import FieldWrong
from dovetail.cli.workload_pods import batch_of
from dovetail.core.nodes import NodeBook

MOST_OF_ONE = 1_000
"""So many pods of one workload are planned."""

MOST_IN_ALL = 5_000
"""So many pods of all workloads are planned."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """All pods, those of the input and those that workloads ask for, in the order of the input."""

    pods: tuple[Manifest, ...]
    volume_claims: tuple[Manifest, ...]
    troubles: tuple[Trouble, ...]
    notes: tuple[str, ...]


def expand(
    manifests: Mapping[Key, Manifest], nodes: NodeBook, ending: Collection[str] = frozenset()
) -> Expanded:
    """Add what is missing of each workload: its pods that are in the input already count.

    `ending` are namespaces that are being deleted: no pods are made in them.
    """
    known = Known(manifests, nodes)
    pods: dict[Key, Manifest] = {}
    claims: dict[Key, Manifest] = {}
    troubles: list[Trouble] = []
    cut, silent, later, left = [], [], [], MOST_IN_ALL
    for manifest in manifests.values():
        if manifest.kind == "Pod":
            pods[manifest.key] = manifest
        if manifest.kind not in WORKLOADS:
            continue
        try:
            batch = (
                nothing("its namespace is being deleted")
                if manifest.namespace in ending
                else batch_of(known, manifest)
            )
            made = list(_first(manifest, batch, min(MOST_OF_ONE, left)))
        except FieldWrong as error:
            troubles.append(manifest.trouble(str(error)))
            continue
        planned = {each.key: each for each in made if each.kind == "Pod"}
        claims.update((each.key, each) for each in made if each.kind != "Pod" and each.key not in manifests)
        pods.update((key, each) for key, each in planned.items() if key not in manifests)
        left -= len(planned)
        if batch.why:
            silent.append(f"{manifest.title} ({batch.why})")
        if batch.later:
            later.append(f"{manifest.title} ({batch.later})")
        if len(planned) < batch.total:
            cut.append(f"{manifest.title} ({len(planned)} of {batch.total})")
    return Expanded(
        tuple(pods.values()), tuple(claims.values()), tuple(troubles), tuple(_notes(cut, silent, later))
    )


def _first(workload: Manifest, batch: Batch, most: int) -> Iterator[Manifest]:
    """The objects for the first pods of a workload."""
    for body in batch.objects:
        if most <= 0:
            return
        most -= body["kind"] == "Pod"
        yield Manifest(workload.origin, body["kind"], body)


def _notes(cut: list[str], silent: list[str], later: list[str]) -> Iterator[str]:
    if cut:
        yield (
            f"at most {MOST_OF_ONE} pods of a workload, and {MOST_IN_ALL} in all, are planned: {listed(cut)}."
        )
    if silent:
        yield f"no pods are planned for {listed(silent)}."
    if later:
        yield f"pods that a rollout makes only once old pods have ended are not planned: {listed(later)}."
