"""The condition `dovetail.dev/Allocated`: written when a pod has to wait, and once when it no longer does."""

from collections.abc import Callable, Mapping
from typing import Any

from dovetail.api.kinds import POD
from dovetail.api.mappings import ALLOCATED_CONDITION
from dovetail.cluster.pen import Pen
from dovetail.errors import NotFound
from dovetail.services.picture import Json, Key, Picture, key_of
from dovetail.services.text import sentence
from dovetail.services.waiting import Pacer

REWORD_SECONDS = 15.0
"""A sentence that changes while the reason stays is written at most this often."""

BURST = 4
"""So many changes of reason are told at once; then one per `REWORD_SECONDS`, whoever undoes them."""

ALLOCATED = "Allocated"
"""The reason of a condition that is True."""


def condition_of(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The condition as the pod carries it."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == ALLOCATED_CONDITION:
            found: Mapping[str, Any] = condition
            return found
    return None


class Conditions:
    """Writes the condition by patch, so that all others stay as they are."""

    def __init__(
        self, *, pen: Pen, picture: Picture, now: Callable[[], str], clock: Callable[[], float]
    ) -> None:
        self._pen = pen
        self._picture = picture
        self._now = now
        self._clock = clock
        self._worded_at: dict[Key, float] = {}
        self._pacer = Pacer(clock, burst=BURST, pause_seconds=REWORD_SECONDS)

    async def wait(self, pod: Json, reason: str, message: str) -> float:
        """Say why the pod waits; returns after how many seconds to come back to say it better, or 0."""
        clean = sentence(message)
        known = condition_of(pod)
        key = key_of(pod)
        same_reason = known is not None and (known.get("status"), known.get("reason")) == ("False", reason)
        if same_reason and known is not None and known.get("message") == clean:
            return 0.0
        rest = self._worded_at.get(key, float("-inf")) + REWORD_SECONDS - self._clock()
        if same_reason and rest > 0:
            return rest
        if rest := self._pacer.delay(key):
            return rest
        self._worded_at[key] = self._clock()
        await self._write(pod, "False", reason, clean)
        return 0.0

    async def served(self, pod: Json, message: str) -> float:
        """The pod has its devices; said only where the pod had to wait before. Returns as `wait` does."""
        known = condition_of(pod)
        if known is None or known.get("status") == "True":
            return 0.0
        if rest := self._pacer.delay(key_of(pod)):
            return rest
        await self._write(pod, "True", ALLOCATED, sentence(message))
        return 0.0

    def forget(self, key: Key) -> None:
        """The pod is gone."""
        self._worded_at.pop(key, None)
        self._pacer.forget(key)

    async def _write(self, pod: Json, status: str, reason: str, message: str) -> None:
        known = condition_of(pod)
        changed = known is None or known.get("status") != status
        since = self._now() if changed or known is None else known.get("lastTransitionTime")
        condition = {
            "type": ALLOCATED_CONDITION,
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": since,
        }
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"conditions": [condition]}}
        try:
            body = await self._pen.merge_strategically(POD, *key_of(pod), patch, subresource="status")
        except NotFound:
            # The pod went: nobody is left to be told.
            return
        self._picture.see(POD, body)
