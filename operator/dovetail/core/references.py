"""Which claims a pod uses, and which pods use a claim: names, generated claims, owners (G5, G6, G20)."""

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dovetail.api.claims import EXTENDED_RESOURCE_CLAIM, POD_CLAIM_NAME, ResourceClaim, ResourceClaimTemplate
from dovetail.api.pods import Pod, PodResourceClaim, PodResourceClaimStatus
from dovetail.core.decisions import ObjectKey

POD_GROUP = "PodGroup"

Recorded = Mapping[str, PodResourceClaimStatus]
"""What a pod's status says, by entry."""


class State(enum.Enum):
    """What became of one entry of `pod.spec.resourceClaims`."""

    FOUND = "found"
    NOT_NEEDED = "not needed"
    """The pod's status says so: an entry without a claim's name (G33)."""
    NOT_CREATED = "not created"
    """The template is there, the claim is not."""
    NO_CLAIM = "no claim"
    """The claim that the pod names does not exist."""
    NO_TEMPLATE = "no template"
    """Neither the claim nor its template exists."""
    UNREADABLE = "unreadable"
    """The claim exists but is malformed."""
    UNSUPPORTED = "unsupported"
    """The entry names neither a claim nor a template: a form that is not known."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a pod, with the key of its claim, known or expected, and of its template, if any."""

    name: str
    state: State
    key: ObjectKey | None = None
    template: ObjectKey | None = None


def is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    """The claim was made for this very pod, not for another of its name (G6)."""
    owner = claim.metadata.controller
    return owner is not None and bool(owner.uid) and owner.uid == pod.metadata.uid


def is_of_pod_group(claim: ResourceClaim) -> bool:
    """The claim belongs to a PodGroup (G29)."""
    owner = claim.metadata.controller
    return owner is not None and owner.kind == POD_GROUP


class References:
    """Pods and claims as they refer to each other, over tables that somebody else keeps."""

    def __init__(
        self,
        pods: Mapping[ObjectKey, Pod],
        claims: Mapping[ObjectKey, ResourceClaim],
        templates: Mapping[ObjectKey, ResourceClaimTemplate],
        unreadable: Mapping[ObjectKey, object],
    ) -> None:
        self._pods = pods
        self._claims = claims
        self._templates = templates
        self._unreadable = unreadable
        self._made_for: dict[str, dict[str, dict[ObjectKey, None]]] = {}
        """The claims that were made for a pod, by its UID and the entry."""
        self._named_by: dict[ObjectKey, dict[ObjectKey, None]] = {}
        self._pods_by_uid: dict[str, ObjectKey] = {}

    def add_pod(self, pod: Pod) -> None:
        """A pod is in the table."""
        self._pods_by_uid[pod.metadata.uid] = pod.key
        for key in _names(pod):
            self._named_by.setdefault(key, {})[pod.key] = None

    def remove_pod(self, pod: Pod) -> None:
        """A pod left the table."""
        if self._pods_by_uid.get(pod.metadata.uid) == pod.key:
            del self._pods_by_uid[pod.metadata.uid]
        for key in _names(pod):
            named = self._named_by.get(key, {})
            named.pop(pod.key, None)
            if not named:
                self._named_by.pop(key, None)

    def add_claim(self, claim: ResourceClaim) -> None:
        """A claim is in the table."""
        if made := _made_for(claim):
            uid, entry = made
            self._made_for.setdefault(uid, {}).setdefault(entry, {})[claim.key] = None

    def remove_claim(self, claim: ResourceClaim) -> None:
        """A claim left the table."""
        if made := _made_for(claim):
            uid, entry = made
            entries = self._made_for.get(uid, {})
            known = entries.get(entry, {})
            known.pop(claim.key, None)
            if not known:
                entries.pop(entry, None)
            if not entries:
                self._made_for.pop(uid, None)

    def entries_of(self, pod: Pod) -> tuple[Entry, ...]:
        """The pod's entries, in its order, each with what became of it."""
        recorded = _recorded(pod)
        return tuple(self._entry(pod, entry, recorded) for entry in pod.spec.resource_claims)

    def consumers_of(self, key: ObjectKey) -> tuple[Pod, ...]:
        """The pods that use the claim and are not done, in the order in which they were first seen."""
        candidates = dict(self._named_by.get(key, {}))
        claim = self._claims.get(key)
        owner = claim.metadata.controller if claim is not None else None
        if owner is not None and (owning := self._pods_by_uid.get(owner.uid)) is not None:
            candidates[owning] = None
        pods = [self._pods[candidate] for candidate in candidates if candidate in self._pods]
        return tuple(pod for pod in pods if not pod.is_done and self._uses(pod, key))

    def concerned_by(self, before: ResourceClaim | None, after: ResourceClaim | None) -> tuple[Pod, ...]:
        """The pods that may count on another node, or with something else, since a claim changed.

        Thousands of pods may name a claim, and a pod thousands of claims: none is gone through for nothing.
        The tables show the claim as it is after the change.
        """
        claims = [claim for claim in (before, after) if claim is not None]
        if before is not None and after is not None and _standing(before) == _standing(after):
            joined_or_left = _consumer_uids(before) ^ _consumer_uids(after)
            # Pods of a mere manifest have no UID.
            if "" not in joined_or_left:
                return self._of_uids(joined_or_left)
        elif not any(claim.status.allocation or self._has_twin(claim) for claim in claims):
            return ()
        return self.naming(*claims)

    def naming(self, *claims: ResourceClaim) -> tuple[Pod, ...]:
        """The pods that name one of these claims, and those that own one, done or not."""
        named = (self._pods.get(key) for claim in claims for key in self._named_by.get(claim.key, {}))
        owners = {claim.metadata.controller.uid for claim in claims if claim.metadata.controller is not None}
        found = (*named, *self._of_uids(owners))
        return tuple({pod.key: pod for pod in found if pod is not None}.values())

    def _of_uids(self, uids: Iterable[str]) -> tuple[Pod, ...]:
        keys = (self._pods_by_uid.get(uid) for uid in uids)
        return tuple(self._pods[key] for key in keys if key is not None and key in self._pods)

    def _has_twin(self, claim: ResourceClaim) -> bool:
        """Another claim was made for the same entry: which of them counts may have changed."""
        if not (made := _made_for(claim)):
            return False
        uid, entry = made
        return any(key != claim.key for key in self._made_for.get(uid, {}).get(entry, {}))

    def made_claims(self, pod: Pod, entry: str) -> tuple[ObjectKey, ...]:
        """The claims that were made for one entry of the pod, by name; kube-controller-manager adopts any."""
        made = self._made_for.get(pod.metadata.uid, {}).get(entry, {})
        return tuple(sorted(key for key in made if key[0] == pod.metadata.namespace))

    def found_claims(self, pod: Pod) -> Iterator[ResourceClaim]:
        """The pod's claims that exist and can be read, in the order of its entries; each entry is cheap."""
        recorded, namespace, seen = _recorded(pod), pod.metadata.namespace, set[str]()
        for entry in pod.spec.resource_claims:
            name = entry.resource_claim_name
            if name is not None:
                key: ObjectKey | None = (namespace, name)
                if name in seen:
                    continue
                seen.add(name)
            else:
                key = self._entry(pod, entry, recorded).key
            claim = self._claims.get(key) if key is not None else None
            if claim is not None:
                yield claim

    def _uses(self, pod: Pod, key: ObjectKey) -> bool:
        """Whether an entry of the pod stands for the claim; only those that can are looked at."""
        recorded = _recorded(pod)
        claim = self._claims.get(key)
        made = _made_for(claim) if claim is not None else None
        possible = {name for name, status in recorded.items() if status.resource_claim_name == key[1]}
        possible |= {made[1]} if made is not None else set()
        return any(
            self._entry(pod, entry, recorded).key == key
            for entry in pod.spec.resource_claims
            if entry.resource_claim_name == key[1] or entry.name in possible
        )

    def _entry(self, pod: Pod, entry: PodResourceClaim, recorded: Recorded) -> Entry:
        namespace = pod.metadata.namespace
        if entry.resource_claim_name is not None:
            key = (namespace, entry.resource_claim_name)
            return Entry(entry.name, self._state(key, State.NO_CLAIM), key)
        if entry.resource_claim_template_name is None:
            return Entry(entry.name, State.UNSUPPORTED)
        template = (namespace, entry.resource_claim_template_name)
        return self._generated(pod, entry.name, template, recorded.get(entry.name))

    def _generated(
        self, pod: Pod, name: str, template: ObjectKey, recorded: PodResourceClaimStatus | None
    ) -> Entry:
        if recorded is not None and not recorded.resource_claim_name:
            return Entry(name, State.NOT_NEEDED, template=template)
        if recorded is not None and recorded.resource_claim_name:
            key = (pod.metadata.namespace, recorded.resource_claim_name)
            if key in self._unreadable:
                return Entry(name, State.UNREADABLE, key, template)
            claim = self._claims.get(key)
            if claim is not None and (is_owned_by(claim, pod) or is_of_pod_group(claim)):
                return Entry(name, State.FOUND, key, template)
        if made := self.made_claims(pod, name):
            return Entry(name, State.FOUND, made[0], template)
        state = State.NOT_CREATED if template in self._templates else State.NO_TEMPLATE
        return Entry(name, state, template=template)

    def _state(self, key: ObjectKey, otherwise: State) -> State:
        if key in self._unreadable:
            return State.UNREADABLE
        return State.FOUND if key in self._claims else otherwise


def _recorded(pod: Pod) -> Recorded:
    """What the pod's status says of each entry; of two that have one name, the first."""
    return {status.name: status for status in reversed(pod.status.resource_claim_statuses)}


def _names(pod: Pod) -> tuple[ObjectKey, ...]:
    namespace = pod.metadata.namespace
    spec = [entry.resource_claim_name for entry in pod.spec.resource_claims]
    status = [entry.resource_claim_name for entry in pod.status.resource_claim_statuses]
    return tuple((namespace, name) for name in (*spec, *status) if name)


def _standing(claim: ResourceClaim) -> tuple[object, ...]:
    return claim.status.allocation, claim.spec, claim.metadata.controller, _made_for(claim)


def _consumer_uids(claim: ResourceClaim) -> frozenset[str]:
    return frozenset(consumer.uid for consumer in claim.status.reserved_for)


def _made_for(claim: ResourceClaim) -> tuple[str, str] | None:
    """The UID of the pod and the entry that the claim was made for."""
    owner = claim.metadata.controller
    entry = claim.metadata.annotations.get(POD_CLAIM_NAME)
    if owner is None or owner.kind != "Pod" or not owner.uid or not entry:
        return None
    return None if EXTENDED_RESOURCE_CLAIM in claim.metadata.annotations else (owner.uid, entry)
