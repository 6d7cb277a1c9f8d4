"""Claims from templates: made by kube-controller-manager where it runs, else by Dovetail (G1-G34)."""

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from dovetail.api.claims import POD_CLAIM_NAME
from dovetail.api.kinds import CLAIM, POD
from dovetail.api.pods import Pod
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.core.generation import Adopt, Create, Impossible, statuses_for
from dovetail.errors import Conflict, NotFound
from dovetail.services.attempts import REFUSED, Attempts, of_making
from dovetail.services.claims import controller_of
from dovetail.services.holdings import claim_names
from dovetail.services.mind import Mind
from dovetail.services.notices import Notices
from dovetail.services.picture import Change, Json, Key, Picture, key_of
from dovetail.services.settings import Mode

log = structlog.get_logger(__name__)

LONGEST_GRACES = 6
"""How many grace times a claim is left to kube-controller-manager at most, while that makes others."""

FAILED = "FailedResourceClaimCreation"
"""The reason of the event when no claim can be made (G15)."""


class Generation:
    """Makes the claims that pods lack.

    Claim names are the same for the same pod, entry and attempt, so that creating twice is harmless (R-B1).
    """

    def __init__(
        self,
        *,
        pen: Pen,
        reader: Reader,
        picture: Picture,
        mind: Mind,
        notices: Notices,
        attempts: Attempts,
        mode: Mode,
        grace_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._pen = pen
        self._reader = reader
        self._picture = picture
        self._mind = mind
        self._notices = notices
        self._attempts = attempts
        self._mode = mode
        self._grace = grace_seconds
        self._clock = clock
        self._missing_since: dict[tuple[Key, str], float] = {}
        self._being_made: set[Key] = set()
        self._others_made_at = float("-inf")

    def follow(self, change: Change) -> None:
        """Notice claims that somebody else makes from templates: kube-controller-manager is at work."""
        if change.kind is not CLAIM or change.before is not None or change.after is None:
            return
        generated = POD_CLAIM_NAME in (change.after["metadata"].get("annotations") or {})
        if generated and change.key not in self._being_made:
            self._others_made_at = self._clock()

    async def complete(self, pod: Json) -> float:
        """Make, adopt and record what is missing.

        Returns after how many seconds to look again, because others may still do it; 0 where all is done.
        """
        if self._mode == "never" or not _has_templates(pod):
            return 0.0
        # Asking is dear beside looking: most pods have all their claims when they are looked at again,
        # and a new pod, whose status does not name them, lacks some for certain.
        if None in claim_names(pod).values() and (rest := self._rest_of_grace(pod)) > 0:
            return rest
        steps = () if self._has_all(pod) else await self._mind.missing_claims(key_of(pod))
        if not steps:
            self._missing_since.pop(_marker(pod), None)
        elif rest := max(self._rest_of_grace(pod), self._attempts.wait([of_making(key_of(pod))])):
            return rest
        made: dict[str, str] = {}
        for step in steps:
            match step:
                case Create(entry=entry, body=body):
                    self._attempts.count([of_making(key_of(pod))], REFUSED)
                    made[entry] = await self._create(pod, body)
                case Adopt(entry=entry, claim=claim):
                    made[entry] = claim
                case Impossible(entry=entry, message=message):
                    self._notices.say(pod, "Warning", FAILED, f"PodResourceClaim {entry}: {message}")
        if made:
            self._attempts.count([of_making(key_of(pod))], 1 - REFUSED)
            await self._record(pod, made)
        return 0.0

    def forget(self, key: Key) -> None:
        """The pod is gone."""
        for known in [known for known in self._missing_since if known[0] == key]:
            del self._missing_since[known]

    def _has_all(self, pod: Json) -> bool:
        """Every claim from a template is named in the pod's status, and is there."""
        recorded = claim_names(pod)
        found = (
            self._picture.find(CLAIM, (pod["metadata"]["namespace"], recorded.get(entry["name"]) or ""))
            for entry in pod["spec"].get("resourceClaims") or ()
            if not entry.get("resourceClaimName")
        )
        return all(claim is not None and _belongs_to(claim, pod) for claim in found)

    def _rest_of_grace(self, pod: Json) -> float:
        """How long the longest-missing claim is still left to kube-controller-manager.

        While that makes other claims it may be working off a burst, and is given more time, but not for ever.
        """
        if self._mode == "always":
            return 0.0
        since = self._missing_since.setdefault(_marker(pod), self._clock())
        patience = min(max(since, self._others_made_at), since + (LONGEST_GRACES - 1) * self._grace)
        return max(patience + self._grace - self._clock(), 0.0)

    async def _create(self, pod: Json, body: Mapping[str, Any]) -> str:
        """Create a claim; one of that name which is ours already serves as well."""
        namespace, name = pod["metadata"]["namespace"], body["metadata"]["name"]
        self._being_made.add((namespace, name))
        try:
            return await self._create_named(pod, namespace, name, body)
        finally:
            self._being_made.discard((namespace, name))

    async def _create_named(self, pod: Json, namespace: str, name: str, body: Mapping[str, Any]) -> str:
        try:
            claim = await self._pen.create(CLAIM, namespace, body)
            log.info("claim_created", claim=f"{namespace}/{name}")
        except Conflict:
            found = await self._reader.find(CLAIM, namespace, name)
            if found is None or not _belongs_to(found, pod):
                raise
            claim = found
        self._picture.see(CLAIM, claim)
        return str(claim["metadata"]["name"])

    async def _record(self, pod: Json, made: Mapping[str, str]) -> None:
        """Name the claims in the pod's status by server-side apply (G25)."""
        metadata = pod["metadata"]
        body = {
            "apiVersion": POD.api_version,
            "kind": POD.name,
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
            "status": {"resourceClaimStatuses": statuses_for(Pod.parse(pod), made)},
        }
        try:
            answer = await self._pen.apply(POD, *key_of(pod), body, subresource="status")
        except NotFound:
            # The pod went: the claim goes with its owner.
            return
        self._picture.see(POD, answer)


def _marker(pod: Json) -> tuple[Key, str]:
    return (key_of(pod), pod["metadata"]["uid"])


def _has_templates(pod: Mapping[str, Any]) -> bool:
    return any(entry.get("resourceClaimTemplateName") for entry in pod["spec"].get("resourceClaims") or ())


def _belongs_to(claim: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    owner = controller_of(claim)
    return owner is not None and owner.get("uid") == pod["metadata"]["uid"]
