"""What each change of the cluster means for the work: which pods and claims are looked at again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import structlog

from dovetail.api.kinds import CLAIM, MAPPING, POD, SLICE, TEMPLATE, WATCHED, Kind
from dovetail.core.world import Change as Meaning
from dovetail.core.world import Effect
from dovetail.services import claims
from dovetail.services.consumers import Consumers, is_of_interest, uses_of
from dovetail.services.deciding import Deciding
from dovetail.services.desk import Desk
from dovetail.services.holdings import is_satisfied
from dovetail.services.picture import Change, Json, Key, Picture, key_of
from dovetail.services.release import Release, is_done
from dovetail.services.retraction import Retraction
from dovetail.services.searches import News
from dovetail.services.serving import Serving
from dovetail.services.waiting import Urgency

log = structlog.get_logger(__name__)

SETTLED_SECONDS = 1.0
"""A pod with its devices is bound, run and reported within seconds: one look is enough for all of it."""

_KINDS: Mapping[str, Kind] = {kind.name: kind for kind in WATCHED}


class Reconciler:
    """Turns changes into marks. It decides nothing: a mark only says "look at this again"."""

    def __init__(
        self,
        *,
        picture: Picture,
        consumers: Consumers,
        serving: Serving,
        release: Release,
        retraction: Retraction,
        pods: Desk,
        claims_desk: Desk,
        mappings: Callable[[], None],
        deciding: Deciding,
    ) -> None:
        self._picture = picture
        self._consumers = consumers
        self._serving = serving
        self._release = release
        self._retraction = retraction
        self._pods = pods
        self._claims = claims_desk
        self._mappings = mappings
        self._searches = deciding.searches
        self._news = News(deciding.searches, deciding.hear)

    def follow(self, change: Change) -> None:
        """Take in a change of the picture."""
        if change.kind is POD:
            self._follow_pod(change)
        elif change.kind is CLAIM:
            self._follow_claim(change)
        elif change.kind in (MAPPING, SLICE):
            self._mappings()

    def understand(self, meanings: Sequence[Meaning]) -> None:
        """Take in what changes mean for pods that wait, as the World sees it."""
        for meaning in meanings:
            kind = _KINDS.get(meaning.kind)
            if meaning.effect is Effect.POD:
                self._mark_pods([meaning.key])
            elif meaning.effect is Effect.CONSUMERS and kind in (CLAIM, TEMPLATE):
                self._mark_pods(self._consumers.of(kind, meaning.key))
            elif meaning.effect is Effect.CONSUMERS and kind is POD:
                self._mark_pods(self._sharing_with(meaning.key))
        news = [meaning for meaning in meanings if meaning.effect is Effect.EVERYONE]
        if news:
            # A pod whose search was cut comes back in its own time, or by what it could use.
            cut = self._searches.cut
            self._pods.queue.mark_in_turn([key for key in self._serving.waiting if key not in cut])
            self._news.add(news)

    def look_at_everything(self) -> None:
        """After a start, a change of leadership or a long time: nothing rests on an event that got lost."""
        self._mark_pods(
            (pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in self._picture.all(POD)
        )
        for claim in self._picture.all(CLAIM):
            self._mark_claim(claim)

    def look_again(self, key: Key, seconds: float) -> None:
        """Look at a pod after a while."""
        self._pods.queue.mark_later(key, seconds)

    async def tend_claim(self, key: Key) -> None:
        """Serve one key of the desk for claims."""
        if seconds := await self._release.tend(key):
            self._claims.queue.mark_later(key, seconds)

    def urgency(self, key: Key) -> Urgency:
        """Pods are served by priority, then by age."""
        pod = self._picture.find(POD, key)
        if pod is None:
            return (0, "", *key)
        return (-int(pod["spec"].get("priority") or 0), pod["metadata"].get("creationTimestamp") or "", *key)

    def patience(self, key: Key) -> float:
        """How long a pod that has everything can wait for a look: some more changes are under way then."""
        pod = self._picture.find(POD, key)
        return SETTLED_SECONDS if pod is not None and is_satisfied(self._picture, pod) else 0.0

    def _mark_pods(self, keys: Iterable[Key]) -> None:
        for key in keys:
            pod = self._picture.find(POD, key)
            if pod is not None and is_of_interest(pod) and not is_done(pod):
                self._pods.queue.mark(key)

    def _follow_pod(self, change: Change) -> None:
        before, after = change.before, change.after
        if before is not None and (after is None or _uid(before) != _uid(after)):
            self._serving.forget(change.key)
            self._pods.forget(change.key)
            self._mark_claims_of(before)
        if after is None:
            return
        if is_done(after):
            self._serving.forget(change.key)
            self._mark_claims_of(after)
        elif is_of_interest(after) and (before is None or _essence(before) != _essence(after)):
            self._pods.queue.mark(change.key)

    def _sharing_with(self, key: Key) -> frozenset[Key]:
        """The pod, and those that use a claim of it."""
        pod = self._picture.find(POD, key)
        uses = uses_of(pod) if pod is not None else frozenset()
        sharing = (self._consumers.of(CLAIM, claim) for kind, claim in uses if kind is CLAIM)
        return frozenset({key}).union(*sharing)

    def _mark_claims_of(self, pod: Json) -> None:
        named = {key for kind, key in uses_of(pod) if kind is CLAIM}
        for key in named | self._consumers.owned_by(pod["metadata"]["uid"]):
            self._claims.queue.mark(key)

    def _mark_claim(self, claim: Json) -> None:
        if self._release.is_due(claim):
            self._claims.queue.mark(key_of(claim))

    def _follow_claim(self, change: Change) -> None:
        before, after = change.before, change.after
        if after is None:
            self._release.forget(change.key)
            self._claims.forget(change.key)
        else:
            self._mark_claim(after)
        users = self._consumers.of(CLAIM, change.key) | self._reserving(before) | self._reserving(after)
        owner = claims.controlling_pod(after or before)
        if owner is not None:
            users |= {(change.key[0], str(owner["name"]))}
        if before is not None and _was_deallocated(before, after):
            self._follow_deallocation(before, users)
        self._mark_pods(users)

    def _follow_deallocation(self, before: Json, users: frozenset[Key]) -> None:
        for key in users:
            pod = self._picture.find(POD, key)
            if pod is not None:
                self._retraction.scheduler_took_back(pod, before)

    def _reserving(self, claim: Json | None) -> frozenset[Key]:
        return self._consumers.with_uids(claims.consumers(claim)) if claim is not None else frozenset()


def _uid(body: Mapping[str, Any]) -> str:
    return str(body["metadata"]["uid"])


def _essence(pod: Mapping[str, Any]) -> tuple[Any, ...]:
    """What of a pod's own changes can matter for serving it."""
    status = pod.get("status") or {}
    scheduled = [
        (condition.get("status"), condition.get("reason"), condition.get("lastTransitionTime"))
        for condition in status.get("conditions") or ()
        if condition.get("type") == "PodScheduled"
    ]
    return (
        pod["spec"].get("nodeName"),
        pod["spec"].get("schedulingGates"),
        pod["metadata"].get("deletionTimestamp"),
        status.get("nominatedNodeName"),
        status.get("resourceClaimStatuses"),
        scheduled,
    )


def _was_deallocated(before: Mapping[str, Any], after: Mapping[str, Any] | None) -> bool:
    """Devices that Dovetail gave are gone while the claim itself stays."""
    return (
        after is not None
        and _uid(before) == _uid(after)
        and claims.is_allocated(before)
        and claims.is_written_by_us(before)
        and not claims.is_allocated(after)
        and not after["metadata"].get("deletionTimestamp")
    )
