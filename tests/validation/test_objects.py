"""What the API server refuses is found with its path, and defaults are Kubernetes'."""

from typing import Any

import pytest

from dovetail.core.features import Features
from dovetail.core.validation import Admission, admit, expressions

Body = dict[str, Any]

SELECTOR: Body = {"cel": {"expression": 'device.driver == "d"'}}
CONFIG: Body = {"opaque": {"driver": "d", "parameters": {"a": 1}}}


def judged(kind: str, spec: Body, features: Features | None = None, **metadata: Any) -> Admission:
    """What becomes of an object with this specification."""
    api_version = "v1" if kind == "Pod" else "resource.k8s.io/v1"
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "o", **metadata}, "spec": spec}
    return admit(api_version, kind, body, features or Features())


def paths(admission: Admission) -> list[str]:
    """The fields that are refused, in the order in which they are told."""
    return [fault.path for fault in admission.faults]


def request(name: str = "gpu", **exactly: Any) -> Body:
    """A request for devices of a class."""
    return {"name": name, "exactly": {"deviceClassName": "c", **exactly}}


def alternatives(*names: str) -> Body:
    """A request with alternatives."""
    return {"name": "gpu", "firstAvailable": [{"name": name, "deviceClassName": "c"} for name in names]}


def claim(*requests: Body, **devices: Any) -> list[str]:
    """What is refused of a claim."""
    return paths(judged("ResourceClaim", {"devices": {"requests": list(requests), **devices}}))


def slice_of(*devices: Body, **spec: Any) -> list[str]:
    """What is refused of a slice, below its specification."""
    whole = {"driver": "d", "pool": {"name": "p", "resourceSliceCount": 1}, "nodeName": "n"}
    found = judged("ResourceSlice", whole | {"devices": list(devices)} | spec, Features())
    return [path.removeprefix("spec.") for path in paths(found)]


def device(name: str = "d-0", **fields: Any) -> Body:
    """A device."""
    return {"name": name, **fields}


REQUESTS = "spec.devices.requests"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

CLAIMS: list[tuple[list[str], str]] = [
    (claim(request()), ""),
    (claim(request(), constraints=[{"matchAttribute": "d/a", "requests": ["gpu"]}]), ""),
    (
        claim(request(), constraints=[{"matchAttribute": "d/a", "requests": ["gpus"]}]),
        "constraints[0].requests[0]",
    ),
    (
        claim(request(), constraints=[{"matchAttribute": "d/a", "requests": ["gpu/x"]}]),
        "constraints[0].requests[0]",
    ),
    (claim(alternatives("a"), constraints=[{"matchAttribute": "d/a", "requests": ["gpu/a"]}]), ""),
    (claim(request(), constraints=[{"matchAttribute": "d/a"}] * 32), ""),
    (claim(request(), constraints=[{"matchAttribute": "d/a"}] * 33), "constraints"),
    (claim(request(), constraints=[{"matchAttribute": "a"}]), "constraints[0].matchAttribute"),
    (claim(request(), constraints=[{}]), "constraints[0]"),
    (claim(*(request(f"r{index}") for index in range(33))), "requests"),
    (claim(request(), request()), "requests[1]"),
    (claim(request("GPU")), "requests[0].name"),
    (claim(request("a" * 64)), "requests[0].name"),
    (claim({"name": "gpu"}), "requests[0]"),
    (claim({**alternatives("a"), **request()}), "requests[0]"),
    (claim(alternatives(*"abcdefgh")), ""),
    (claim(alternatives(*"abcdefghi")), "requests[0].firstAvailable"),
    (claim(alternatives("a", "a")), "requests[0].firstAvailable[1]"),
    (claim(alternatives("A")), "requests[0].firstAvailable[0].name"),
    (claim(request(count=-1)), "requests[0].exactly.count"),
    (claim(request(count=0)), ""),
    (claim(request(allocationMode="")), ""),
    (claim(request(allocationMode="All", count=1)), "requests[0].exactly.count"),
    (claim(request(allocationMode="Some")), "requests[0].exactly.allocationMode"),
    (claim(request(deviceClassName="")), "requests[0].exactly.deviceClassName"),
    (claim(request(selectors=[SELECTOR] * 32)), ""),
    (claim(request(selectors=[SELECTOR] * 33)), "requests[0].exactly.selectors"),
    (
        claim(request(selectors=[{"cel": {"expression": "device."}}])),
        "requests[0].exactly.selectors[0].cel.expression",
    ),
    (
        claim(request(selectors=[{"cel": {"expression": "1"}}])),
        "requests[0].exactly.selectors[0].cel.expression",
    ),
    (claim(request(selectors=[{}])), "requests[0].exactly.selectors[0].cel"),
    (
        claim(request(tolerations=[{"operator": "Exists", "value": "v"}])),
        "requests[0].exactly.tolerations[0].value",
    ),
    (claim(request(tolerations=[{"effect": "Never"}])), "requests[0].exactly.tolerations[0].effect"),
    (claim(request(), config=[CONFIG] * 33), "config"),
    (claim(request(), config=[{"opaque": {"driver": "d"}}]), "config[0].opaque.parameters"),
    (
        claim(request(), config=[{"opaque": {"driver": "d", "parameters": [1]}}]),
        "config[0].opaque.parameters",
    ),
    (claim(request(), config=[{"opaque": {"driver": "d", "parameters": {"a": "x" * 10_232}}}]), ""),
    (
        claim(request(), config=[{"opaque": {"driver": "d", "parameters": {"a": "x" * 10_233}}}]),
        "config[0].opaque.parameters",
    ),
]


@pytest.mark.parametrize(("found", "path"), CLAIMS)
def test_a_claim_is_refused_where_the_api_server_refuses_it(found: list[str], path: str) -> None:
    """With the path that the API server writes; what lies at the limit is taken."""
    assert found == ([f"spec.devices.{path}"] if path else [])


SLICES: list[tuple[list[str], str]] = [
    (slice_of(device()), ""),
    (slice_of(*(device(f"d-{index}") for index in range(128))), ""),
    (slice_of(*(device(f"d-{index}") for index in range(129))), "devices"),
    (
        slice_of(*(device(f"d-{i}", taints=[{"key": "k", "effect": "NoExecute"}]) for i in range(65))),
        "devices",
    ),
    (slice_of(device(), device()), "devices[1]"),
    (slice_of(device("D")), "devices[0].name"),
    (slice_of(device(attributes={"a": {}})), "devices[0].attributes[a]"),
    (slice_of(device(attributes={"a": {"int": 1, "bool": True}})), "devices[0].attributes[a]"),
    (slice_of(device(attributes={"a-b": {"int": 1}})), "devices[0].attributes"),
    (slice_of(device(attributes={"a": {"version": "1.0"}})), "devices[0].attributes[a].version"),
    (slice_of(device(attributes={"a": {"string": "x" * 65}})), "devices[0].attributes[a].string"),
    (slice_of(device(attributes={f"a{index}": {"int": 1} for index in range(33)})), "devices[0]"),
    (
        slice_of(device(capacity={"m": {"value": "1", "requestPolicy": {}}})),
        "devices[0].capacity[m].requestPolicy",
    ),
    (slice_of(device(nodeName="n")), "devices[0]"),
    (slice_of(device(bindingConditions=["a/b"])), "devices[0].bindingFailureConditions"),
    (slice_of(device(), allNodes=True), "spec"),
    (slice_of(device(), sharedCounters=[{"name": "c", "counters": {"c": {"value": "1"}}}]), "spec"),
    (slice_of(device(), pool={"name": "p", "resourceSliceCount": 0}), "pool.resourceSliceCount"),
    (slice_of(device(), pool={"name": "p//q", "resourceSliceCount": 1}), "pool.name"),
    (slice_of(device(), driver=""), "driver"),
]


@pytest.mark.parametrize(("found", "path"), SLICES)
def test_a_slice_is_refused_where_the_api_server_refuses_it(found: list[str], path: str) -> None:
    """Devices, attributes, capacities and places; what lies at the limit is taken."""
    assert found == ([path] if path else [])


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ({"default": "1", "validValues": ["1", "2"]}, ""),
        ({"default": "3", "validValues": ["1", "2"]}, "validValues"),
        ({"default": "1", "validValues": ["2", "1"]}, "validValues[1]"),
        ({"validValues": ["1"]}, "default"),
        ({"default": "2", "validRange": {"min": "1", "max": "9", "step": "1"}}, "validRange.max"),
        ({"default": "2", "validRange": {"min": "1", "step": "3"}}, "validRange.step"),
        ({"default": "0", "validRange": {"min": "1"}}, "validRange.default"),
    ],
)
def test_a_request_policy_is_judged_by_the_capacity_that_it_is_for(policy: Body, path: str) -> None:
    """The capacity is 8."""
    shared = device(allowMultipleAllocations=True, capacity={"m": {"value": "8", "requestPolicy": policy}})
    at = "devices[0].capacity[m].requestPolicy."
    assert slice_of(shared) == ([at + path] if path else [])


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"selectors": [SELECTOR] * 33}, "spec.selectors"),
        ({"config": [CONFIG] * 33}, "spec.config"),
        ({"extendedResourceName": "gpu"}, "spec.extendedResourceName"),
        ({"extendedResourceName": "kubernetes.io/gpu"}, "spec.extendedResourceName"),
    ],
)
def test_a_class_is_refused_where_the_api_server_refuses_it(spec: Body, path: str) -> None:
    """Selectors, configuration, and the extended resource."""
    assert paths(judged("DeviceClass", spec)) == [path]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"resourceClaims": [{"name": "a"}]}, "spec.resourceClaims[0]"),
        ({"resourceClaims": [{"name": "A", "resourceClaimName": "c"}]}, "spec.resourceClaims[0].name"),
        ({"schedulingGates": [{"name": "g"}, {"name": "g"}]}, "spec.schedulingGates[1]"),
        (
            {"containers": [{"name": "c", "resources": {"claims": [{"name": "x"}]}}]},
            "spec.containers[0].resources.claims[0]",
        ),
        (
            {"containers": [{"name": "c", "resources": {"requests": {"example.com/gpu": "1"}}}]},
            "spec.containers[0].resources.limits",
        ),
        ({"nodeName": "n", "schedulingGates": [{"name": "g"}]}, "spec.nodeName"),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
        ({"tolerations": [{"key": "k", "operator": "Is"}]}, "spec.tolerations[0].operator"),
        ({"tolerations": [{"value": "v"}]}, "spec.tolerations[0].operator"),
        ({"tolerations": [{"key": "k", "operator": "Exists", "value": "v"}]}, "spec.tolerations[0].value"),
        ({"tolerations": [{"key": "k", "effect": "Never"}]}, "spec.tolerations[0].effect"),
        ({"tolerations": [{"key": "k", "tolerationSeconds": 1}]}, "spec.tolerations[0].effect"),
        (
            {"topologySpreadConstraints": [{"topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}]},
            "spec.topologySpreadConstraints[0].maxSkew",
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
            "spec.topologySpreadConstraints[0].topologyKey",
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "k"}]},
            "spec.topologySpreadConstraints[0].whenUnsatisfiable",
        ),
        (
            {"affinity": {"podAntiAffinity": {REQUIRED: [{"labelSelector": {}}]}}},
            f"spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey",
        ),
    ],
)
def test_a_pod_is_refused_for_what_concerns_devices(spec: Body, path: str) -> None:
    """Its claims, its gates, what its containers use of them, and where it may run."""
    assert paths(judged("Pod", {"containers": [{"name": "c"}]} | spec)) == [path]


def test_names_and_labels_are_judged() -> None:
    """As those of every object."""
    spec: Body = {"devices": {}}
    assert paths(judged("ResourceClaim", spec, name="A")) == ["metadata.name"]
    assert paths(judged("ResourceClaim", spec, labels={"a b": ""})) == ["metadata.labels"]
    assert paths(judged("ResourceClaim", spec, annotations={"A/b": "", "a": "b"})) == []
    template = {"metadata": {"name": "x"}, "spec": spec}
    assert paths(judged("ResourceClaimTemplate", template)) == ["spec.metadata.name"]


def test_admin_access_needs_a_label_on_the_namespace() -> None:
    """The API server writes the same path for claims and templates."""
    spec: Body = {"devices": {"requests": [request(adminAccess=True)]}}
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "o"},
        "spec": spec,
    }
    refused = admit("resource.k8s.io/v1", "ResourceClaim", body, Features(), admin=False)
    assert paths(refused) == ["spec.devices.requests[0].adminAccess"]
    assert paths(admit("resource.k8s.io/v1", "ResourceClaim", body, Features(), admin=True)) == []


def test_defaults_are_those_of_kubernetes() -> None:
    """A count of 0 and a mode without a word are filled in, and tolerations compare values."""
    asked = request(count=0, allocationMode="", tolerations=[{"key": "k"}])
    found = judged("ResourceClaim", {"devices": {"requests": [asked]}}).body
    exactly = found["spec"]["devices"]["requests"][0]["exactly"]
    assert (exactly["count"], exactly["allocationMode"]) == (1, "ExactCount")
    assert exactly["tolerations"] == [{"key": "k", "operator": "Equal"}]


def test_a_limit_without_a_request_is_one() -> None:
    """As the API server fills in pods."""
    containers = [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]
    found = judged("Pod", {"containers": containers}).body
    assert found["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2"}


def test_fields_of_gates_that_are_off_are_left_out() -> None:
    """Not refused: the API server drops them, and judges what is left."""
    spec: Body = {"devices": {"requests": [request(capacity={"requests": {"m": "1"}})]}}
    found = judged("ResourceClaim", spec, Features(consumable_capacity=False))
    assert found.dropped == (("DRAConsumableCapacity", "capacity"),)
    assert found.faults == ()
    assert "capacity" not in found.body["spec"]["devices"]["requests"][0]["exactly"]


@pytest.mark.parametrize(
    ("exactly", "path", "near"),
    [({"cuont": 2}, "cuont", "'count'"), ({"zz": 2}, "zz", ""), ({"COUNT": 2}, "COUNT", "'count'")],
)
def test_a_field_that_nobody_knows_is_named_with_the_nearest(exactly: Body, path: str, near: str) -> None:
    """As `kubectl apply --validate=strict` names it."""
    (unknown,) = judged("ResourceClaim", {"devices": {"requests": [request(**exactly)]}}).unknown
    assert unknown.path == f"{REQUESTS}[0].exactly.{path}"
    assert near in unknown.sentence
    assert ("did you mean" in unknown.sentence) is bool(near)


@pytest.mark.parametrize(
    ("exactly", "field"),
    [
        ({"count": "2"}, "count"),
        ({"count": 1.5}, "count"),
        ({"count": 1 << 63}, "count"),
        ({"selectors": {}}, "selectors"),
        ({"capacity": {"requests": {"m": "1 Gi"}}}, "capacity.requests.m"),
        ({"adminAccess": "yes"}, "adminAccess"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(exactly: Body, field: str) -> None:
    """Nothing else is judged then, as the API server reads no further."""
    found = judged("ResourceClaim", {"devices": {"requests": [request(**exactly)]}})
    assert found.unreadable
    assert paths(found) == [f"{REQUESTS}[0].exactly.{field}"]


def test_null_counts_as_absent() -> None:
    """Also where an entry of a list is null: it is an empty one."""
    assert paths(judged("ResourceClaim", {"devices": {"requests": None}})) == []
    assert f"{REQUESTS}[0]" in paths(judged("ResourceClaim", {"devices": {"requests": [None]}}))


def test_an_attribute_without_a_domain_is_told_the_name_that_would_work() -> None:
    """Where Dovetail ships a mapping of that name."""
    bare: Body = {"requests": [request()], "constraints": [{"matchAttribute": "numaNode"}]}
    (fault,) = judged("ResourceClaim", {"devices": bare}).faults
    assert "did you mean 'dovetail.dev/numaNode'?" in fault.sentence


def test_an_expression_that_costs_too_much_to_compile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the command gets an answer all the same."""
    costly = {"selectors": [{"cel": {"expression": "[1, 2, 3, 4, 5].all(x, x > 0 && x < 97)"}}]}
    monkeypatch.setattr(expressions, "MOST_STEPS", 5)
    (fault,) = judged("DeviceClass", costly).faults
    assert fault == ("spec.selectors[0].cel.expression", "it is too complex to be compiled")


def test_a_field_in_the_wrong_place_is_told_where_it_belongs() -> None:
    """Tolerations of a request, written beside the devices."""
    (unknown,) = judged("ResourceClaim", {"tolerations": [], "devices": {}}).unknown
    assert unknown.path == "spec.tolerations"
    assert unknown.sentence.endswith("it belongs in spec.devices.requests[].exactly")


def test_an_expression_that_may_cost_too_much_is_refused() -> None:
    """A selector by itself, derived attributes also together: by the estimate of Kubernetes."""
    costly = "lists.range(1000).all(a, lists.range(1000).all(b, a < b))"
    found = judged("DeviceClass", {"selectors": [{"cel": {"expression": costly}}]})
    assert paths(found) == ["spec.selectors[0].cel.expression"]
    own = 'device.attributes["d"]'
    half = f"{own}.all(a, {own}.all(b, {own}.all(c, a == b || b == c)))"
    derived = [{"name": f"d/a{index}", "expression": half} for index in range(3)]
    constraints = [{"matchAttribute": each["name"]} for each in derived]
    spec = {"devices": {"requests": [request(derivedAttributes=derived)], "constraints": constraints}}
    assert paths(judged("ResourceClaim", spec, Features(derived_attributes=True))) == ["spec.devices"]
