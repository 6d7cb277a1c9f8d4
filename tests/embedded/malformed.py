"""Requests that mean nothing: every kind of mistake once, and more of them by chance."""

import json
import random
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from urllib.parse import quote

import aiohttp
from yarl import URL

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

CORE = "/api/v1/namespaces/default"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PODS, MAPS = f"{CORE}/pods", f"{CORE}/configmaps"

CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "one", "namespace": "default", "labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {
        "devices": {
            "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 1}}],
            "constraints": [{"requests": ["gpu"], "matchAttribute": "example.com/a"}],
        }
    },
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "one", "namespace": "default", "labels": {"a": "b"}},
    "spec": {
        "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
        "schedulingGates": [{"name": "example.com/gate"}],
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
    },
}
MAP: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "one", "namespace": "default"},
    "data": {"a": "b"},
}
OBJECTS = {CLAIMS: CLAIM, PODS: POD, MAPS: MAP}

VALUES: tuple[Any, ...] = ("x", 5, True, [5], {"x": 5}, 1.5, [{}], [["x"]])


@dataclass(frozen=True, slots=True)
class Malformed:
    """One request; `path` is raw, with its query."""

    name: str
    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


async def answered(session: aiohttp.ClientSession, server: str, request: Malformed) -> int:
    """The status that a server answers with; of a watch, whatever follows is not read."""
    url = URL(server + request.path, encoded=True)
    skip = ("Content-Type",)
    async with session.request(
        request.method,
        url,
        data=BytesIO(request.body) if request.body else None,
        headers=request.headers,
        skip_auto_headers=skip,
    ) as response:
        return response.status


def every_mistake() -> Iterator[Malformed]:
    """Each kind of mistake, on objects named `one` that exist."""
    yield from _bodies()
    yield from _shapes()
    yield from _patches()
    yield from _queries()
    yield from _paths()


def _sent(name: str, method: str, path: str, body: Any, form: str = JSON) -> Malformed:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Malformed(name, method, path, raw, {"Content-Type": form})


def _bodies() -> Iterator[Malformed]:
    """Bytes that are no object of the kind that the URL names."""
    raw: dict[str, bytes] = {
        "no JSON": b"{",
        "no object": b"[]",
        "a text": b'"x"',
        "null": b"null",
        "a number": b"5",
        "no UTF-8": b'{"kind": "\xff\xfe\xfd',
        "bytes": bytes(range(1, 200)),
        "NaN": b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generation": NaN}}',
        "huge number": b'{"metadata": {"generation": 1e999999}}',
        "long number": b'{"metadata": {"generation": ' + b"9" * 6000 + b"}}",
        "depth": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
        "brackets": b"[" * 100_000,
        "two objects": b"{}{}",
    }
    for what, content in raw.items():
        for path in OBJECTS:
            yield _sent(f"POST {path}: {what}", "POST", path, content)
            yield _sent(f"PUT {path}: {what}", "PUT", f"{path}/one", content)
    for path, body in OBJECTS.items():
        other = {**body, "metadata": {**body["metadata"], "name": "two"}}
        for form in ("text/plain", "application/xml", "application/x-www-form-urlencoded", MERGE):
            yield _sent(f"POST {path}: {form}", "POST", path, other, form)
        wrong: dict[str, dict[str, Any]] = {
            "kind": {**other, "kind": "Secret"},
            "version": {**other, "apiVersion": "v9"},
            "namespace": {**other, "metadata": {"name": "two", "namespace": "elsewhere"}},
            "no name": {**other, "metadata": {}},
            "bad name": {**other, "metadata": {"name": "A_B"}},
            "long name": {**other, "metadata": {"name": "a" * 300}},
            "no metadata": {key: value for key, value in other.items() if key != "metadata"},
            "surrogate": {**other, "metadata": {"name": "\ud800"}},
        }
        for what, sent in wrong.items():
            yield _sent(f"POST {path}: {what}", "POST", path, sent)
            yield _sent(f"PUT {path}: {what}", "PUT", f"{path}/one", sent)
        yield _sent(f"POST {path}: exists", "POST", path, body)
        yield _sent(f"POST {path}: too large", "POST", path, b" " * (4 << 20) + json.dumps(other).encode())
    wrong_options: tuple[Any, ...] = (
        [],
        b"{",
        {"kind": "Pod"},
        {"gracePeriodSeconds": "x"},
        {"preconditions": []},
        {"preconditions": {"uid": "x"}},
        {"propagationPolicy": "Never"},
    )
    for options in wrong_options:
        yield _sent(f"DELETE {options!r}", "DELETE", f"{MAPS}/one", options)


def _shapes() -> Iterator[Malformed]:
    """Fields with values of another type than theirs."""
    for path, body in OBJECTS.items():
        for place in _places(body):
            for value in VALUES:
                if changed := _changed(body, place, value):
                    where = ".".join(map(str, place))
                    yield _sent(f"POST {where} = {value!r} in {path}", "POST", path, changed)
                    yield _sent(
                        f"PATCH {where} = {value!r} in {path}", "PATCH", f"{path}/one", changed, MERGE
                    )


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (*at, key)
        yield from _places(value[key], (*at, key))


def _changed(body: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The object with a value of another type at a place; nothing where it is of the same type."""
    changed = deepcopy(body)
    holder: Any = changed
    for step in place[:-1]:
        holder = holder[step]
    before = holder[place[-1]]
    same = isinstance(before, type(value)) or {type(before), type(value)} <= {int, float}
    if same or (place[-1] == "cpu" and isinstance(value, int | float)):
        return {}
    holder[place[-1]] = value
    return changed


def _patches() -> Iterator[Malformed]:
    raw: dict[str, tuple[Any, ...]] = {
        JSON_PATCH: (
            {},
            "x",
            b"[",
            [5],
            ["x"],
            [{"op": "jump", "path": "/metadata"}],
            [{"op": "add"}],
            [{"op": "remove", "path": "/no/such"}],
            [{"op": "replace", "path": "/no/such", "value": 1}],
            [{"op": "add", "path": "/no/such", "value": 1}],
            [{"op": "test", "path": "/kind", "value": "x"}],
            [{"op": "move", "path": "/kind"}],
            [{"op": "copy", "path": "/kind", "from": "/no/such"}],
            [{"op": "replace", "path": "/metadata", "value": "x"}],
            [{"op": "replace", "path": "/metadata/name", "value": "two"}],
            [{"op": "replace", "path": "/kind", "value": "Secret"}],
            [{"op": "add", "path": "/metadata/labels", "value": ["x"]}],
            [{"op": "add", "path": 5, "value": 1}],
        ),
        MERGE: (
            [],
            "x",
            5,
            b"{",
            {"metadata": "x"},
            {"metadata": {"labels": "x"}},
            {"metadata": {"name": "two"}},
        ),
        STRATEGIC: ([], "x", 5, b"{", {"metadata": "x"}, {"metadata": {"ownerReferences": ["x"]}}),
        APPLY: (
            [],
            "x",
            b"{",
            b"a: [",
            b"a: &a [*a]",
            b"\xff",
            {"kind": "ConfigMap"},
            {**MAP, "kind": "Secret"},
        ),
        JSON: ({},),
        "text/plain": (b"x",),
        "": (b"{}",),
    }
    for form, patches in raw.items():
        query = "?fieldManager=x" if form == APPLY else ""
        for patch in patches:
            yield _sent(f"PATCH {form} {patch!r}", "PATCH", f"{MAPS}/one{query}", patch, form)
    yield _sent("PATCH apply without manager", "PATCH", f"{MAPS}/one", MAP, APPLY)
    yield _sent("PATCH a claim: requests", "PATCH", f"{CLAIMS}/one", {"spec": {"devices": "x"}}, STRATEGIC)
    yield _sent("PATCH a pod: gates", "PATCH", f"{PODS}/one", {"spec": {"schedulingGates": ["x"]}}, STRATEGIC)
    yield _sent("PATCH a pod: no key", "PATCH", f"{PODS}/one", {"spec": {"schedulingGates": [{}]}}, STRATEGIC)
    statuses: tuple[Any, ...] = (
        "x",
        [],
        {"allocation": "x"},
        {"reservedFor": "x"},
        {"allocation": {"devices": []}},
    )
    for status in statuses:
        yield _sent(f"PATCH status {status!r}", "PATCH", f"{CLAIMS}/one/status", {"status": status}, MERGE)


QUERIES = (
    "limit=x",
    "limit=1.5",
    "limit=99999999999999999999",
    "continue=x",
    "continue=%ff",
    "continue=eyJ2IjoxfQ",
    "resourceVersion=x",
    "resourceVersion=-1",
    "resourceVersion=1.5",
    "resourceVersionMatch=Exact",
    "resourceVersionMatch=Never&resourceVersion=1",
    "resourceVersionMatch=Exact&resourceVersion=0",
    "timeoutSeconds=x",
    "labelSelector=a,,b",
    "labelSelector=,",
    "labelSelector=a%20in%20b",
    "labelSelector=a%20in%20(b",
    "labelSelector=a==%3D",
    "labelSelector=%3Da",
    "labelSelector=!",
    "labelSelector=a%2Fb%2Fc",
    "labelSelector=" + "a" * 100,
    "labelSelector=a%3D" + "b" * 100,
    "labelSelector=a%3E%20x",
    "labelSelector=%F0%9F%98%80",
    "fieldSelector=x",
    "fieldSelector=spec.nope%3Dx",
    "fieldSelector=metadata.name",
    "fieldSelector=metadata.labels%3Dx",
    "watch=true&resourceVersion=x",
    "watch=true&timeoutSeconds=x",
    "watch=true&labelSelector=,",
    "watch=true&fieldSelector=x",
)


def _queries() -> Iterator[Malformed]:
    for path in OBJECTS:
        yield from (Malformed(f"GET {path}?{query}", "GET", f"{path}?{query}") for query in QUERIES)
    for query in ("fieldValidation=Never", "fieldManager=" + "x" * 200, "fieldManager=%07"):
        other = {**MAP, "metadata": {"name": "two"}}
        yield _sent(f"POST ?{query}", "POST", f"{MAPS}?{query}", other)
    yield _sent("PATCH force", "PATCH", f"{MAPS}/one?force=true", {}, MERGE)
    yield Malformed("DELETE grace", "DELETE", f"{MAPS}/one?gracePeriodSeconds=x")
    yield Malformed("DELETE policy", "DELETE", f"{MAPS}/one?propagationPolicy=Never")
    yield Malformed("DELETE all by nonsense", "DELETE", f"{MAPS}?labelSelector=,")


def _paths() -> Iterator[Malformed]:
    for path in (
        "/",
        "/nope",
        "/api/v2/pods",
        "/api/v1/nope",
        "/apis/nope/v1/things",
        "/apis/resource.k8s.io/v9/resourceclaims",
        f"{CORE}/nope",
        f"{PODS}/none",
        f"{PODS}/one/nope",
        f"{PODS}/one/status/x",
        f"{PODS}/%ff",
        f"{PODS}/A_B",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces//pods/x",
        "/api/v1/namespaces/none/pods/x",
        f"/{quote('ä')}",
    ):
        for method in ("GET", "PUT", "DELETE") if path != "/" else ():
            body = b"{}" if method == "PUT" else b""
            yield Malformed(f"{method} {path}", method, path, body, {"Content-Type": JSON} if body else {})
    for method, path in (("POST", f"{MAPS}/one"), ("PUT", MAPS), ("PATCH", MAPS)):
        yield _sent(f"{method} {path}", method, path, MAP)
    yield _sent("POST across namespaces", "POST", "/api/v1/configmaps", MAP)


def at_random(seed: int) -> Malformed:
    """A request with several mistakes, or none."""
    chance = random.Random(seed)
    path, body = chance.choice(list(OBJECTS.items()))
    body = deepcopy(body)
    for _ in range(chance.randrange(4)):
        place = chance.choice(list(_places(body)))
        body = _changed(body, place, chance.choice((*VALUES, None, "\ud800", 10**400, {}, []))) or body
    raw = bytearray(json.dumps(body).encode())
    for _ in range(chance.choice((0, 0, 1, 3))):
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    method = chance.choice(("GET", "POST", "PUT", "PATCH", "PATCH", "DELETE"))
    name = chance.choice(("", "/one", "/one", "/one/status", "/one/binding", "/%00", "/one/x"))
    query = "&".join(chance.sample((*QUERIES, "fieldManager=x", "force=1"), chance.choice((0, 0, 1, 2))))
    form = chance.choice((JSON, MERGE, STRATEGIC, JSON_PATCH, APPLY, "text/plain"))
    headers = {"Content-Type": form} if chance.random() < 0.9 else {}
    content = b"" if method == "GET" else bytes(raw)
    return Malformed(f"seed {seed}", method, f"{path}{name}?{query}", content, headers)
