"""Events: two groups serve the same objects under different field names; core/v1 is what is kept."""

from collections.abc import Iterator, Mapping
from itertools import islice

from dovetail.embedded.bodies import Body, namespace_of, part
from dovetail.embedded.kinds import EVENT, NEW_EVENT

_NEW_NAMES: Mapping[str, str] = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES = {new: core for core, new in _NEW_NAMES.items()}


WORD_LIMIT = 128
NOTE_LIMIT = 1024


def as_core(body: Body) -> Body:
    """The core/v1 form of an object, or of a merge patch, that is in the form of events.k8s.io/v1."""
    renamed = {_CORE_NAMES.get(name, name): value for name, value in body.items()}
    return renamed | ({"apiVersion": EVENT.api_version} if "apiVersion" in body else {})


def as_new(body: Body) -> Body:
    """The events.k8s.io/v1 form of a core/v1 event."""
    return {_NEW_NAMES.get(name, name): value for name, value in body.items()} | {
        "apiVersion": NEW_EVENT.api_version
    }


def event_causes(body: Body, *, new: bool) -> Iterator[str]:
    """Why an event, in its core/v1 form, may not be created; `new` says that events.k8s.io/v1 was used."""
    regarding = part(body, "involvedObject")
    namespace = regarding.get("namespace") or "default"
    if namespace != namespace_of(body) and not (new and not regarding.get("namespace")):
        yield "involvedObject.namespace: Invalid value: does not match event.namespace"
    if new:
        yield from islice(_new_event_causes(body), 1)


def _new_event_causes(body: Body) -> Iterator[str]:
    """The rules of events.k8s.io/v1, as the API server checks them; it tells only the first."""
    if not body.get("eventTime"):
        yield "eventTime: Required value"
    for field in ("reportingComponent", "reportingInstance", "action", "reason"):
        value = body.get(field) or ""
        if not value:
            yield f"{_NEW_NAMES.get(field, field)}: Required value"
        elif len(value) > WORD_LIMIT:
            yield f"{_NEW_NAMES.get(field, field)}: Invalid value: can have at most {WORD_LIMIT} characters"
    if len(body.get("message") or "") > NOTE_LIMIT:
        yield f"note: Invalid value: can have at most {NOTE_LIMIT} characters"
    if body.get("type") not in ("Normal", "Warning"):
        yield f'type: Invalid value: "{body.get("type", "")}": has to be Normal or Warning'
