"""A conversation with an API server that touches every rule on which Dovetail relies.

The same requests are sent to the embedded server and to a real one.
What each answers is reduced to what a client may count on: status, reason, fields that are wrong,
and the parts of the object that a step names.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

Body = dict[str, Any]
Memory = dict[str, Body]
"""What earlier steps were answered, by the name of the step."""

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

NAMESPACE = "conversation"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DRA = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/namespaces/{NAMESPACE}/resourceclaims"
TEMPLATES = f"{DRA}/namespaces/{NAMESPACE}/resourceclaimtemplates"
SLICES = f"{DRA}/resourceslices"
FINALIZER = "resource.kubernetes.io/delete-protection"
GATE = "dovetail.dev/allocation"


@dataclass(frozen=True, slots=True)
class Step:
    """One request. The body may depend on what was answered before; `shows` are dotted paths of the answer."""

    name: str
    method: str
    path: str
    body: Body | list[Body] | Callable[[Memory], Any] | None = None
    shows: tuple[str, ...] = ()
    content_type: str = "application/json"


def claim(name: str = "", **metadata: Any) -> Body:
    """A claim for two devices that are aligned."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": ({"name": name} if name else {}) | metadata,
        "spec": spec(),
    }


def spec(**changes: Any) -> Body:
    """What a claim asks for."""
    devices: Body = {
        "requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "gpu"}},
            {"name": "nic", "firstAvailable": [{"name": "fast", "deviceClassName": "nic"}]},
        ],
        "constraints": [{"requests": ["gpu", "nic"], "matchAttribute": "dovetail.dev/numaNode"}],
    }
    return {"devices": devices | changes}


def allocation(device: str = "gpu-0", **changes: Any) -> Body:
    """Two devices on node-a."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}
    return {
        "devices": {
            "results": [
                {"request": "gpu", "driver": "gpu.example.com", "pool": "node-a", "device": device},
                {"request": "nic/fast", "driver": "nic.example.com", "pool": "node-a", "device": "nic-0"},
            ]
        },
        "nodeSelector": {"nodeSelectorTerms": [term]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    } | changes


def consumer(uid: str = "uid-1", name: str = "trainer") -> Body:
    """An entry of reservedFor."""
    return {"resource": "pods", "name": name, "uid": uid}


def pod(name: str, **spec_changes: Any) -> Body:
    """A gated pod with one generated claim."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "example.com/image"}],
            "schedulingGates": [{"name": GATE}, {"name": "example.com/other"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "pair"}],
        }
        | spec_changes,
    }


def but(step: str, **changes: Any) -> Callable[[Memory], Any]:
    """The object that a step was answered, with changes at top level."""
    return lambda memory: memory[step] | changes


def with_status(step: str, status: Body) -> Callable[[Memory], Any]:
    """The object that a step was answered, with another status."""
    return but(step, status=status)


def with_metadata(step: str, **changes: Any) -> Callable[[Memory], Any]:
    """The object that a step was answered, with changes of its metadata."""
    return lambda memory: memory[step] | {"metadata": memory[step]["metadata"] | changes}


STATUS = ("status", "metadata.finalizers", "metadata.annotations", "metadata.generation")
SETUP = (
    Step(
        "namespace",
        "POST",
        "/api/v1/namespaces",
        {"metadata": {"name": NAMESPACE}},
        ("status.phase", "metadata.labels"),
    ),
    Step(
        "account",
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
        {"metadata": {"name": "default"}},
    ),
)
CLAIM_STEPS = (
    Step(
        "claim",
        "POST",
        CLAIMS,
        claim("one", annotations={"a": "b"}),
        ("spec", "status", "metadata.generation"),
    ),
    Step("claim again", "POST", CLAIMS, claim("one")),
    Step("no such claim", "GET", f"{CLAIMS}/none"),
    Step("no such namespace", "POST", CLAIMS.replace(NAMESPACE, "nowhere"), claim("one")),
    Step("name missing", "POST", CLAIMS, claim()),
    Step("name wrong", "POST", CLAIMS, claim("Bad_Name")),
    Step("version at create", "POST", CLAIMS, claim("two", resourceVersion="5")),
    Step("other namespace", "POST", CLAIMS, claim("two", namespace="default")),
    Step(
        "status at create",
        "POST",
        CLAIMS,
        claim("wiped") | {"status": {"allocation": allocation()}},
        ("status",),
    ),
    Step(
        "bare attribute",
        "POST",
        CLAIMS,
        claim("x") | {"spec": spec(constraints=[{"matchAttribute": "numaNode"}])},
    ),
    Step(
        "two attributes",
        "POST",
        CLAIMS,
        claim("x") | {"spec": spec(constraints=[{"matchAttribute": "a.b/c", "distinctAttribute": "a.b/c"}])},
    ),
    Step(
        "unknown request",
        "POST",
        CLAIMS,
        claim("x") | {"spec": spec(constraints=[{"requests": ["fpga"], "matchAttribute": "a.b/c"}])},
    ),
    Step(
        "empty request",
        "POST",
        CLAIMS,
        claim("x") | {"spec": spec(requests=[{"name": "gpu"}], constraints=[])},
    ),
    Step("unchanged", "PUT", f"{CLAIMS}/one", but("claim"), ("metadata.generation", "same:claim")),
    Step("spec changed", "PUT", f"{CLAIMS}/one", but("claim", spec=spec(constraints=[]))),
    Step("finalizer", "PUT", f"{CLAIMS}/one", with_metadata("claim", finalizers=[FINALIZER]), STATUS),
    Step("stale", "PUT", f"{CLAIMS}/one", with_metadata("claim", labels={"a": "b"})),
    Step(
        "status on the object",
        "PUT",
        f"{CLAIMS}/one",
        with_status("finalizer", {"allocation": allocation()}),
        STATUS,
    ),
    Step(
        "metadata on the status",
        "PATCH",
        f"{CLAIMS}/one/status",
        {"metadata": {"annotations": {"c": "d"}, "finalizers": []}},
        STATUS,
        MERGE,
    ),
    Step(
        "reserved unallocated",
        "PUT",
        f"{CLAIMS}/one/status",
        with_status("finalizer", {"reservedFor": [consumer()]}),
    ),
    Step(
        "unknown result",
        "PUT",
        f"{CLAIMS}/one/status",
        with_status("finalizer", {"allocation": allocation(devices={"results": [{"request": "fpga"}]})}),
    ),
    Step(
        "no term",
        "PUT",
        f"{CLAIMS}/one/status",
        with_status("finalizer", {"allocation": allocation(nodeSelector={"nodeSelectorTerms": []})}),
    ),
    Step(
        "wrong source",
        "PUT",
        f"{CLAIMS}/one/status",
        with_status(
            "finalizer",
            {
                "allocation": allocation(
                    devices={
                        "config": [
                            {"source": "Elsewhere", "opaque": {"driver": "dovetail.dev", "parameters": {}}}
                        ]
                    }
                )
            },
        ),
    ),
    Step(
        "allocated",
        "PUT",
        f"{CLAIMS}/one/status",
        with_status("finalizer", {"allocation": allocation(), "reservedFor": [consumer()]}),
        STATUS,
    ),
    Step(
        "stale status", "PUT", f"{CLAIMS}/one/status", with_status("finalizer", {"allocation": allocation()})
    ),
    Step(
        "other device",
        "PUT",
        f"{CLAIMS}/one/status",
        with_status("allocated", {"allocation": allocation("gpu-1"), "reservedFor": [consumer()]}),
    ),
    Step(
        "other time",
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"allocation": {"allocationTimestamp": "2026-01-01T00:00:01Z"}}},
        (),
        MERGE,
    ),
    Step(
        "second consumer",
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"reservedFor": [consumer("uid-2", "second")]}},
        STATUS,
        STRATEGIC,
    ),
    Step(
        "same consumer twice",
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"reservedFor": [consumer(), consumer()]}},
        (),
        MERGE,
    ),
    Step(
        "too many consumers",
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"reservedFor": [consumer(f"uid-{index}") for index in range(257)]}},
        (),
        MERGE,
    ),
    Step(
        "nameless consumer",
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"reservedFor": [{"resource": "pods", "name": "", "uid": "u"}]}},
        (),
        MERGE,
    ),
    Step(
        "wrong identity",
        "PATCH",
        f"{CLAIMS}/one/status",
        {
            "metadata": {"uid": "somebody else"},
            "status": {"reservedFor": [{"uid": "uid-1", "$patch": "delete"}]},
        },
        (),
        STRATEGIC,
    ),
    Step(
        "first consumer leaves",
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"reservedFor": [{"uid": "uid-1", "$patch": "delete"}]}},
        STATUS,
        STRATEGIC,
    ),
    Step(
        "applied consumer",
        "PATCH",
        f"{CLAIMS}/one/status?fieldManager=me",
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "status": {"reservedFor": [consumer("uid-3")]},
        },
        STATUS,
        APPLY,
    ),
    Step(
        "applied no more",
        "PATCH",
        f"{CLAIMS}/one/status?fieldManager=me",
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "status": {"reservedFor": []}},
        STATUS,
        APPLY,
    ),
    Step(
        "apply without manager",
        "PATCH",
        f"{CLAIMS}/one/status",
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"},
        (),
        APPLY,
    ),
    Step(
        "foreign device status",
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"devices": [{"driver": "gpu.example.com", "pool": "node-a", "device": "gpu-7"}]}},
        (),
        MERGE,
    ),
    Step(
        "device status",
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"devices": [{"driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0"}]}},
        STATUS,
        MERGE,
    ),
    Step(
        "deletion begins",
        "DELETE",
        f"{CLAIMS}/one",
        None,
        ("metadata.finalizers", "is:metadata.deletionTimestamp"),
    ),
    Step(
        "consumer of a leaving claim",
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"reservedFor": [consumer("uid-9")]}},
        (),
        STRATEGIC,
    ),
    Step(
        "finalizer of a leaving claim",
        "PATCH",
        f"{CLAIMS}/one",
        {"metadata": {"finalizers": [FINALIZER, "example.com/mine"]}},
        (),
        MERGE,
    ),
    Step(
        "taken back",
        "PATCH",
        f"{CLAIMS}/one/status",
        {"status": {"allocation": None, "reservedFor": None}},
        ("status", "metadata.finalizers"),
        MERGE,
    ),
    Step(
        "last finalizer",
        "PATCH",
        f"{CLAIMS}/one",
        [{"op": "remove", "path": "/metadata/finalizers"}],
        ("metadata.finalizers",),
        JSON,
    ),
    Step("gone", "GET", f"{CLAIMS}/one"),
    Step(
        "generated",
        "POST",
        CLAIMS,
        claim(generateName="trainer-gpu-"),
        ("metadata.generateName", "length:metadata.name"),
    ),
    Step("unconditional", "PUT", f"{CLAIMS}/wiped", claim("wiped", labels={"a": "b"}), ("metadata.labels",)),
    Step("other name", "PUT", f"{CLAIMS}/wiped", claim("elsewhere")),
    Step("no such object", "PUT", f"{CLAIMS}/none", claim("none")),
    Step("no such subresource", "GET", f"{CLAIMS}/wiped/scale"),
    Step("wrong precondition", "DELETE", f"{CLAIMS}/wiped", {"preconditions": {"uid": "somebody else"}}),
    Step("deleted", "DELETE", f"{CLAIMS}/wiped", None),
    Step("paged", "GET", f"{CLAIMS}?limit=1", None, ("kind", "is:metadata.resourceVersion", "length:items")),
    Step(
        "by label",
        "GET",
        f"{CLAIMS}?labelSelector=a%3Db",
        None,
        ("kind", "length:items"),
    ),
    Step("unknown patch", "PATCH", f"{CLAIMS}/generated", {}, (), "application/json"),
)
POD_STEPS = (
    Step(
        "template",
        "POST",
        TEMPLATES,
        {"metadata": {"name": "pair"}, "spec": {"spec": spec()}},
        ("spec", "metadata.generation"),
    ),
    Step(
        "template changed",
        "PATCH",
        f"{TEMPLATES}/pair",
        {"spec": {"spec": {"devices": {"constraints": []}}}},
        (),
        MERGE,
    ),
    Step(
        "pod",
        "POST",
        PODS,
        pod("trainer"),
        ("spec.schedulingGates", "status.phase", "reasons:status.conditions"),
    ),
    Step("gated with a node", "POST", PODS, pod("x", nodeName="node-a")),
    Step("gate twice", "POST", PODS, pod("x", schedulingGates=[{"name": GATE}, {"name": GATE}])),
    Step("claim of neither kind", "POST", PODS, pod("x", resourceClaims=[{"name": "gpu"}])),
    Step(
        "bound while gated",
        "POST",
        f"{PODS}/trainer/binding",
        {"metadata": {"name": "trainer"}, "target": {"kind": "Node", "name": "node-a"}},
    ),
    Step(
        "new gate",
        "PATCH",
        f"{PODS}/trainer",
        {"spec": {"schedulingGates": [{"name": "example.com/new"}]}},
        (),
        STRATEGIC,
    ),
    Step("other claims", "PATCH", f"{PODS}/trainer", {"spec": {"resourceClaims": []}}, (), MERGE),
    Step(
        "narrowed",
        "PATCH",
        f"{PODS}/trainer",
        {"spec": {"nodeSelector": {"disk": "fast"}}},
        ("spec.nodeSelector",),
        STRATEGIC,
    ),
    Step("widened", "PATCH", f"{PODS}/trainer", {"spec": {"nodeSelector": None}}, (), MERGE),
    Step("node by update", "PATCH", f"{PODS}/trainer", {"spec": {"nodeName": "node-a"}}, (), MERGE),
    Step(
        "claim recorded",
        "PATCH",
        f"{PODS}/trainer/status?fieldManager=one&force=true",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "trainer-gpu-x"}]},
        },
        ("status.resourceClaimStatuses",),
        APPLY,
    ),
    Step(
        "claim taken over",
        "PATCH",
        f"{PODS}/trainer/status?fieldManager=two",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "trainer-gpu-y"}]},
        },
        (),
        APPLY,
    ),
    Step(
        "claim taken over by force",
        "PATCH",
        f"{PODS}/trainer/status?fieldManager=two&force=true",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "trainer-gpu-y"}]},
        },
        ("status.resourceClaimStatuses",),
        APPLY,
    ),
    Step(
        "unknown claim recorded",
        "PATCH",
        f"{PODS}/trainer/status",
        {"status": {"resourceClaimStatuses": [{"name": "nic", "resourceClaimName": "x"}]}},
        (),
        STRATEGIC,
    ),
    Step(
        "condition",
        "PATCH",
        f"{PODS}/trainer/status",
        {
            "status": {
                "conditions": [{"type": "dovetail.dev/Allocated", "status": "False", "reason": "Waiting"}]
            }
        },
        ("reasons:status.conditions",),
        STRATEGIC,
    ),
    Step(
        "our gate goes",
        "PATCH",
        f"{PODS}/trainer",
        {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}},
        ("spec.schedulingGates",),
        STRATEGIC,
    ),
    Step(
        "last gate goes",
        "PATCH",
        f"{PODS}/trainer",
        {"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/other"}]}},
        ("spec.schedulingGates",),
        STRATEGIC,
    ),
    Step(
        "gate comes back",
        "PATCH",
        f"{PODS}/trainer",
        {"spec": {"schedulingGates": [{"name": GATE}]}},
        (),
        STRATEGIC,
    ),
    Step(
        "bound",
        "POST",
        f"{PODS}/trainer/binding",
        {"metadata": {"name": "trainer"}, "target": {"kind": "Node", "name": "node-a"}},
    ),
    Step("bound pod", "GET", f"{PODS}/trainer", None, ("spec.nodeName", "spec.schedulingGates")),
    Step(
        "bound twice",
        "POST",
        f"{PODS}/trainer/binding",
        {"metadata": {"name": "trainer"}, "target": {"kind": "Node", "name": "node-b"}},
    ),
    Step(
        "ends in time",
        "DELETE",
        f"{PODS}/trainer",
        None,
        ("is:metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds"),
    ),
    Step("ends now", "DELETE", f"{PODS}/trainer", {"gracePeriodSeconds": 0}),
    Step("ended", "GET", f"{PODS}/trainer"),
)
OTHER_STEPS = (
    Step(
        "slice",
        "POST",
        SLICES,
        {
            "metadata": {"name": "node-a-gpu"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "node-a",
                "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 1},
            },
        },
        ("spec.nodeName", "metadata.generation"),
    ),
    Step("slice moved", "PATCH", f"{SLICES}/node-a-gpu", {"spec": {"nodeName": "node-b"}}, (), MERGE),
    Step("slice everywhere", "PATCH", f"{SLICES}/node-a-gpu", {"spec": {"allNodes": True}}, (), MERGE),
    Step(
        "slice renewed",
        "PATCH",
        f"{SLICES}/node-a-gpu",
        {"spec": {"pool": {"generation": 2}}},
        ("metadata.generation",),
        MERGE,
    ),
    Step("slice gone", "DELETE", f"{SLICES}/node-a-gpu"),
    Step(
        "event",
        "POST",
        f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events",
        {
            "metadata": {"name": "note"},
            "regarding": {"kind": "Pod", "name": "trainer", "namespace": NAMESPACE},
            "type": "Normal",
            "reason": "Allocated",
            "action": "Allocate",
            "note": "two devices",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "dovetail.dev/operator",
            "reportingInstance": "dovetail-0",
        },
        ("note", "regarding.name"),
    ),
    Step(
        "event in the other group",
        "GET",
        f"/api/v1/namespaces/{NAMESPACE}/events/note",
        None,
        ("message", "involvedObject.name", "reportingComponent"),
    ),
    Step(
        "event without time",
        "POST",
        f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events",
        {"metadata": {"name": "bad"}, "regarding": {"namespace": NAMESPACE}, "type": "Normal", "reason": "A"},
    ),
    Step(
        "event of another namespace",
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}/events",
        {"metadata": {"name": "bad"}, "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"}},
    ),
    Step(
        "lease",
        "POST",
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases",
        {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}},
        ("spec.holderIdentity",),
    ),
    Step(
        "lease unconditionally",
        "PUT",
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/leader",
        {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "b", "leaseDurationSeconds": 15}},
    ),
    Step(
        "access",
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {
            "spec": {
                "resourceAttributes": {
                    "verb": "update",
                    "group": "resource.k8s.io",
                    "resource": "resourceclaims",
                }
            }
        },
        ("status.allowed",),
    ),
    Step("unknown resource", "GET", "/apis/resource.k8s.io/v1/resourceclams"),
)
CONVERSATION = (*SETUP, *CLAIM_STEPS, *POD_STEPS, *OTHER_STEPS)


async def converse(session: aiohttp.ClientSession, server: str) -> dict[str, Any]:
    """Send every request in turn; the answers, reduced, by the name of the step."""
    memory: Memory = {}
    heard: dict[str, Any] = {}
    for step in CONVERSATION:
        body = step.body(memory) if callable(step.body) else step.body
        headers = {"Content-Type": step.content_type, "Accept": "application/json"}
        url = server + step.path
        async with session.request(step.method, url, json=body, headers=headers) as response:
            answer = await response.json(content_type=None)
        memory[step.name] = answer
        heard[step.name] = reduced(step, response.status, answer, memory)
    return heard


def reduced(step: Step, status: int, answer: Body, memory: Memory) -> Body:
    """What a client may count on in an answer."""
    if status >= 400:
        causes = answer.get("details", {}).get("causes", [])
        fields = sorted({cause["field"] for cause in causes})
        return {"status": status, "reason": answer.get("reason", "")} | ({"fields": fields} if fields else {})
    return {"status": status} | {path: shown(answer, path, memory) for path in step.shows}


def shown(answer: Body, path: str, memory: Memory) -> Any:
    """The part of an answer that a path names; `how:path` tells less of it."""
    how, _, rest = path.rpartition(":")
    if how == "same":
        return answer["metadata"]["resourceVersion"] == memory[rest]["metadata"]["resourceVersion"]
    value: Any = answer
    for part in rest.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    match how:
        case "is":
            return bool(value)
        case "length":
            return len(value)
        case "reasons":
            return [[entry["type"], entry["status"], entry.get("reason")] for entry in value]
        case _:
            return value
