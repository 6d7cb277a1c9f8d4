"""Events: two groups serve the same objects under different field names; core/v1 is what is kept."""

from collections.abc import Iterator, Mapping

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
    if not new:
        return
    for field in ("reportingInstance", "action", "reason", "reportingComponent"):
        value = body.get(field) or ""
        if not value:
            yield f"{_NEW_NAMES.get(field, field)}: Required value"
        elif len(value) > WORD_LIMIT:
            yield f"{_NEW_NAMES.get(field, field)}: Invalid value: can have at most {WORD_LIMIT} characters"
    if not body.get("eventTime"):
        yield "eventTime: Required value"
    if len(body.get("message") or "") > 1024:
        yield "note: Invalid value: can have at most 1024 characters"
    if body.get("type") not in ("Normal", "Warning"):
        yield f'type: Invalid value: "{body.get("type", "")}": has to be Normal or Warning'
