"""The audit finds claims and pods that may have one device, by DRA and by device plugin (T-18, R-G4)."""

from dataclasses import replace
from typing import Any

import pytest

from dovetail.core.audit import audit
from dovetail.core.findings import Fault
from tests.audit.cluster import claim, device_class, evidence, pod, published, result

Body = dict[str, Any]
NVIDIA = "gpu.nvidia.com"
ONE = {"nvidia.com/gpu": "1"}


def holders(*claims: str, pool: str = "n1", **more: Any) -> list[Body]:
    """Claims that hold one GPU each on a node."""
    devices = [f"d{index}" for index, _ in enumerate(claims)]
    return [
        published(*devices, driver=NVIDIA, pool=pool),
        *(
            claim(name, result(device, driver=NVIDIA, pool=pool, **more), node=pool)
            for name, device in zip(claims, devices, strict=True)
        ),
    ]


def found(*bodies: Body) -> list[tuple[str, list[str]]]:
    """The pods that are found, each with the claims that may have its devices."""
    return [
        (finding.consumer, [name for _, name in finding.claims])
        for finding in audit(evidence(*bodies))
        if finding.fault is Fault.GIVEN_BY_PLUGIN_TOO
    ]


def given_as_devices(name: str) -> Body:
    """A pod whose extended resource kube-scheduler served by a claim."""
    body = pod(name, node="n1", takes=ONE)
    mapping = {"containerName": "main", "resourceName": "nvidia.com/gpu", "requestName": "r"}
    body["status"]["extendedResourceClaimStatus"] = {
        "resourceClaimName": "special",
        "requestMappings": [mapping],
    }
    return body


def test_each_pod_is_found_with_all_claims_of_its_node() -> None:
    """Nobody knows which device kubelet gave it."""
    pods = [pod(name, node="n1", takes=ONE) for name in ("p", "q")]
    assert found(*holders("a", "b"), *pods) == [("default/p", ["a", "b"]), ("default/q", ["a", "b"])]


@pytest.mark.parametrize(
    "harmless",
    [
        pod("p", node="n2", takes=ONE),
        pod("p", takes=ONE),
        pod("p", node="n1", takes=ONE, phase="Succeeded"),
        pod("p", node="n1", takes={"amd.com/gpu": "1", "cpu": "1"}),
        pod("p", node="n1", takes={"nvidia.com/gpu": "0"}),
        given_as_devices("p"),
    ],
)
def test_a_pod_that_has_none_of_the_devices_by_plugin_is_not_found(harmless: Body) -> None:
    """Elsewhere, not bound, done, with another resource, with none of it, or served by a claim itself."""
    assert found(*holders("a"), harmless) == []


def test_admin_access_takes_nothing_from_the_pod() -> None:
    """Who looks after a device may share it."""
    assert found(*holders("a", adminAccess=True), pod("p", node="n1", takes=ONE)) == []


def test_the_class_of_the_request_names_resources_that_no_table_knows() -> None:
    """KEP-5004: the class has the name under which the plugin offers its devices."""
    sound = [published("d0"), claim("a", "d0"), pod("p", node="n1", takes={"example.com/gpu": "1"})]
    assert found(*sound) == []
    named = device_class("gpu", extendedResourceName="example.com/gpu")
    assert found(*sound, named) == [("default/p", ["a"])]


def test_an_alternative_has_a_class_of_its_own() -> None:
    """The result says which alternative was chosen."""
    body = claim("a", result("d0", request="gpu/second"))
    alternatives = [{"name": name, "deviceClassName": name} for name in ("first", "second")]
    body["spec"]["devices"]["requests"] = [{"name": "gpu", "firstAvailable": alternatives}]
    seen = [published("d0"), body, pod("p", node="n1", takes={"example.com/gpu": "1"})]
    assert found(*seen, device_class("first", extendedResourceName="example.com/gpu")) == []
    assert found(*seen, device_class("second", extendedResourceName="example.com/gpu")) != []


def test_plugins_that_keep_to_other_devices_are_no_finding() -> None:
    """As the setting says."""
    seen = evidence(*holders("a"), pod("p", node="n1", takes=ONE))
    assert audit(seen) != ()
    assert audit(replace(seen, allows_dual_mode=True)) == ()
