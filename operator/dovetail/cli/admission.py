"""The objects of an input as the API server would store them, and those that it would refuse."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from dovetail.cli.manifests import Key, Manifest, Trouble
from dovetail.core.features import Features
from dovetail.core.validation import ADMIN_LABEL, Admission, admit, is_stored

DRA = "resource.k8s.io"


@dataclass(slots=True)
class Admitted:
    """`manifests` are all objects, filled in; `refused` says why those of some keys would not be stored."""

    manifests: dict[Key, Manifest] = field(default_factory=dict)
    refused: dict[Key, str] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)

    def standing(self, kinds: Container[str]) -> dict[Key, Manifest]:
        """All objects, without those of some kinds that are refused."""
        return {
            key: manifest
            for key, manifest in self.manifests.items()
            if key not in self.refused or manifest.kind not in kinds
        }


def admit_all(manifests: Mapping[Key, Manifest], features: Features, *, lenient: bool) -> Admitted:
    """Judge each object as the API server of Kubernetes 1.37 does when it is created.

    What an API server has stored already is taken as it is, save for fields that nobody knows;
    with `lenient` those are notes.
    """
    admitted = Admitted()
    admins = frozenset(_admins(manifests))
    for key, manifest in manifests.items():
        version = str(manifest.body.get("apiVersion", ""))
        # Objects of older versions have the form of v1 by now.
        version = f"{DRA}/v1" if version.startswith(f"{DRA}/") else version
        admission = admit(
            version,
            manifest.kind,
            manifest.body,
            features,
            admin=manifest.namespace in admins,
            keep_lists=True,
            stored=is_stored(manifest.body),
        )
        admitted.manifests[key] = Manifest(manifest.origin, manifest.kind, admission.body)
        _tell(admitted, manifest, admission, lenient=lenient)
    return admitted


def _admins(manifests: Mapping[Key, Manifest]) -> Iterator[str]:
    """The namespaces whose claims may ask for admin access."""
    for manifest in manifests.values():
        labels = manifest.body["metadata"].get("labels") if manifest.kind == "Namespace" else None
        if isinstance(labels, Mapping) and labels.get(ADMIN_LABEL) == "true":
            yield manifest.name


def _tell(admitted: Admitted, manifest: Manifest, admission: Admission, *, lenient: bool) -> None:
    refusals = [*admission.faults] if lenient else [*admission.unknown, *admission.faults]
    admitted.troubles += [manifest.trouble(str(fault)) for fault in refusals]
    for fault in admission.unknown if lenient else ():
        said = str(fault)
        admitted.notes[f"{manifest.title}: {said if said.endswith('?') else f'{said}.'}"] = None
    for gate, name in admission.dropped:
        admitted.notes[f"{manifest.title}: {name} is left out, since {gate} is off."] = None
    if refusals:
        admitted.refused[manifest.key] = str(refusals[0])
