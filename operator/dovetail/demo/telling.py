"""What a change of the cluster means for the story: one line, or nothing."""

import json
from collections.abc import Mapping
from typing import Any

from dovetail.api.mappings import ALIGNMENT_ANNOTATION
from dovetail.demo.proof import condition_of, results_of

Body = Mapping[str, Any]


def told(kind: str, before: Body | None, after: Body) -> str:
    """The line for an object that changed from one state to another; empty where the story goes on."""
    match kind:
        case "ResourceClaim":
            return _claim_told(before or {}, after)
        case "Pod":
            return _pod_told(before or {}, after)
        case _:
            return ""


def _claim_told(before: Body, after: Body) -> str:
    name = after["metadata"]["name"]
    if not before:
        return f"claim {name} appears, made from the template"
    results = results_of(dict(after))
    if results and not results_of(dict(before)):
        devices = ", ".join(result["device"] for result in results)
        return f"devices on {results[0]['pool']}: {devices}{_alignment(after)}"
    return ""


def _alignment(claim: Body) -> str:
    annotations = claim["metadata"].get("annotations") or {}
    entries = json.loads(annotations.get(ALIGNMENT_ANNOTATION, "[]"))
    return "".join(f" [{entry['attribute']} = {entry['value']}]" for entry in entries)


def _pod_told(before: Body, after: Body) -> str:
    gates = [bool(body.get("spec", {}).get("schedulingGates")) for body in (before, after)]
    phases = [body.get("status", {}).get("phase") for body in (before, after)]
    if gates == [True, False]:
        return "gate removed: kube-scheduler may take the pod"
    if phases == ["Pending", "Running"]:
        return f"runs on {after['spec']['nodeName']}"
    condition = condition_of(dict(after))
    if condition.get("status") == "False" and condition != condition_of(dict(before)):
        return f"waits: {condition['reason']}"
    return ""
