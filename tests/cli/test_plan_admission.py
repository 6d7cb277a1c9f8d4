"""`dovetail plan` takes what the API server takes, fills in what it fills in, and refuses the rest."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import devices, only_pod, outcomes, plan_json, write
from tests.planner.worlds import NUMA, Body, claim, devices_spec, hardware, named, pod, request, template

GPU, NIC = "gpu.example.com", "nic.example.com"


def messages(answer: Body) -> list[str]:
    """What is said of each problem."""
    return [problem["message"] for problem in answer["problems"]]


@pytest.mark.parametrize(
    ("devices_of", "path"),
    [
        ({"constraints": [{"matchAttribute": NUMA, "requests": ["gpus"]}]}, "constraints[0].requests[0]"),
        ({"constraints": [{"matchAttribute": NUMA}] * 33}, "constraints"),
        ({"requests": [request("gpu", GPU, count=-1)]}, "requests[0].exactly.count"),
        ({"requests": [request("gpu", GPU), request("gpu", NIC)]}, "requests[1]"),
        ({"requests": [request("GPU", GPU)]}, "requests[0].name"),
        ({"requests": [request("gpu", GPU, cuont=2)]}, "requests[0].exactly.cuont"),
        ({"constraints": [{"matchAttributes": NUMA}]}, "constraints[0].matchAttributes"),
    ],
)
def test_what_the_api_server_refuses_never_fits(tmp_path: Path, devices_of: Body, path: str) -> None:
    """It is a problem with its path, and the pod that uses it is told."""
    spec: Any = devices_spec()
    spec["devices"] |= devices_of
    answer = plan_json(
        write(tmp_path, *hardware("n1"), template(spec=spec), pod(template="template")), status=2
    )
    assert messages(answer)[0].startswith(f"spec.spec.devices.{path}: ")
    assert outcomes(answer) == {"pod": "error"}
    assert f"spec.spec.devices.{path}: " in answer["pods"][0]["message"]


def test_a_count_of_zero_is_one(tmp_path: Path) -> None:
    """And a mode without a word is ExactCount."""
    spec = devices_spec(request("gpu", GPU, count=0, allocationMode=""), match=NUMA)
    write(tmp_path, *hardware("n1"), claim(spec=spec), pod(claims=[named("claim")]))
    assert len(devices(only_pod(tmp_path))) == 1


def test_fields_that_nobody_knows_are_notes_where_that_is_asked_for(tmp_path: Path) -> None:
    """`--lenient` is for what other versions wrote: the rest of the object counts."""
    spec = devices_spec(request("gpu", GPU, cuont=2), match=NUMA)
    write(tmp_path, *hardware("n1"), claim(spec=spec), pod(claims=[named("claim")]))
    answer = plan_json(tmp_path, "--lenient")
    assert outcomes(answer) == {"pod": "fits"}
    assert "spec.devices.requests[0].exactly.cuont: " in answer["notes"][0]
    assert answer["notes"][0].endswith("did you mean 'count'?")


@pytest.mark.parametrize(
    ("labels", "status"), [(None, 2), ({}, 2), ({"resource.kubernetes.io/admin-access": "true"}, 0)]
)
def test_admin_access_needs_a_labelled_namespace(tmp_path: Path, labels: Body | None, status: int) -> None:
    """A namespace that is not in the input has no labels."""
    spec = devices_spec(request("gpu", GPU, adminAccess=True), match=NUMA)
    write(tmp_path, *hardware("n1"), claim(spec=spec), pod(claims=[named("claim")]))
    if labels is not None:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": labels}}
        write(tmp_path, space, name="namespace.yaml")
    answer = plan_json(tmp_path, status=status)
    assert outcomes(answer) == {"pod": "fits" if status == 0 else "error"}


def test_a_claim_of_a_cluster_is_taken_as_it_is(tmp_path: Path) -> None:
    """The API server judged it when it was made."""
    spec = devices_spec(request("gpu", GPU, adminAccess=True), match=NUMA)
    known = {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    write(tmp_path, *hardware("n1"), claim(spec=spec, metadata=known), pod(claims=[named("claim")]))
    assert only_pod(tmp_path)["outcome"] == "fits"


def test_a_field_of_a_gate_that_is_off_is_left_out(tmp_path: Path) -> None:
    """With a note, as the API server leaves it out."""
    asked = request("gpu", GPU, capacity={"requests": {"memory": "1Ti"}})
    write(
        tmp_path, *hardware("n1"), claim(spec=devices_spec(asked, match=NUMA)), pod(claims=[named("claim")])
    )
    answer = plan_json(tmp_path, "--feature-gates", "DRAConsumableCapacity=false")
    assert outcomes(answer) == {"pod": "fits"}
    assert answer["notes"] == [
        "ResourceClaim default/claim: capacity is left out, since DRAConsumableCapacity is off."
    ]


def test_a_typo_in_a_workload_is_one_problem(tmp_path: Path) -> None:
    """With the path in the workload, and without pods that would be made of it."""
    spec = {"containers": [{"name": "c", "resources": {}}], "schedulingGate": [{"name": "a"}]}
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "w"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "w"}},
            "template": {"metadata": {"labels": {"app": "w"}}, "spec": spec},
        },
    }
    answer = plan_json(write(tmp_path, *hardware("n1"), workload), status=2)
    (message,) = messages(answer)
    assert message.startswith("spec.template.spec.schedulingGate: ")
    assert "'schedulingGates'" in message
    assert answer["pods"] == []


def test_a_slice_that_is_refused_still_tells_what_else_is_wrong(tmp_path: Path) -> None:
    """The problem has the path, and the pod's sentence is about the pool."""
    body: Body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": GPU,
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 0},
            "devices": [{"name": "a"}],
        },
    }
    answer = plan_json(write(tmp_path, body), status=2)
    assert messages(answer) == ["spec.pool.resourceSliceCount: it is not greater than zero"]


def test_nothing_fits_by_a_class_that_the_api_server_refuses(tmp_path: Path) -> None:
    """One with a selector too many: the pod is told which."""
    bodies = [*hardware("n1"), template(), pod(template="template")]
    wrong = next(body for body in bodies if body["kind"] == "DeviceClass")
    wrong["spec"]["selectors"] = [{"cel": {"expression": "true"}}] * 33
    answer = plan_json(write(tmp_path, *bodies), status=2)
    assert outcomes(answer) == {"pod": "error"}
    assert f"DeviceClass {wrong['metadata']['name']}: spec.selectors: " in answer["pods"][0]["message"]


def test_a_slice_counts_as_a_driver_wrote_it(tmp_path: Path) -> None:
    """A largest amount that no step reaches is a problem; what the pod would get of it is told."""
    policy = {"default": "2Gi", "validRange": {"min": "2Gi", "max": "20Gi", "step": "4Gi"}}
    bodies = hardware("n1")
    for device in (each for body in bodies for each in body.get("spec", {}).get("devices", ())):
        capacity = {"memory": {"value": "40Gi", "requestPolicy": policy}}
        device |= {"allowMultipleAllocations": True, "capacity": capacity}
    write(tmp_path, *bodies, template(), pod(template="template"))
    answer = plan_json(tmp_path, status=2)
    assert "requestPolicy.validRange.step: 20Gi is no multiple of 4Gi from 2Gi" in messages(answer)[0]
    assert outcomes(answer) == {"pod": "fits"}


def test_what_is_wrong_with_parameters_of_ours_is_told_with_its_path(tmp_path: Path) -> None:
    """The API server takes them, since only Dovetail knows them: the pod cannot be served."""
    derived = [{"name": "d/a", "expression": "1"}, {"name": "d/b", "exression": "1"}]
    parameters = {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "ClaimParameters",
        "derivedAttributes": derived,
    }
    spec: Any = devices_spec(request("gpu", GPU), match=NUMA)
    spec["devices"]["config"] = [{"opaque": {"driver": "dovetail.dev", "parameters": parameters}}]
    write(tmp_path, *hardware("n1"), claim(spec=spec), pod(claims=[named("claim")]))
    answer = only_pod(tmp_path, status=1)
    assert answer["outcome"] == "error"
    assert "spec.devices.config[0].opaque.parameters.derivedAttributes[1].ex" in answer["message"]
