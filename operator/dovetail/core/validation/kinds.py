"""What the API server refuses of each kind that Dovetail allocates by."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dovetail.core.validation import names
from dovetail.core.validation.claims import claim_spec, configs, selectors
from dovetail.core.validation.defaults import WORKLOADS, pod_template
from dovetail.core.validation.devices import taint
from dovetail.core.validation.expressions import Rules
from dovetail.core.validation.faults import Fault, Faults, missing, unknown_choice
from dovetail.core.validation.metadata import labels, metadata, template_metadata
from dovetail.core.validation.pods import RESTARTS, pod, pod_spec
from dovetail.core.validation.slices import slice_spec

Body = Mapping[str, Any]


def _claim(body: Body, rules: Rules) -> Faults:
    yield from metadata(body.get("metadata", {}), counted=True)
    yield from claim_spec(body.get("spec", {}), "spec", rules)


def _template(body: Body, rules: Rules) -> Faults:
    yield from metadata(body.get("metadata", {}), counted=True)
    spec = body.get("spec", {})
    yield from template_metadata(spec.get("metadata", {}), "spec.metadata")
    yield from claim_spec(spec.get("spec", {}), "spec.spec", rules)


def _class(body: Body, rules: Rules) -> Faults:
    yield from metadata(body.get("metadata", {}), generated=False)
    spec = body.get("spec", {})
    yield from selectors(spec.get("selectors", []), "spec.selectors", rules)
    yield from configs(spec.get("config", []), "spec.config")
    resource = spec.get("extendedResourceName")
    if resource is not None and (reason := names.extended_resource(resource)):
        yield Fault("spec.extendedResourceName", reason)


def _slice(body: Body, rules: Rules) -> Faults:
    yield from metadata(body.get("metadata", {}))
    yield from slice_spec(body.get("spec", {}), "spec", rules.features)


def _taint_rule(body: Body, _: Rules) -> Faults:
    yield from metadata(body.get("metadata", {}))
    spec = body.get("spec", {})
    selector = spec.get("deviceSelector", {})
    for field, rule in (("driver", names.driver), ("pool", names.pool), ("device", names.label)):
        if field in selector and (reason := rule(selector[field])):
            yield Fault(f"spec.deviceSelector.{field}", reason)
    yield from taint(spec.get("taint", {}), "spec.taint")


def _workload(body: Body, _: Rules) -> Faults:
    yield from metadata(body.get("metadata", {}))
    at = "spec.jobTemplate.spec.template" if "jobTemplate" in body.get("spec", {}) else "spec.template"
    template = pod_template(body.get("kind", ""), body)
    yield from labels(template.get("metadata", {}), f"{at}.metadata")
    runs = _RESTARTS.get(body.get("kind", ""))
    if template.get("spec"):
        if body.get("apiVersion") == "apps/v1" and not any(body.get("spec", {}).get("selector", {}).values()):
            yield missing("spec.selector")
        yield from pod_spec(template["spec"], f"{at}.spec")
        policy = template["spec"].get("restartPolicy") or RESTARTS[0]
        if runs is not None and policy in RESTARTS and policy not in runs:
            yield unknown_choice(f"{at}.spec.restartPolicy", policy, runs)


_RESTARTS: Final = {
    **dict.fromkeys(WORKLOADS, RESTARTS[:1]),
    **dict.fromkeys(("Job", "CronJob"), RESTARTS[1:]),
}
"""What the pods of a workload may do when their containers end."""


KINDS: Final[Mapping[str, Callable[[Body, Rules], Faults]]] = {
    "DeviceClass": _class,
    "DeviceTaintRule": _taint_rule,
    "Pod": pod,
    "ResourceClaim": _claim,
    "ResourceClaimTemplate": _template,
    "ResourceSlice": _slice,
    **dict.fromkeys((*WORKLOADS, "CronJob"), _workload),
}
"""How the objects of a kind are judged; other kinds are judged by their fields alone."""
