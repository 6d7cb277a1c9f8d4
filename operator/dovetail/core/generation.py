"""Which claims a pod needs from its templates, and what they look like (G5-G25).

The names differ from those of kube-controller-manager only in their last five characters:
a hash instead of random ones, so that creating a claim twice is harmless (design, section 2.2).
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from dovetail.api.claims import POD_CLAIM_NAME, DeviceRequest, ResourceClaimTemplate
from dovetail.api.pods import Pod
from dovetail.core.decisions import ObjectKey
from dovetail.core.features import Features
from dovetail.core.references import State
from dovetail.core.world import World

LONGEST_PREFIX = 57
"""The API server appends five characters to `generateName` and allows for 62 (G10)."""

_SUFFIX_LENGTH = 5
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names: no vowels, so that no words appear."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create this claim, then record it. `body` is complete: name, owner, annotation, labels, spec."""

    entry: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Adopt:
    """A claim that was made for the entry exists and is not recorded yet: record it (G20)."""

    entry: str
    claim: str


@dataclass(frozen=True, slots=True)
class Impossible:
    """No claim can be made.

    The Event is `FailedResourceClaimCreation`, its text `PodResourceClaim <entry>: <message>` (G15).
    """

    entry: str
    message: str


Step = Create | Adopt | Impossible


def steps_for(world: World, pod: Pod) -> tuple[Step, ...]:
    """What is missing for the pod's templates, in the order of its entries; empty where nothing is (G2, G5).

    Handling of the pod stops at the first `Impossible`, which is then the last step.
    A pod that is being deleted, or is done, gets no claims.
    """
    if pod.metadata.deletion_timestamp is not None or pod.is_done:
        return ()
    return tuple(_until_impossible(_steps(world, pod)))


def statuses_for(pod: Pod, made: Mapping[str, str]) -> list[dict[str, str]]:
    """The whole list for server-side apply of `status.resourceClaimStatuses` (G25).

    `made` is the claim's name by entry, for what was created or adopted now.
    """
    known = {
        status.name: status.resource_claim_name
        for status in pod.status.resource_claim_statuses
        if status.resource_claim_name
    }
    return [{"name": entry, "resourceClaimName": claim} for entry, claim in sorted({**known, **made}.items())]


def claim_name(pod: str, entry: str, pod_uid: str, attempt: int = 0) -> str:
    """The name of the claim for an entry: at most 62 characters, the same for the same arguments."""
    digest = hashlib.sha256(f"{pod_uid}\0{entry}\0{attempt}".encode()).digest()
    suffix = "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:_SUFFIX_LENGTH])
    return name_prefix(pod, entry) + suffix


def name_prefix(pod: str, entry: str) -> str:
    """The `generateName` that kube-controller-manager would use (G10).

    Where that would cut a pod's name behind a dot, which makes an invalid name, the dot goes too.
    """
    whole = f"{pod}-{entry}-"
    length = len(whole)
    if length <= LONGEST_PREFIX:
        return whole
    pod_part = pod[: len(pod) * LONGEST_PREFIX // length]
    return f"{pod_part.rstrip('.')}-{entry[: len(entry) * LONGEST_PREFIX // length]}"


def claim_body(template: Mapping[str, Any], pod: Pod, entry: str, name: str) -> dict[str, Any]:
    """The claim that a template gives a pod, made from the template as it was read (G10-G13).

    Nothing of the template is shared with the result at its top levels, so that neither changes the other.
    """
    wanted = _mapping(template, "spec")
    metadata = _mapping(wanted, "metadata")
    annotations = {**_mapping(metadata, "annotations"), POD_CLAIM_NAME: entry}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.metadata.name,
        "uid": pod.metadata.uid,
        "controller": True,
    }
    labels = dict(_mapping(metadata, "labels"))
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": pod.metadata.namespace,
            "annotations": annotations,
            "ownerReferences": [owner],
        }
        | ({"labels": labels} if labels else {}),
        "spec": dict(_mapping(wanted, "spec")),
    }


def _steps(world: World, pod: Pod) -> Iterator[Step]:
    statuses = pod.status.resource_claim_statuses
    recorded = {(status.name, status.resource_claim_name) for status in statuses}
    used = {status.resource_claim_name for status in statuses}
    for entry in world.claims_of_pod(pod):
        match entry.state:
            case State.FOUND if entry.template and entry.key and (entry.name, entry.key[1]) not in recorded:
                yield Adopt(entry.name, entry.key[1])
            case State.NOT_CREATED | State.NO_TEMPLATE if entry.template:
                yield _create(world, pod, entry.name, entry.template, used)
            case State.UNSUPPORTED:
                yield Impossible(entry.name, "neither a claim nor a template is named: API unsupported")
            case _:
                continue


def _until_impossible(steps: Iterator[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        if isinstance(step, Impossible):
            return


def _create(world: World, pod: Pod, entry: str, template: ObjectKey, used: Collection[str | None]) -> Step:
    read = world.templates.get(template)
    raw = world.raw("ResourceClaimTemplate", *template)
    if read is None or raw is None:
        return Impossible(entry, _why_no_template(world, template))
    if refusal := _refuse_disabled(read, world.features):
        return Impossible(entry, refusal)
    return Create(entry, claim_body(raw, pod, entry, _free_name(world, pod, entry, used)))


def _why_no_template(world: World, template: ObjectKey) -> str:
    problem = world.problems.get(("ResourceClaimTemplate", template))
    name = f'resource claim template "{template[1]}"'
    return f"{name}: {problem.reason}" if problem else f"{name}: not found in namespace {template[0]!r}"


def _refuse_disabled(template: ResourceClaimTemplate, features: Features) -> str:
    """What the template asks for although its gate is off (G14)."""
    requests: tuple[DeviceRequest, ...] = template.spec.spec.devices.requests
    if not features.admin_access and any(r.exactly and r.exactly.admin_access for r in requests):
        return "admin access is requested, but the feature is disabled"
    if not features.prioritized_list and any(r.first_available for r in requests):
        return "template includes a prioritized list of subrequests, but the feature is disabled"
    return ""


def _free_name(world: World, pod: Pod, entry: str, used: Collection[str | None]) -> str:
    """The first name that neither is used by the pod's status nor belongs to somebody else (G5)."""
    names = (claim_name(pod.metadata.name, entry, pod.metadata.uid, attempt) for attempt in count())
    return next(name for name in names if name not in used and not _is_taken(world, pod, name))


def _is_taken(world: World, pod: Pod, name: str) -> bool:
    key = (pod.metadata.namespace, name)
    return key in world.claims or ("ResourceClaim", key) in world.problems


def _mapping(body: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = body.get(field)
    return value if isinstance(value, Mapping) else {}
