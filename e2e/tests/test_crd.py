"""The API server takes every valid DerivedAttribute, and refuses each broken rule with words that help."""

from __future__ import annotations

import asyncio
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.api.mappings import DerivedAttribute
from dovetail.cli.mappings import manifest
from dovetail.core.attributes import Mappings, refuse_spec
from dovetail.core.mapping_status import DriverCoverage, status_of
from dovetail.core.shipped import shipped_mappings
from e2e.harness.cluster import Cluster
from e2e.harness.errors import ApiError
from e2e.harness.kube import Object
from e2e.harness.oracle import Oracle


def rule(driver: str = "gpu.example.com", expression: str = "1", **others: str) -> dict[str, str]:
    """A rule as a manifest has it."""
    return {"driver": driver, "expression": expression, **others}


def derived_attribute(name: str = "numa", **spec: Any) -> Object:
    """A manifest, valid but for what the test says."""
    usual = {"attribute": "example.com/numa", "rules": [rule()]}
    return {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "DerivedAttribute",
        "metadata": {"name": name},
        "spec": usual | spec,
    }


async def refused(cluster: Cluster, wanted: Object) -> str:
    """The words of the refusal."""
    with pytest.raises(ApiError) as refusal:
        await cluster.kube.create(wanted)
    assert refusal.value.status in {400, 422}
    return str(refusal.value)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"attribute": "derived/numaNode"},
        {"attribute": "notk8s.io/_x9"},
        {"attribute": f"{'d' * 63}/{'n' * 32}"},
        {"rules": [rule(when="true"), rule("*")]},
        {"rules": [rule("GPU.Example.com"), rule("a")]},
        {"rules": [rule(f"d{number}") for number in range(64)]},
        {"rules": [rule(expression="1" * 10240)]},
        {"unknown": [-1, "", True]},
        {"onError": "Fail"},
    ],
    ids=lambda spec: ",".join(spec) or "plain",
)
async def test_a_valid_mapping_is_taken(cluster: Cluster, spec: dict[str, Any]) -> None:
    """The server stores it as it was written, and our own check takes it as well."""
    stored = await cluster.kube.create(derived_attribute(**spec))

    assert stored["spec"] == {"onError": "Exclude"} | derived_attribute(**spec)["spec"]
    assert refuse_spec(DerivedAttribute.parse(stored)) == ""


_BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"attribute": "numa"}, "needs a domain and a name separated by one slash"),
    ({"attribute": ""}, "needs a domain and a name separated by one slash"),
    ({"attribute": "a/b/c"}, "needs a domain and a name separated by one slash"),
    ({"attribute": "-a.b/numa"}, "the domain must be a DNS subdomain of at most 63 characters"),
    ({"attribute": "Example.com/numa"}, "the domain must be a DNS subdomain of at most 63 characters"),
    ({"attribute": f"{'d' * 64}/numa"}, "the domain must be a DNS subdomain of at most 63 characters"),
    ({"attribute": "example.com/numa-node"}, "must be a C identifier of at most 32 characters"),
    ({"attribute": f"example.com/{'n' * 33}"}, "must be a C identifier of at most 32 characters"),
    ({"attribute": "k8s.io/numa"}, "are reserved for Kubernetes"),
    ({"attribute": "dra.k8s.io/numa"}, "are reserved for Kubernetes"),
    ({"attribute": "kubernetes.io/numa"}, "are reserved for Kubernetes"),
    ({"attribute": "resource.kubernetes.io/numaNode"}, "are reserved for Kubernetes"),
    ({"attribute": "gpu.example.com/numa"}, "belongs to the driver of a rule"),
    ({"rules": []}, "at least 1 items"),
    ({"rules": [rule("*"), rule("*")]}, 'at most one rule may have driver "*"'),
    ({"rules": [rule("*"), rule()]}, 'the rule with driver "*" must be the last one'),
    ({"rules": [rule("a b")]}, 'must be the name of a driver, or "*"'),
    ({"rules": [rule("*.example.com")]}, 'must be the name of a driver, or "*"'),
]

_OUT_OF_BOUNDS: list[tuple[dict[str, Any], str]] = [
    ({"rules": [rule(f"d{number}") for number in range(65)]}, "Too many"),
    ({"rules": [rule("d" * 64)]}, "Too long"),
    ({"rules": [rule(expression="")]}, "at least 1 chars"),
    ({"rules": [rule(expression="1" * 10241)]}, "Too long"),
    ({"rules": [rule(when="1" * 10241)]}, "Too long"),
    ({"rules": [{"driver": "a"}]}, "expression: Required"),
    ({"unknown": list(range(17))}, "Too many"),
    ({"unknown": [1.5]}, "multiple of 1"),
    ({"unknown": [{"a": 1}]}, "Too many"),
    ({"onError": "Ignore"}, '"Exclude", "Fail"'),
]


@pytest.mark.parametrize(("spec", "words"), [*_BROKEN, *_OUT_OF_BOUNDS])
async def test_a_broken_mapping_is_refused_with_the_reason(
    cluster: Cluster, spec: dict[str, Any], words: str
) -> None:
    """The message names what is wrong, so that nobody has to read the schema."""
    assert words in (await refused(cluster, derived_attribute(**spec))).replace('\\"', '"')


@pytest.mark.parametrize("spec", [spec for spec, _ in _BROKEN])
def test_what_the_server_refuses_our_own_check_refuses(spec: dict[str, Any]) -> None:
    """A file that `plan` reads has to pass the same rules as an object of a cluster."""
    assert refuse_spec(DerivedAttribute.parse(derived_attribute(**spec))) != ""


async def test_the_attribute_cannot_be_changed(cluster: Cluster) -> None:
    """Everything else can."""
    await cluster.kube.create(derived_attribute())

    with pytest.raises(ApiError) as refusal:
        await cluster.kube.patch("DerivedAttribute", "numa", {"spec": {"attribute": "example.com/other"}})
    changed = await cluster.kube.patch("DerivedAttribute", "numa", {"spec": {"rules": [rule("*", "2")]}})

    assert "the attribute cannot be changed" in str(refusal.value)
    assert changed["spec"]["rules"] == [rule("*", "2")]
    assert changed["metadata"]["generation"] == 2


async def test_the_printed_mappings_are_taken_as_they_are(cluster: Cluster) -> None:
    """What `dovetail mappings` prints can be applied, and comes back unchanged."""
    for mapping in shipped_mappings():
        printed = yaml.safe_load(yaml.safe_dump(manifest(mapping)))

        stored = await cluster.kube.create(printed)

        assert DerivedAttribute.parse(stored).spec == mapping.spec


async def test_the_status_is_written_beside_the_spec(cluster: Cluster) -> None:
    """The schema keeps every field of the status that the operator computes, and the columns show it."""
    stored = await cluster.kube.create(derived_attribute())
    covered = (DriverCoverage("gpu.example.com", 4, 1, 1, 1, 1, "device a of pool p: rule 1 failed"),)
    mappings = Mappings.of((DerivedAttribute.parse(stored),))
    status = status_of("numa", mappings, covered, generation=1, now="2026-05-01T10:00:00Z")

    written = await cluster.kube.patch("DerivedAttribute", "numa", {"status": status}, subresource="status")

    assert written["status"] == status
    assert written["spec"] == stored["spec"]
    assert await _columns(cluster) == ["numa", "example.com/numa", "True", "Compiled", "False", "True"]


async def _columns(cluster: Cluster) -> list[str]:
    """What `kubectl get` shows of the only object, but for the age."""
    kubectl = Path(sysconfig.get_path("scripts")) / "kubectl"
    arguments = ("get", "dattr", "--output=wide", "--no-headers", "--kubeconfig", cluster.plane.kubeconfig)
    shown = await asyncio.create_subprocess_exec(kubectl, *arguments, stdout=asyncio.subprocess.PIPE)
    output, _ = await shown.communicate()
    assert shown.returncode == 0
    return output.decode().split()[:-1]


async def test_mappings_are_found_by_attribute(cluster: Cluster) -> None:
    """The attribute is a field that selectors may name."""
    await cluster.kube.create(derived_attribute("one", attribute="example.com/one"))
    await cluster.kube.create(derived_attribute("two", attribute="example.com/two"))

    found = await cluster.kube.list("DerivedAttribute", fieldSelector="spec.attribute=example.com/two")

    assert [item["metadata"]["name"] for item in found] == ["two"]


def _native(expressions: Iterable[tuple[bool, str]]) -> list[dict[str, Any]]:
    """The expressions as kube-scheduler can take them: it knows no `device.name`."""
    return [
        {
            "derived": derived,
            "compileOnly": True,
            "expression": expression.replace("device.name", '"0000-00-00-0"'),
        }
        for derived, expression in expressions
    ]


def test_kube_scheduler_compiles_every_shipped_expression(oracle: Oracle) -> None:
    """Whoever copies one into a native derived attribute, or a selector, finds it works there."""
    rules = [rule for mapping in shipped_mappings() for rule in mapping.spec.rules]
    expressions = [(True, rule.expression) for rule in rules]
    conditions = [(False, rule.when) for rule in rules if rule.when is not None]

    answers = oracle.ask_all("cel", _native([*expressions, *conditions]))

    assert [answer for answer in answers if answer["outcome"] != "compiles"] == []
    # A claim has a budget of a million for all its expressions.
    assert max(answer["maxCost"] for answer in answers) < 1_000
