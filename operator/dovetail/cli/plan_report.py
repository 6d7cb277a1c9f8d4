"""What `dovetail plan` says, as JSON: the outcome of every pod, and every problem."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from dovetail.api.mappings import ALIGNMENT_ANNOTATION
from dovetail.cli.manifests import Trouble
from dovetail.cli.plan_remarks import Remark
from dovetail.core.decisions import (
    Cut,
    DoesNotFit,
    Invalid,
    Nothing,
    NotOurs,
    Place,
    Reserve,
    Ungate,
    Waits,
)
from dovetail.core.forecast import Forecast, Served
from dovetail.core.reasons import Reason

UNRESOLVED = (Reason.CLAIMS_NOT_CREATED, Reason.CLAIM_MALFORMED)
"""In a cluster these pass; in a plan nothing will create what the input lacks."""


def outcome_of(forecast: Forecast) -> str:
    """fits, doesNotFit, cut, waits, error or notOurs."""
    outcome: str
    match forecast.decision:
        case Place() | Reserve() | Nothing():
            outcome = "fits"
        case DoesNotFit():
            outcome = "doesNotFit"
        case Cut():
            outcome = "cut"
        case Waits(reason=reason):
            outcome = "error" if reason in UNRESOLVED else "waits"
        case Invalid():
            outcome = "error"
        case NotOurs(sentence=sentence):
            outcome = "error" if sentence else "notOurs"
        case Ungate():
            outcome = "notOurs"
    return outcome


def message_of(forecast: Forecast) -> str:
    """One sentence, with the reason in front where the pod has to wait or cannot be served; else nothing."""
    failure = forecast.generation
    match forecast.decision:
        case Waits(reason, _) | Invalid(reason, _) if failure is not None:
            return f"{reason}: {failure.message}"
        case NotOurs(sentence) if sentence and failure is not None:
            return failure.message
        case Waits(reason, sentence) | Invalid(reason, sentence):
            return f"{reason}: {sentence}"
        # Whoever has the objects may read the names of all of them.
        case DoesNotFit(told_in_full=sentence) | Cut(_, sentence) | Ungate(sentence) | NotOurs(sentence):
            return sentence
        case Place() as place:
            return " ".join(_notes_on(place))
        case Reserve() | Nothing():
            return ""


def _notes_on(place: Place) -> Iterator[str]:
    if place.preempts:
        yield "kube-scheduler has to evict pods of lower priority from the node first."
    if place.extended:
        yield (
            f"kube-scheduler itself chooses the devices for {', '.join(place.extended)}: "
            "they need not be aligned with these."
        )


def as_json(
    forecasts: Iterable[Forecast],
    troubles: Iterable[Trouble],
    remarks: Iterable[Remark],
    notes: Iterable[str],
) -> dict[str, Any]:
    """The whole answer; `warnings` and `notes` only where there are any."""
    more = {"warnings": [_warning(each) for each in remarks], "notes": list(notes)}
    return {
        "pods": [_pod(each) for each in forecasts],
        "problems": [_problem(each) for each in troubles],
        **{field: told for field, told in more.items() if told},
    }


def allocation_of(served: Served) -> dict[str, Any]:
    """The allocation as `status.allocation` carries it, without its timestamp."""
    if served.planned is not None:
        return dict(served.planned.body)
    allocation = served.claim.status.allocation
    if allocation is None:
        return {}
    body = allocation.model_dump(mode="json", by_alias=True, exclude_unset=True)
    body.pop("allocationTimestamp", None)
    return body


def alignment_of(served: Served) -> list[dict[str, Any]]:
    """What the devices have in common; of a claim that was allocated before, what its annotation says."""
    if served.planned is not None:
        return [alignment.as_json() for alignment in served.planned.alignment]
    try:
        recorded = json.loads(served.claim.metadata.annotations.get(ALIGNMENT_ANNOTATION, "[]"))
    except (ValueError, RecursionError):
        return []
    return list(filter(_is_alignment, recorded)) if isinstance(recorded, list) else []


def _is_alignment(entry: Any) -> bool:
    """Whether it has the form that Dovetail writes: whoever made the claim may have written anything."""
    if not isinstance(entry, dict):
        return False
    value, requests = entry.get("value"), entry.get("requests", [])
    values = value if isinstance(value, list) else [value]
    return (
        isinstance(entry.get("attribute"), str)
        and isinstance(requests, list)
        and all(isinstance(each, str) for each in requests)
        and all(isinstance(each, str | int) for each in values)
    )


def _pod(forecast: Forecast) -> dict[str, Any]:
    return {
        "namespace": forecast.pod.metadata.namespace,
        "name": forecast.pod.metadata.name,
        "outcome": outcome_of(forecast),
        "node": forecast.node,
        "claims": [_claim(served) for served in forecast.served],
        "message": message_of(forecast),
    }


def _claim(served: Served) -> dict[str, Any]:
    return {
        "name": served.entry,
        "resourceClaim": served.claim.metadata.name if served.exists else None,
        "allocation": allocation_of(served),
        "alignment": alignment_of(served),
    }


def _warning(remark: Remark) -> dict[str, Any]:
    metadata = remark.pod.metadata
    return {"namespace": metadata.namespace, "name": metadata.name, "message": remark.message}


def _problem(trouble: Trouble) -> dict[str, Any]:
    return {
        "file": trouble.origin.file,
        "document": trouble.origin.document,
        "kind": trouble.kind,
        "name": trouble.name,
        "message": trouble.message,
    }
