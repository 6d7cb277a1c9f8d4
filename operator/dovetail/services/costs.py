"""What decisions, answers and objects may cost, and what becomes of those that cost more."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from dovetail.api.kinds import CLAIM, TEMPLATE
from dovetail.core.decisions import Cut, Decision
from dovetail.core.reasons import Reason
from dovetail.core.world import World
from dovetail.errors import TooCostly
from dovetail.services.digests import Digests
from dovetail.services.holdings import claim_names
from dovetail.services.journal import Cost, Journal, content_of
from dovetail.services.watchdog import Watchdog

T = TypeVar("T")

GRACE_SECONDS = 0.1
"""A decision looks at the clock by itself, and ends more cleanly than it is ended."""

QUESTION_SECONDS = 10.0
"""How long the answer to any other question may take: the longest look through everything there is."""

OBJECT_SECONDS = 5.0
"""How long taking in one object may take before the process is ended for it: normally a millisecond."""

MEBIBYTES = 256.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What one decision may cost."""

    steps: int
    seconds: float
    mebibytes: float = MEBIBYTES
    """By how much the process may grow meanwhile."""


class Restraint:
    """Ends what runs past its limits from within this process, and notes it for whoever ends the process."""

    def __init__(self, journal: Journal | None = None, watchdog: Watchdog | None = None) -> None:
        self._journal = journal or Journal.open("")
        self._watchdog = watchdog or Watchdog()

    def rest(self, content: bytes) -> float:
        """How long the content is left alone because it cost too much; 0 where it may be tried."""
        return self._journal.rest(content)

    def decide(
        self, world: World, content: bytes, limits: Limits, decide: Callable[[], Decision]
    ) -> Decision:
        """The decision; raises `TooCostly` where it had to be ended, which is remembered."""
        self._journal.begin(content, _hard(limits.seconds))
        try:
            return self._watchdog.guard(
                decide, seconds=limits.seconds + GRACE_SECONDS, mebibytes=limits.mebibytes
            )
        except TooCostly:
            if not self._watchdog.is_hurried:
                self._journal.note(content, Cost.STOPPED)
            _doubt(world)
            raise
        finally:
            self._journal.end()

    def learn(self, content: bytes, decision: Decision) -> None:
        """A decision was made, or ran out of all of its budget: the next process knows."""
        if self.is_hurried:
            return
        if not isinstance(decision, Cut):
            self._journal.forget(content)
        elif decision.reason is Reason.SEARCH_CUT:
            self._journal.note(content, Cost.CUT)

    def ask(self, world: World, question: Callable[[World], T], seconds: float) -> T:
        """The answer; raises `TooCostly`."""
        self._journal.begin(_QUESTION, _hard(seconds))
        try:
            return self._watchdog.guard(lambda: question(world), seconds=seconds, mebibytes=2 * MEBIBYTES)
        except TooCostly:
            _doubt(world)
            raise
        finally:
            self._journal.end()

    @contextmanager
    def taking_in(self, content: bytes) -> Iterator[bool]:
        """While an object is taken in, which is never broken off; False where it must not be."""
        if self._journal.rest(content):
            yield False
            return
        self._journal.begin(content, OBJECT_SECONDS)
        try:
            yield True
        finally:
            self._journal.end()

    @property
    def is_hurried(self) -> bool:
        """Whether the process ends."""
        return self._watchdog.is_hurried

    def hurry(self) -> None:
        """The process ends: what is being decided is ended, and held against nobody."""
        self._watchdog.hurry()

    def close(self) -> None:
        """Nothing more will be watched."""
        self._watchdog.close()


_QUESTION = content_of("question")


def _doubt(world: World) -> None:
    """A question was broken off: what it may have left half noted is worked out anew."""
    world.judge.forget()
    world.inventory.doubt()


def _hard(seconds: float) -> float:
    """When the process is ended, which has had its chance to end the work by itself."""
    return seconds * 1.25 + 0.75


def content_of_claims(world: World, pod: Mapping[str, Any], digests: Digests) -> bytes:
    """What the claims of a pod ask for, in its namespace: the same for equal claims, whatever their names."""
    namespace, names = str(pod["metadata"]["namespace"]), claim_names(pod)
    asked = []
    for entry in pod["spec"].get("resourceClaims") or ():
        claim = world.raw(CLAIM.name, namespace, names.get(entry["name"]) or "")
        template = world.raw(TEMPLATE.name, namespace, entry.get("resourceClaimTemplateName") or "")
        known = digests.of(CLAIM.name, claim) if claim is not None else digests.of(TEMPLATE.name, template)
        asked.append(known.hex())
    return content_of(namespace, *asked)


def content_of_object(kind: str, body: Mapping[str, Any]) -> bytes:
    """This version of an object."""
    metadata = body["metadata"]
    names = (metadata.get(name) or "" for name in ("namespace", "name", "uid", "resourceVersion"))
    return content_of(kind, *map(str, names))
