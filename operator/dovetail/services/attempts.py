"""How often something may be tried again that others undo (R-B11)."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from dovetail.api.kinds import CLAIM, POD
from dovetail.core.decisions import Place, Reserve
from dovetail.services import claims
from dovetail.services.consumers import uses_of
from dovetail.services.holdings import claims_of, is_bound
from dovetail.services.mind import Verdict
from dovetail.services.picture import Change, Json, Key, Picture, key_of
from dovetail.services.release import is_done

WINDOW_SECONDS = 60.0

FIRST_PAUSE_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 120.0
"""Once the attempts of a minute are used up, the pauses between further ones double up to this."""

QUIET_SECONDS = 600.0
"""After so long without an attempt all is forgotten."""

REFUSED = 0.5
"""What an attempt counts that the API server refused: it is up to two writes, where another is up to four."""

Subject = tuple[str, ...]
"""What attempts are counted for: a pod, a claim, a pod as consumer of a claim, a gate, a taking back."""


def of_gate(pod: Key) -> Subject:
    """Opening the gate of a pod."""
    return ("gate", *pod)


def of_taking_back(pod: Key) -> Subject:
    """Beginning to take devices back from a pod."""
    return ("taking back", *pod)


def of_making(pod: Key) -> Subject:
    """Making the claims that a pod lacks."""
    return ("making", *pod)


def of_pod(pod: Key) -> Subject:
    """Giving devices to a pod."""
    return ("pod", *pod)


def of_claim(claim: Key) -> Subject:
    """Giving devices to a claim."""
    return ("claim", *claim)


def of_consumer(claim: Key, pod: Key) -> Subject:
    """Making a pod a consumer of a claim that has its devices already."""
    return ("consumer", *claim, *pod)


def of_consumers(held: Iterable[Json], pod: Key) -> list[Subject]:
    """The same for several claims."""
    return [of_consumer(key_of(claim), pod) for claim in held]


def of_needs(picture: Picture, pod: Json) -> list[Subject]:
    """What serving a pod may try next, as the picture shows it."""
    key, uid = key_of(pod), pod["metadata"]["uid"]
    steps: list[Subject] = []
    for claim in claims_of(picture, pod):
        if not claims.is_allocated(claim):
            steps.append(of_claim(key_of(claim)))
        elif uid not in claims.consumers(claim) and not claims.reserves_itself(pod):
            steps += [of_claim(key_of(claim)), of_consumer(key_of(claim), key)]
    return [of_gate(key), of_pod(key), *steps] if steps else [of_gate(key)]


@dataclass(slots=True)
class _Record:
    made: deque[tuple[float, float]] = field(default_factory=deque)
    """When attempts of the last minute were made, and what each counts."""
    streak: float = 0.0
    last: float = 0.0


class Attempts:
    """Limits attempts per subject, whoever undoes what they achieve.

    So many a minute are free; from then on pauses double, until there has been quiet for long.
    Names count, not uids: a claim or pod that is deleted and made again goes on where its predecessor was.
    A pod that had its node when it went did not fail: nothing of it is remembered.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._limit = per_minute
        self._clock = clock
        self._records: OrderedDict[Subject, _Record] = OrderedDict()

    def follow(self, change: Change) -> None:
        """Take in a change of the picture."""
        pod = change.before
        if change.kind is not POD or pod is None or not is_bound(pod):
            return
        after = change.after
        if after is None or after["metadata"]["uid"] != pod["metadata"]["uid"] or is_done(after):
            key = change.key
            self.forget(of_pod(key), of_gate(key), of_taking_back(key), of_making(key))
            for claim in (claim for kind, claim in uses_of(pod) if kind is CLAIM):
                self.forget(of_claim(claim), of_consumer(claim, key))

    def wait(self, subjects: Iterable[Subject]) -> float:
        """How many seconds until all of these may be tried again; 0 for now."""
        return max(map(self._wait, subjects), default=0.0)

    def count(self, subjects: Iterable[Subject], cost: float = 1.0) -> None:
        """An attempt has been made for each of these."""
        now = self._clock()
        while self._records and now - next(iter(self._records.values())).last > QUIET_SECONDS:
            self._records.popitem(last=False)
        for subject in subjects:
            record = self._records.setdefault(subject, _Record())
            record.made.append((now, cost))
            record.streak += cost
            record.last = now
            self._records.move_to_end(subject)

    def record(self, pod: Key, verdict: Verdict, *, is_refused: bool) -> None:
        """A decision about a pod has been carried out, or was refused; nothing where it wrote to no claim.

        That a pod joins a claim costs the claim nothing, unless it is refused: many may share one.
        """
        match verdict.decision:
            case Place(grants=grants, reserve=joined):
                given = [grant.claim for grant in grants if grant.claim in verdict.claims]
            case Reserve(claims=joined):
                given = []
            case _:
                return
        joins = [claim for claim in joined if claim in verdict.claims]
        if not given and not joins:
            return
        written = [*given, *joins] if is_refused else given
        steps = [of_pod(pod), *map(of_claim, written), *(of_consumer(claim, pod) for claim in joins)]
        self.count(steps, REFUSED if is_refused else 1.0)

    def forget(self, *subjects: Subject) -> None:
        """These have come to an end."""
        for subject in subjects:
            self._records.pop(subject, None)

    def _wait(self, subject: Subject) -> float:
        record = self._records.get(subject)
        if record is None:
            return 0.0
        now = self._clock()
        if now - record.last > QUIET_SECONDS:
            del self._records[subject]
            return 0.0
        while record.made and record.made[0][0] <= now - WINDOW_SECONDS:
            record.made.popleft()
        return max(self._window(record, now), record.last + self._pause(record) - now, 0.0)

    def _window(self, record: _Record, now: float) -> float:
        """How long until enough attempts are a minute old."""
        # One whole attempt is left in any case: a single refusal must not cost a minute.
        over = sum(cost for _, cost in record.made) - max(self._limit - 1.0, 1.0 - REFUSED)
        until = now
        for at, cost in record.made:
            if over <= 0:
                break
            over -= cost
            until = at + WINDOW_SECONDS
        return until - now

    def _pause(self, record: _Record) -> float:
        over = record.streak - self._limit
        if over < 0:
            return 0.0
        return min(FIRST_PAUSE_SECONDS * float(2 ** min(over, 10.0)), LONGEST_PAUSE_SECONDS)
