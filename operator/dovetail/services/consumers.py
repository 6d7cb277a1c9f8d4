"""Which pods use a claim or template, and which claims were made for a pod: an index over the picture."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from dovetail.api.kinds import CLAIM, POD, TEMPLATE, Kind
from dovetail.services import claims
from dovetail.services.gates import is_gated
from dovetail.services.picture import Change, Key

Use = tuple[Kind, Key]


def uses_of(pod: Mapping[str, Any]) -> frozenset[Use]:
    """The claims and templates that a pod names, in its specification or in its status."""
    namespace = pod["metadata"]["namespace"]
    found: set[Use] = set()
    for entry in pod["spec"].get("resourceClaims") or ():
        if name := entry.get("resourceClaimName"):
            found.add((CLAIM, (namespace, name)))
        if name := entry.get("resourceClaimTemplateName"):
            found.add((TEMPLATE, (namespace, name)))
    for status in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        if name := status.get("resourceClaimName"):
            found.add((CLAIM, (namespace, name)))
    return frozenset(found)


def is_of_interest(pod: Mapping[str, Any]) -> bool:
    """Whether the pod can be any concern of ours: it has claims, or our gate."""
    return bool(pod["spec"].get("resourceClaims")) or is_gated(pod)


class Consumers:
    """Follows the picture; answers which pods use what."""

    def __init__(self) -> None:
        self._by_use: defaultdict[Use, set[Key]] = defaultdict(set)
        self._by_uid: dict[str, Key] = {}
        self._owned: defaultdict[str, set[Key]] = defaultdict(set)

    def follow(self, change: Change) -> None:
        """Take in a change of the picture."""
        if change.kind is CLAIM:
            self._follow_claim(change)
        if change.kind is not POD:
            return
        before = uses_of(change.before) if change.before else frozenset()
        after = uses_of(change.after) if change.after else frozenset()
        for use in before - after:
            self._by_use[use].discard(change.key)
            if not self._by_use[use]:
                del self._by_use[use]
        for use in after - before:
            self._by_use[use].add(change.key)
        if change.before:
            self._by_uid.pop(change.before["metadata"]["uid"], None)
        if change.after and is_of_interest(change.after):
            self._by_uid[change.after["metadata"]["uid"]] = change.key

    def owned_by(self, uid: str) -> frozenset[Key]:
        """The claims that were made for the pod with this uid, whether it names them or not."""
        return frozenset(self._owned.get(uid, ()))

    def _follow_claim(self, change: Change) -> None:
        before, after = (_owner_uid(claim) for claim in (change.before, change.after))
        if before == after:
            return
        if before:
            self._owned[before].discard(change.key)
            if not self._owned[before]:
                del self._owned[before]
        if after:
            self._owned[after].add(change.key)

    def of(self, kind: Kind, key: Key) -> frozenset[Key]:
        """The pods that name a claim or template."""
        return frozenset(self._by_use.get((kind, key), ()))

    def with_uids(self, uids: frozenset[str]) -> frozenset[Key]:
        """The pods with these uids, as far as they are known."""
        return frozenset(self._by_uid[uid] for uid in uids if uid in self._by_uid)


def _owner_uid(claim: Mapping[str, Any] | None) -> str:
    owner = claims.controlling_pod(claim)
    return str(owner.get("uid") or "") if owner is not None else ""
