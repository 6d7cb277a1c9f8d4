"""Objects judged by us and by a running API server (`dryRun=All`, `fieldValidation=Strict`)."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from typing_extensions import override

from dovetail.core.features import Features
from dovetail.core.quantity import Quantity
from dovetail.core.validation import admit
from dovetail.core.validation.fields import Reading
from e2e.harness.errors import ApiError
from e2e.harness.kube import Kube
from e2e.validation.generator import LABELLED, Body, Generator

AT_ONCE: Final = 16
MOST_SAID: Final = 100
"""So many unknown fields are named in one answer."""

_UNKNOWN: Final = re.compile(r'unknown field "([^"]*)"')
_STRICT: Final = "strict decoding error"
_UNTIMED: Final = "timeAdded"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of an object: `paths` where it is refused, `spec` where it is taken."""

    outcome: str
    paths: frozenset[str] = frozenset()
    said: str = ""
    spec: Any = None


@dataclass(frozen=True, slots=True)
class Difference:
    """An object on which the two differ."""

    body: Body
    theirs: Verdict
    ours: Verdict
    why: str

    @override
    def __str__(self) -> str:
        return (
            f"{self.why}: {json.dumps(self.body)[:1500]}\n    theirs: {self.theirs}\n    ours:   {self.ours}"
        )


async def compare(
    kube: Kube, features: Features, seed: int, number: int
) -> tuple[list[Difference], Counter[str]]:
    """The objects of a seed, judged by both; and how often each outcome came."""
    generator = Generator(Random(seed))
    cases = [generator.object() for _ in range(number)]
    gate = asyncio.Semaphore(AT_ONCE)

    async def ask(body: Body, namespace: str) -> Verdict:
        async with gate:
            return await asked(kube, body, namespace)

    theirs = await asyncio.gather(*(ask(*each) for each in cases))
    ours = [judged(body, namespace, features) for body, namespace in cases]
    found = [
        Difference(body, their, our, why)
        for (body, _), their, our in zip(cases, theirs, ours, strict=True)
        if (why := difference(their, our))
    ]
    return found, Counter(verdict.outcome for verdict in theirs)


def difference(theirs: Verdict, ours: Verdict) -> str:
    """How two verdicts differ, or nothing: the same outcome, the same fields, the same object."""
    if theirs.outcome != ours.outcome:
        return f"{theirs.outcome}, not {ours.outcome}"
    if theirs.outcome in ("refused", "unknown"):
        return _other_paths(theirs.paths, ours.paths)
    return "filled in otherwise" if theirs.outcome == "taken" and theirs.spec != ours.spec else ""


def _other_paths(theirs: frozenset[str], ours: frozenset[str]) -> str:
    """Paths that only one names.

    Below a path that both name, one may stop where the other goes on.
    """
    if len(theirs) == MOST_SAID and theirs <= ours:
        return ""
    both = theirs & ours
    mine, yours = ({path for path in paths - both if not _is_below(path, both)} for paths in (ours, theirs))
    return f"only theirs: {sorted(yours)}, only ours: {sorted(mine)}" if mine or yours else ""


def _is_below(path: str, others: frozenset[str]) -> bool:
    return any(path.startswith((f"{other}.", f"{other}[")) for other in others)


def judged(body: Mapping[str, Any], namespace: str, features: Features) -> Verdict:
    """What we say."""
    admission = admit(body["apiVersion"], body["kind"], body, features, admin=namespace == LABELLED)
    said = "; ".join(map(str, (*admission.faults, *admission.unknown)))
    if admission.unreadable:
        return Verdict("unreadable", said=said)
    if admission.unknown:
        return Verdict("unknown", frozenset(fault.path for fault in admission.unknown), said)
    if admission.faults:
        return Verdict("refused", frozenset(fault.path for fault in admission.faults), said)
    return Verdict("taken", spec=plain(admission.body.get("spec", {})))


async def asked(kube: Kube, body: Mapping[str, Any], namespace: str) -> Verdict:
    """What the API server says."""
    resource = await kube.resource(body["kind"])
    path = resource.path(namespace or None)
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    try:
        answer = await kube.request("POST", path, body=body, params=query)
    except ApiError as error:
        return _refusal(error)
    read = Reading(answer, body["apiVersion"], body["kind"])
    assert not read.unknown
    assert not read.wrong
    return Verdict("taken", spec=plain(read.body.get("spec", {})))


def _refusal(error: ApiError) -> Verdict:
    answer: Mapping[str, Any] = error.body
    said = str(answer.get("message", ""))
    if error.status == 422:
        causes: Sequence[Mapping[str, Any]] = answer.get("details", {}).get("causes", ())
        return Verdict("refused", frozenset(cause.get("field", "") for cause in causes), said)
    if error.status == 400:
        if _STRICT in said:
            return Verdict("unknown", frozenset(_UNKNOWN.findall(said)), said)
        return Verdict("unreadable", said=said)
    return Verdict(f"status {error.status}", said=said)


def plain(value: Any, field: str = "") -> Any:
    """A value without what means nothing: empty fields, and how a quantity is written."""
    if isinstance(value, Mapping):
        parts = {key: plain(part, key) for key, part in value.items() if key != _UNTIMED}
        return {
            key: part
            for key, part in parts.items()
            if part not in (None, "", [], {}) and (key, part) != ("generation", 0)
        }
    if isinstance(value, list):
        return [plain(part, field) for part in value]
    return _amount(value) if field in _QUANTITIES else value


def _amount(value: Any) -> Any:
    try:
        return Quantity.parse(value).nano
    except ValueError:
        return value


_QUANTITIES: Final = frozenset(
    {"value", "default", "validValues", "min", "max", "step", "memory", "gpu.example.com/cores"}
    | {"capacityMultiplier", "deviceMultiplier", "perPod", "perContainer", "count"}
)
