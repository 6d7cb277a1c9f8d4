"""What is said about custom kinds, preconditions and Server-Side Apply in general."""

from tests.embedded.steps import (
    APPLY,
    CLAIMS,
    JSON,
    MERGE,
    NAMESPACE,
    PODS,
    STRATEGIC,
    Step,
    claim,
    pod,
    with_metadata,
)

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/widgets"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
NODES = "/api/v1/nodes"

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}}

CUSTOM_STEPS = (
    Step("definition", "POST", CRDS, DEFINITION),
    Step(
        "widget",
        "POST",
        WIDGETS,
        WIDGET | {"spec": {"a": 1, "list": [1, 2]}, "status": {"x": 1}},
        ("spec", "status", "metadata.generation"),
        patient=True,
    ),
    Step("widget unconditionally", "PUT", f"{WIDGETS}/one", WIDGET | {"spec": {"a": 2}}),
    Step("widget strategically", "PATCH", f"{WIDGETS}/one", {"spec": {"a": 2}}, (), STRATEGIC),
    Step(
        "widget merged",
        "PATCH",
        f"{WIDGETS}/one",
        {"spec": {"a": None, "b": 1}, "status": {"y": 1}},
        ("spec", "status", "metadata.generation"),
        MERGE,
    ),
    Step(
        "widget status",
        "PATCH",
        f"{WIDGETS}/one/status",
        {"spec": {"c": 1}, "status": {"conditions": [{"type": "Ready"}]}, "metadata": {"labels": {"a": "b"}}},
        ("spec", "status", "metadata.labels", "metadata.generation"),
        MERGE,
    ),
    Step("widget renamed", "PUT", f"{WIDGETS}/one", with_metadata("widget status", name="two")),
    Step("widget stale", "PUT", f"{WIDGETS}/one", with_metadata("widget", labels={"x": "y"})),
    Step(
        "widget of another uid", "PUT", f"{WIDGETS}/one", with_metadata("widget status", uid="somebody else")
    ),
    Step(
        "stale merge",
        "PATCH",
        f"{WIDGETS}/one",
        {"metadata": {"resourceVersion": "1"}, "spec": {}},
        (),
        MERGE,
    ),
    Step(
        "widget applied",
        "PATCH",
        f"{WIDGETS}/one?fieldManager=me&force=true",
        WIDGET | {"spec": {"list": [3]}},
        ("spec", "metadata.generation"),
        APPLY,
    ),
    Step(
        "widget applied anew",
        "PATCH",
        f"{WIDGETS}/two?fieldManager=me",
        {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"a": 1}},
        ("spec", "metadata.name"),
        APPLY,
    ),
    Step("widgets", "GET", WIDGETS, None, ("kind", "length:items")),
    Step("widgets deleted", "DELETE", WIDGETS),
    Step("no widgets", "GET", WIDGETS, None, ("length:items",)),
    Step("definition deleted", "DELETE", f"{CRDS}/widgets.example.com"),
)
MORE_STEPS = (
    Step(
        "map applied",
        "PATCH",
        f"{MAPS}/applied?fieldManager=a",
        MAP | {"data": {"a": "1", "b": "1"}},
        ("data",),
        APPLY,
    ),
    Step(
        "map applied by another",
        "PATCH",
        f"{MAPS}/applied?fieldManager=b",
        MAP | {"data": {"b": "1", "c": "1"}},
        ("data",),
        APPLY,
    ),
    Step(
        "map given up in part",
        "PATCH",
        f"{MAPS}/applied?fieldManager=a",
        MAP | {"data": {"a": "2"}},
        ("data",),
        APPLY,
    ),
    Step(
        "map given up by both",
        "PATCH",
        f"{MAPS}/applied?fieldManager=b",
        MAP | {"data": {}},
        ("data",),
        APPLY,
    ),
    Step(
        "map of another",
        "PATCH",
        f"{MAPS}/applied?fieldManager=c",
        MAP | {"data": {"a": "3"}},
        (),
        APPLY,
    ),
    Step(
        "finalizer applied",
        "PATCH",
        f"{MAPS}/applied?fieldManager=c",
        MAP | {"metadata": {"name": "applied", "finalizers": ["example.com/a"]}},
        ("metadata.finalizers",),
        APPLY,
    ),
    Step(
        "finalizer merged",
        "PATCH",
        f"{MAPS}/applied",
        {"metadata": {"finalizers": ["example.com/b"]}},
        ("metadata.finalizers",),
        STRATEGIC,
    ),
    Step(
        "finalizer taken out",
        "PATCH",
        f"{MAPS}/applied",
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}},
        ("metadata.finalizers",),
        STRATEGIC,
    ),
    Step("bare finalizer", "PATCH", f"{MAPS}/applied", {"metadata": {"finalizers": ["mine"]}}, (), MERGE),
    Step(
        "test passes",
        "PATCH",
        f"{MAPS}/applied",
        [{"op": "test", "path": "/data/a", "value": "2"}],
        ("data",),
        JSON,
    ),
    Step(
        "test fails", "PATCH", f"{MAPS}/applied", [{"op": "test", "path": "/data/a", "value": "7"}], (), JSON
    ),
    Step("remove nothing", "PATCH", f"{MAPS}/applied", [{"op": "remove", "path": "/data/z"}], (), JSON),
    Step(
        "add and replace",
        "PATCH",
        f"{MAPS}/applied",
        [{"op": "add", "path": "/data/z", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "8"}],
        ("data",),
        JSON,
    ),
    Step(
        "wrong version precondition", "DELETE", f"{MAPS}/applied", {"preconditions": {"resourceVersion": "1"}}
    ),
    Step("map deleted", "DELETE", f"{MAPS}/applied"),
    Step("future list", "GET", f"{MAPS}?resourceVersion=99999999&resourceVersionMatch=Exact"),
    Step("bad selector", "GET", f"{MAPS}?labelSelector=a%20b%20c"),
    Step(
        "node",
        "POST",
        NODES,
        {"metadata": {"name": "conversation-node"}, "status": {"allocatable": {"cpu": "4"}}},
        ("metadata.generation",),
    ),
    Step(
        "node status",
        "PATCH",
        f"{NODES}/conversation-node/status",
        {"status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "4"}}},
        ("status.allocatable", "reasons:status.conditions"),
        STRATEGIC,
    ),
    Step(
        "node cordoned",
        "PATCH",
        f"{NODES}/conversation-node",
        {"spec": {"unschedulable": True}},
        ("spec.unschedulable",),
        MERGE,
    ),
    Step("node gone", "DELETE", f"{NODES}/conversation-node"),
    Step("gated pod", "POST", PODS, pod("waiting"), ("metadata.generation",)),
    Step(
        "gated pod touched",
        "PATCH",
        f"{PODS}/waiting",
        {"metadata": {"annotations": {"a": "b"}, "finalizers": ["example.com/hold"]}},
        ("metadata.annotations", "metadata.generation"),
        MERGE,
    ),
    Step(
        "gates merged away",
        "PATCH",
        f"{PODS}/waiting",
        {"spec": {"schedulingGates": None}},
        ("spec.schedulingGates", "metadata.generation"),
        MERGE,
    ),
    Step("pod held by its finalizer", "DELETE", f"{PODS}/waiting", None, ("is:metadata.deletionTimestamp",)),
    Step(
        "bound while leaving",
        "POST",
        f"{PODS}/waiting/binding",
        {"metadata": {"name": "waiting"}, "target": {"kind": "Node", "name": "node-a"}},
    ),
    Step("pod let go", "PATCH", f"{PODS}/waiting", {"metadata": {"finalizers": None}}, (), MERGE),
    Step("pod is gone", "GET", f"{PODS}/waiting"),
    Step("owned", "POST", CLAIMS, claim("owned", ownerReferences=[{"kind": "Pod"}])),
    Step("claims deleted", "DELETE", CLAIMS),
    Step("no claims", "GET", CLAIMS, None, ("length:items",)),
)
