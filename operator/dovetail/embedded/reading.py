"""What a request says, read as strictly as by the API server: 4xx for everything that it cannot mean."""

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml
from aiohttp import web
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dovetail.api.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate
from dovetail.api.meta import KubernetesObject, Listed, Mapped
from dovetail.api.nodes import Node
from dovetail.api.pods import Container, Pod, PodSpec
from dovetail.api.slices import DeviceTaintRule, ResourceSlice
from dovetail.embedded.answers import StatusError, bad_request
from dovetail.embedded.bodies import Body, metadata_of
from dovetail.embedded.kinds import Kind

APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
JSON_TYPES = ("application/json", "")


class _Container(Container):
    image: str = ""


class _PodSpec(PodSpec):
    containers: Listed[_Container] = ()


class _Pod(Pod):
    spec: _PodSpec = _PodSpec()


class _ConfigMap(KubernetesObject):
    data: Mapped[str] = {}


_MODELS: Mapping[str, type[KubernetesObject]] = {
    "Pod": _Pod,
    "Node": Node,
    "ConfigMap": _ConfigMap,
    "ResourceClaim": ResourceClaim,
    "ResourceClaimTemplate": ResourceClaimTemplate,
    "DeviceClass": DeviceClass,
    "ResourceSlice": ResourceSlice,
    "DeviceTaintRule": DeviceTaintRule,
}
"""The kinds whose fields are known; of others only the metadata is."""

_SHAPE = re.compile(r".*_(type|parsing|from_float)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNSIGNED = re.compile(r"[0-9]{1,19}")
_SIGNED = re.compile(r"-?[0-9]{1,18}")
_SECONDS = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,6})?")


async def read_body(http: web.Request) -> Any:
    """The JSON of a request, or the YAML of an apply; None without a body."""
    try:
        raw = await http.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise StatusError(413, "Request entity too large: limit is 3145728") from error
    if http.method == "GET" or (http.method == "DELETE" and not raw):
        return None
    declared = http.content_type if "Content-Type" in http.headers else ""
    if http.method != "PATCH" and declared not in JSON_TYPES:
        raise StatusError(415, f"the body of the request was in an unknown format: {declared}")
    body = _parsed(raw, is_yaml=declared == APPLY)
    wanted: type = list if declared == JSON_PATCH else dict
    if not isinstance(body, wanted):
        raise bad_request(f"the body of the request is no {'list' if wanted is list else 'object'}")
    return body


def _parsed(raw: bytes, *, is_yaml: bool) -> Any:
    try:
        value = _yaml(raw) if is_yaml else json.loads(raw, parse_constant=_refuse_constant)
        return json.loads(_SURROGATE.sub("\ufffd", json.dumps(value, allow_nan=False, ensure_ascii=False)))
    except (ValueError, TypeError, RecursionError, yaml.YAMLError) as error:
        raise bad_request(f"the body of the request cannot be read: {error}") from error


def _yaml(raw: bytes) -> Any:
    """YAML without aliases, which a few bytes make stand for any number of values."""
    text = raw.decode()
    if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
        raise ValueError("aliases are not read")
    return yaml.safe_load(text)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def check_shape(kind: Kind, body: Any, code: int = 400) -> None:
    """Refuse an object some field of which is of another type than its kind says."""
    if not isinstance(body, dict):
        raise StatusError(code, "the object is no object")
    model = _MODELS.get(kind.name, KubernetesObject) if kind.builtin else KubernetesObject
    try:
        model.model_validate(_without_nulls(body))
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False):
            if _SHAPE.fullmatch(fault["type"]):
                raise StatusError(code, _words(kind, fault)) from error
    for field in ("spec", "status"):
        if not isinstance(body.get(field), dict | None):
            raise StatusError(code, f"cannot unmarshal {kind.name}.{field}: an object is expected")


def _words(kind: Kind, fault: ErrorDetails) -> str:
    path = ".".join(map(str, fault["loc"]))
    return f"cannot unmarshal {kind.name}.{path}: {fault['msg']}"


def _without_nulls(value: Any, levels: int = 60) -> Any:
    """A field that is null counts as absent."""
    if levels and isinstance(value, dict):
        return {name: _without_nulls(part, levels - 1) for name, part in value.items() if part is not None}
    if levels and isinstance(value, list):
        return [_without_nulls(part, levels - 1) for part in value]
    return value


def check_home(kind: Kind, namespace: str, name: str, body: Body) -> None:
    """Refuse an object of another kind, namespace or name than the URL says; an empty `name` is not asked."""
    said = (body.get("apiVersion"), body.get("kind"))
    if said[0] not in (None, "", kind.api_version) or said[1] not in (None, "", kind.name):
        raise bad_request(f"the API version or kind in the data ({said}) does not match the URL")
    metadata = metadata_of(body)
    if metadata.get("namespace") and metadata["namespace"] != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if name and metadata.get("name") != name:
        wanted = "the name of the object does not match the name on the URL"
        raise bad_request(f"{wanted} ({metadata.get('name')} and {name})")


def unsigned(query: Mapping[str, str], name: str) -> int:
    """A resourceVersion, say; 0 without one."""
    text = query.get(name, "")
    if text and not _UNSIGNED.fullmatch(text):
        raise bad_request(f"{name}: Invalid value: {text!r}: a number is expected")
    return int(text or 0)


def signed(query: Mapping[str, str], name: str) -> int | None:
    """A limit or a time-out, say; None without one."""
    text = query.get(name, "")
    if text and not _SIGNED.fullmatch(text):
        raise bad_request(f"{name}: Invalid value: {text!r}: a number is expected")
    return int(text) if text else None


def timeout_in(query: Mapping[str, str]) -> float | None:
    """How long a list or watch may take. Fractions, which the real server refuses, are for tests."""
    text = query.get("timeoutSeconds", "")
    if text and not _SECONDS.fullmatch(text):
        raise bad_request(f"timeoutSeconds: Invalid value: {text!r}: a number is expected")
    return float(text) if text else None


def is_true(query: Mapping[str, str], name: str) -> bool:
    """As Kubernetes reads a flag: whatever is there and is neither 0 nor false."""
    return name in query and query[name].casefold() not in ("0", "false")


def check_list_query(query: Mapping[str, str]) -> None:
    """Refuse what no list means by its resourceVersion."""
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    unsigned(query, "resourceVersion")
    timeout_in(query)
    if match not in ("", "Exact", "NotOlderThan"):
        raise StatusError(422, f"resourceVersionMatch: Unsupported value: {match!r}")
    if match and (not version or query.get("continue")):
        raise StatusError(422, "resourceVersionMatch: Forbidden: there is no resourceVersion to match")
    if match == "Exact" and version == "0":
        raise StatusError(422, "resourceVersionMatch: Forbidden: 0 cannot be matched exactly")
    if query.get("continue") and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")


def check_write_query(query: Mapping[str, str], content_type: str) -> None:
    """Refuse what no write means by its options."""
    if "dryRun" in query:
        raise bad_request("dry runs are not served")
    if query.get("fieldValidation", "") not in ("", "Ignore", "Warn", "Strict"):
        raise StatusError(422, f"fieldValidation: Unsupported value: {query['fieldValidation']!r}")
    manager = query.get("fieldManager", "")
    if len(manager) > 128 or not manager.isprintable():
        raise StatusError(422, "fieldManager: Invalid value: up to 128 printable characters are expected")
    if is_true(query, "force") and content_type != APPLY:
        raise StatusError(422, "force: Forbidden: may not be specified for non-apply patch")


def delete_options(query: Mapping[str, str], body: Body | None) -> Body:
    """The options of a deletion, from the body or from the URL."""
    options = dict(body or {})
    if options.get("kind") not in (None, "", "DeleteOptions"):
        raise bad_request("decoded object cannot be converted to DeleteOptions")
    if body is None and (grace := signed(query, "gracePeriodSeconds")) is not None:
        options["gracePeriodSeconds"] = grace
    policy = options.get("propagationPolicy", query.get("propagationPolicy"))
    if policy not in (None, "Orphan", "Background", "Foreground"):
        raise StatusError(400 if not isinstance(policy, str) else 422, "propagationPolicy: Unsupported value")
    seconds, preconditions = options.get("gracePeriodSeconds"), options.get("preconditions")
    if isinstance(seconds, bool) or not isinstance(seconds, int | None):
        raise bad_request("gracePeriodSeconds: a number is expected")
    texts = preconditions.values() if isinstance(preconditions, dict) else ()
    if not isinstance(preconditions, dict | None) or not all(isinstance(text, str | None) for text in texts):
        raise bad_request("preconditions: an object of texts is expected")
    return options
