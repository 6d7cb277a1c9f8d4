"""What the API server fills in when an object is created: only what a reader of raw objects notices."""

from dovetail.embedded.bodies import Body, items, now, part
from dovetail.embedded.kinds import Kind


def filled(kind: Kind, body: Body) -> Body:
    """The object with the defaults that every write gets. May change `body`."""
    match kind.name:
        case "ResourceClaim":
            _default_claim(part(body, "spec"))
            for device in items(body, "status", "devices"):
                device.setdefault("conditions", None)
        case "ResourceClaimTemplate":
            body.setdefault("spec", {}).setdefault("metadata", {})
            _default_claim(part(body, "spec", "spec"))
        case "Pod":
            _default_pod(body.setdefault("spec", {}))
        case _:
            pass
    return body


def defaulted(kind: Kind, body: Body) -> Body:
    """A new object with its defaults; a status that the caller sent is wiped (V5). May change `body`."""
    body = filled(kind, body)
    if kind.status:
        body.pop("status", None)
    match kind.name:
        case "Pod":
            body["status"] = _new_pod_status(body)
        case "Namespace":
            body["status"] = {"phase": "Active"}
            labels = body["metadata"].setdefault("labels", {})
            labels["kubernetes.io/metadata.name"] = body["metadata"]["name"]
        case "ResourceClaim":
            body["status"] = {}
        case "CustomResourceDefinition":
            body["status"] = _crd_status(body)
        case "Node":
            body.setdefault("spec", {})
            body["status"] = {}
        case _:
            pass
    return body


def _default_pod(spec: Body) -> None:
    for name, value in {
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "priority": 0,
    }.items():
        spec.setdefault(name, value)


def _new_pod_status(body: Body) -> Body:
    status: Body = {"phase": "Pending"}
    if items(body, "spec", "schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        status["conditions"] = [scheduled_condition("False", "SchedulingGated", message)]
    return status


def scheduled_condition(status: str, reason: str = "", message: str = "") -> Body:
    """The pod condition PodScheduled."""
    said = {"reason": reason or None, "message": message or None}
    return {"type": "PodScheduled", "status": status, "lastTransitionTime": now()} | said


def _default_claim(spec: Body) -> None:
    for request in items(spec, "devices", "requests"):
        exactly = request.get("exactly")
        for wanted in ([exactly] if exactly else []) + (request.get("firstAvailable") or []):
            wanted.setdefault("allocationMode", "ExactCount")
            if wanted["allocationMode"] == "ExactCount":
                wanted.setdefault("count", 1)


def _crd_status(body: Body) -> Body:
    condition = {"status": "True", "lastTransitionTime": now(), "reason": "NoConflicts", "message": ""}
    return {
        "conditions": [condition | {"type": "NamesAccepted"}, condition | {"type": "Established"}],
        "acceptedNames": body["spec"]["names"],
        "storedVersions": [version["name"] for version in body["spec"]["versions"] if version.get("storage")],
    }
