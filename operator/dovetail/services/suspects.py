"""Pods that kube-scheduler may be allocating devices for at this moment: an index over the picture (V-21)."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

from dovetail.api.kinds import CLAIM, CLASS, POD
from dovetail.services import claims
from dovetail.services.consumers import Consumers
from dovetail.services.digests import Digests
from dovetail.services.holdings import claim_names, is_bound
from dovetail.services.journal import content_of
from dovetail.services.picture import Change, Json, Key, Picture
from dovetail.services.release import is_done

CLASS_RESOURCE = "deviceclass.resource.kubernetes.io/"
"""The prefix of the extended resource that every class is by itself (KEP-5004)."""

MOST_WISHES = 64
"""So many wishes of a pod are compared with those of others."""

FRESH_SECONDS = 1.0
"""So long after it came, or a device was given back, a suspect is likely to be served by kube-scheduler."""

LIVELY_SECONDS = 30.0
"""So long after the last suspect went, another one is expected at any time."""


class Suspects:
    """Follows the picture; empty, and free of cost, where every claim is Dovetail's and every pod gated.

    A suspect has no gate, and a claim without devices, or extended resources that devices serve.
    It stays one until it is gone, or its claims are seen with their devices: that its node is seen earlier
    says nothing, since pods and claims are watched apart.
    """

    def __init__(self, picture: Picture, consumers: Consumers, clock: Callable[[], float]) -> None:
        """`consumers` has to follow the picture before this does."""
        self._picture = picture
        self._consumers = consumers
        self._clock = clock
        self._digests = Digests()
        self._kinds: dict[Key, bytes] = {}
        self._by_kind: defaultdict[bytes, dict[Key, None]] = defaultdict(dict)
        self._came: dict[bytes, float] = {}
        self._freed = float("-inf")
        self._resources: frozenset[str] = frozenset()
        self._last: float | None = None

    def follow(self, change: Change) -> None:
        """Take in a change of the picture."""
        if change.kind is POD:
            self._judge(change.key)
        elif change.kind is CLAIM:
            self._follow_claim(change)
        elif change.kind is CLASS:
            self._resources = frozenset(_resources(self._picture.all(CLASS)))

    @property
    def are_about(self) -> bool:
        """Whether there is a suspect now, or was one not long ago."""
        return bool(self._kinds) or (self._last is not None and self._clock() - self._last < LIVELY_SECONDS)

    def examples(self) -> tuple[Key, ...]:
        """One suspect of each kind: those that ask for the same, from the same nodes, are one kind."""
        return tuple(next(iter(pods)) for pods in self._by_kind.values())

    def fresh(self) -> tuple[Key, ...]:
        """One suspect of each kind of which one has just come, or been woken by a device that is free now."""
        since = self._clock() - FRESH_SECONDS
        if self._freed >= since:
            return self.examples()
        return tuple(next(iter(pods)) for kind, pods in self._by_kind.items() if self._came[kind] >= since)

    def _follow_claim(self, change: Change) -> None:
        before, after = change.before, change.after
        if before and after and claims.is_allocated(before) == claims.is_allocated(after):
            return
        if before and claims.is_allocated(before):
            self._freed = self._clock()
        owners = _owners(after or before)
        for key in {*self._consumers.of(CLAIM, change.key), *owners}:
            self._judge(key)

    def _judge(self, key: Key) -> None:
        pod = self._picture.find(POD, key)
        kind = b"" if pod is None else self._kind(key, pod)
        known = self._kinds.get(key, b"")
        if kind == known:
            return
        self._last = self._clock()
        if known:
            del self._kinds[key]
            del self._by_kind[known][key]
            if not self._by_kind[known]:
                del self._by_kind[known], self._came[known]
        if kind:
            self._kinds[key] = kind
            self._by_kind[kind][key] = None
            self._came[kind] = self._last

    def _kind(self, key: Key, pod: Json) -> bytes:
        """What the pod may be given, and from which nodes; empty for a pod that is no suspect."""
        spec = pod["spec"]
        if spec.get("schedulingGates") or is_done(pod) or (is_bound(pod) and key not in self._kinds):
            return b""
        wishes = list(islice(chain(self._extended(pod), self._wishes(pod)), MOST_WISHES + 1))
        if len(wishes) > MOST_WISHES:
            # The claims of a pod may be thousands, and come one by one: it is a kind by itself.
            wishes = ["/".join(key)]
        return content_of(self._digests.place(pod).hex(), *wishes) if wishes else b""

    def _wishes(self, pod: Json) -> Iterator[str]:
        namespace = pod["metadata"]["namespace"]
        templates = {
            entry["name"]: entry.get("resourceClaimTemplateName")
            for entry in pod["spec"].get("resourceClaims") or ()
        }
        for entry, name in claim_names(pod).items():
            claim = self._picture.find(CLAIM, (namespace, name)) if name else None
            if claim is None:
                yield json.dumps([namespace, templates[entry], name if not templates[entry] else None])
            elif not claims.is_allocated(claim):
                yield self._digests.of(CLAIM.name, claim).hex()

    def _extended(self, pod: Json) -> Iterator[str]:
        wanted = {name for name in _requests(pod) if name in self._resources or _is_implicit(name)}
        made = (pod.get("status") or {}).get("extendedResourceClaimStatus")
        if not wanted or (is_bound(pod) and made is None):
            return
        if made is not None:
            key = (pod["metadata"]["namespace"], made["resourceClaimName"])
            claim = self._picture.find(CLAIM, key)
            if claim is not None and claims.is_allocated(claim):
                return
        yield json.dumps(sorted(wanted))


def _owners(claim: Json | None) -> Iterator[Key]:
    if claim is None:
        return
    for owner in claim["metadata"].get("ownerReferences") or ():
        if owner.get("kind") == "Pod":
            yield (claim["metadata"]["namespace"], owner["name"])


def _resources(classes: Iterable[Json]) -> Iterator[str]:
    for device_class in classes:
        if name := device_class["spec"].get("extendedResourceName"):
            yield name


def _requests(pod: Json) -> Iterator[str]:
    for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]):
        yield from (container.get("resources") or {}).get("requests") or ()


def _is_implicit(resource: str) -> bool:
    return resource.startswith(CLASS_RESOURCE)
