"""Trouble on demand, and a journal of what was asked.

A fault matches requests by method (`PUT`) or verb (`update`, `watch`) and by resource
(`resourceclaims`, `resourceclaims/status`); an empty string matches all.
It happens `times` times, then it is used up.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from dovetail.embedded.answers import StatusError
from dovetail.embedded.bodies import Body, part

WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})
DEFAULT_TIMES = 1
FOR_EVER = 1_000_000
CHANGING = "changing status.allocation or status.reservedFor"


@dataclass(slots=True, kw_only=True)
class Request:
    """One request, as the journal keeps it. `status` is 0 until it is answered; `body` may be a patch."""

    method: str
    verb: str
    path: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    user_agent: str = ""
    content_type: str = ""
    body: object = None
    status: int = 0

    @property
    def is_write(self) -> bool:
        """Whether it would change an object (reviews do not)."""
        return self.verb in WRITE_VERBS and not self.resource.endswith("reviews")


@dataclass(slots=True)
class Held:
    """Requests that wait until they are released."""

    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let the requests go on."""
        self._released.set()

    async def wait(self) -> None:
        """Arrive and wait."""
        self.arrived.set()
        await self._released.wait()


@dataclass(slots=True, kw_only=True)
class _Fault:
    method: str
    resource: str
    left: int
    error: StatusError | None = None
    delay_seconds: float = 0
    drops_answer: bool = False
    answer_seconds: float = 0
    held: Held | None = None
    call: Callable[[], object] | None = None
    drops_fields: frozenset[str] = frozenset()

    def matches(self, request: Request) -> bool:
        return (
            self.left > 0
            and self.method in ("", request.method, request.verb)
            and self.resource in ("", request.resource)
        )


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of an answer: it is dropped, or late."""

    drops_answer: bool
    answer_seconds: float


@dataclass(frozen=True, slots=True)
class Denial:
    """A right that nobody has."""

    verb: str
    group: str
    resource: str


class Faults:
    """The trouble that is to come."""

    def __init__(self) -> None:
        self._faults: list[_Fault] = []
        self.denied: set[Denial] = set()

    def fail(
        self,
        method: str,
        resource: str,
        *,
        status: int,
        times: int = DEFAULT_TIMES,
        retry_after_seconds: int | None = None,
        message: str = "injected",
    ) -> None:
        """Refuse the next matching requests; nothing is written."""
        error = StatusError(status, message, retry_after_seconds=retry_after_seconds)
        self._faults.append(_Fault(method=method, resource=resource, left=times, error=error))

    def delay(self, method: str, resource: str, *, seconds: float, times: int = DEFAULT_TIMES) -> None:
        """Serve the next matching requests late."""
        self._faults.append(_Fault(method=method, resource=resource, left=times, delay_seconds=seconds))

    def drop_answer(self, method: str, resource: str, *, times: int = DEFAULT_TIMES) -> None:
        """Do what the next matching requests ask, then cut the connection instead of answering."""
        self._faults.append(_Fault(method=method, resource=resource, left=times, drops_answer=True))

    def delay_answer(self, method: str, resource: str, *, seconds: float, times: int = DEFAULT_TIMES) -> None:
        """Do what the next matching requests ask, and say so late: others see it first."""
        self._faults.append(_Fault(method=method, resource=resource, left=times, answer_seconds=seconds))

    def hold(self, method: str, resource: str, *, times: int = DEFAULT_TIMES) -> Held:
        """Let the next matching requests wait until `release`; `arrived` tells when the first is there."""
        held = Held()
        self._faults.append(_Fault(method=method, resource=resource, left=times, held=held))
        return held

    def before(
        self, method: str, resource: str, call: Callable[[], object], *, times: int = DEFAULT_TIMES
    ) -> None:
        """Call something just before the next matching requests are served: somebody who writes first."""
        self._faults.append(_Fault(method=method, resource=resource, left=times, call=call))

    def drop_fields(self, *names: str) -> None:
        """Keep nothing of these fields in allocations and their results, as if their gate were off (V69)."""
        self._faults.append(
            _Fault(
                method="PUT",
                resource="resourceclaims/status",
                left=FOR_EVER,
                drops_fields=frozenset(names),
            )
        )

    def deny(self, verb: str, resource: str, group: str = "") -> None:
        """Take a right away from everybody: requests get 403, access reviews say no.

        `resourceclaims/binding` refuses changes of allocation and reservation (A3 to A5).
        """
        self.denied.add(Denial(verb, group, resource))

    def clear(self) -> None:
        """Forget all trouble."""
        self._faults.clear()
        self.denied.clear()

    async def meet(self, request: Request) -> "Fate":
        """Let matching faults happen, and say what is to become of the answer."""
        drops_answer, answer_seconds = False, 0.0
        for fault in [fault for fault in self._faults if fault.matches(request)]:
            fault.left -= 1
            if fault.delay_seconds:
                await asyncio.sleep(fault.delay_seconds)
            if fault.held:
                await fault.held.wait()
            if fault.call:
                fault.call()
            if fault.drops_fields:
                _drop_from_allocation(request.body, fault.drops_fields)
            if fault.error:
                raise fault.error
            drops_answer = drops_answer or fault.drops_answer
            answer_seconds += fault.answer_seconds
        self._faults = [fault for fault in self._faults if fault.left > 0]
        return Fate(drops_answer, answer_seconds)

    def check(self, request: Request) -> None:
        """Raise the 403 answer for a request whose right is taken away."""
        if self.is_denied(request.verb, request.group, request.resource):
            missing = _missing(request.verb, request.resource, request.group)
            raise StatusError(403, f"{request.resource} is forbidden: {missing}")

    def is_denied(self, verb: str, group: str, resource: str) -> bool:
        """Whether a right is taken away."""
        return Denial(verb, group, resource) in self.denied


def review(faults: Faults, body: Body) -> Body:
    """The answer to a SelfSubjectAccessReview."""
    asked = (body.get("spec") or {}).get("resourceAttributes") or {}
    resource = asked.get("resource", "") + (f"/{asked['subresource']}" if asked.get("subresource") else "")
    denied = faults.is_denied(asked.get("verb", ""), asked.get("group", ""), resource)
    return dict(body) | {"status": {"allowed": not denied, "reason": "denied by test" if denied else ""}}


def _drop_from_allocation(claim: object, names: frozenset[str]) -> None:
    status = part(claim, "status") if isinstance(claim, dict) else {}
    allocation = part(status, "allocation")
    for holder in (allocation, *(part(allocation, "devices").get("results") or ())):
        for name in names:
            holder.pop(name, None)


def _missing(verb: str, resource: str, group: str) -> str:
    return f'User "embedded" cannot {verb} resource "{resource}" in API group "{group}"'


def binding_rule(faults: Faults, verb: str) -> Callable[[Body, Body], list[str]]:
    """Changing a claim's allocation or reservation needs `resourceclaims/binding` as well (A3 to A5)."""

    def causes(old: Body, new: Body) -> list[str]:
        before, after = part(old, "status"), part(new, "status")
        same = all(before.get(field) == after.get(field) for field in ("allocation", "reservedFor"))
        is_claim = new.get("kind") == "ResourceClaim"
        if same or not is_claim or not faults.is_denied(verb, "resource.k8s.io", "resourceclaims/binding"):
            return []
        right = f'resource="resourceclaims/binding", verb="{verb}" permission'
        missing = _missing(verb, "resourceclaims/binding", "resource.k8s.io")
        return [f"status.allocation: Forbidden: {CHANGING} requires {right}: {missing} at the cluster scope"]

    return causes
