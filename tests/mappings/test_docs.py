"""Every example of `docs/mappings.md` does what the text says."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.api.claims import DeviceClaim, ResourceClaimTemplate
from dovetail.api.mappings import ClaimParameters, DerivedAttribute
from dovetail.core.attributes import Mappings, Missing, MissingCause
from dovetail.core.cel import Environment, Memory, compile_attribute
from dovetail.core.devices import DeviceView
from dovetail.core.quantity import Quantity
from dovetail.core.shipped import shipped_mappings
from dovetail.core.values import AttributeValue
from tests.mappings.worlds import device, published, value

TEXT = (Path(__file__).parents[2] / "docs" / "mappings.md").read_text()
BLOCKS: list[dict[str, Any]] = [
    yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
]
MAPPINGS = {
    block["metadata"]["name"]: block for block in BLOCKS if block["kind"] == DerivedAttribute.__name__
}

NUMA = "resource.kubernetes.io/numaNode"
BUS = "resource.kubernetes.io/pciBusID"
TYPE = "gpu.nvidia.com/type"
PRODUCT = "gpu.amd.com/productName"
NOT_PUBLISHED, UNKNOWN, FAILED = MissingCause.NOT_PUBLISHED, MissingCause.UNKNOWN, MissingCause.FAILED
NO_RULE = MissingCause.NO_RULE


def gpu_with(memory: str) -> DeviceView:
    """A GPU with an amount of memory."""
    plain = device("gpu.nvidia.com")
    return DeviceView(plain.key, capacity={"gpu.nvidia.com/memory": Quantity.parse(memory)})


EXAMPLES: dict[str, list[tuple[DeviceView, AttributeValue | MissingCause]]] = {
    "accelerator-node": [
        (device("dsa.example.com", numa="1"), value(1)),
        (device("dra.cpu", numaNodeID=1), value(1)),
    ],
    "passthrough-node": [
        (published("gpu.nvidia.com", {TYPE: "vfio", "gpu.nvidia.com/numa": 1}), value(1)),
        (published("gpu.nvidia.com", {TYPE: "vfio", "gpu.nvidia.com/numa": -1}), UNKNOWN),
        (published("gpu.nvidia.com", {TYPE: "gpu", NUMA: 0}), value(0)),
        (published("other.example.com", {NUMA: [0, 1]}), value([0, 1])),
        (device("silent.example.com"), NO_RULE),
    ],
    "guarded-node": [
        (published("dra.net", {NUMA: [1, 0], "dra.net/numaNode": 1}), value([1, 0])),
        (device("dra.net", numaNode=1), value(1)),
        (device("dra.net"), NOT_PUBLISHED),
        (device("dra.net", numaNode=-1), UNKNOWN),
    ],
    "strict-node": [(device("gpu.amd.com", numaNode=1), value(1)), (device("gpu.amd.com"), FAILED)],
    "board-table": [
        (
            published(
                "gpu.amd.com", {PRODUCT: "AMD_Instinct_MI300X_OAM", "gpu.amd.com/pciAddr": "0000:85:00.0"}
            ),
            value(1),
        ),
        (published("gpu.amd.com", {PRODUCT: "AMD_Instinct_MI250", "gpu.amd.com/pciAddr": "x"}), NO_RULE),
    ],
    "memory-node": [
        (published("gpu.nvidia.com", {NUMA: 18}), value(1)),
        (device("dra.net", numaNode=1), value(1)),
    ],
    "node-of-address": [
        (device("qat.intel.com", "qatvf-0000-6b-00-1"), value(0)),
        (device("qat.intel.com", "qatvf-0000-e8-00-1"), value(1)),
        (published("gpu.intel.com", {BUS: "0000:ba:00.0"}), value(1)),
    ],
    "network-block": [
        (published("dra.net", {"gce.dra.net/block": "b", "gce.dra.net/subBlock": "s"}), value("b/s")),
        (published("dra.net", {"gce.dra.net/block": "", "gce.dra.net/subBlock": ""}), UNKNOWN),
        (device("dra.net"), NO_RULE),
    ],
    "tier": [(gpu_with("81559Mi"), value("small")), (gpu_with("141Gi"), value("large"))],
}


def test_each_example_has_devices_to_try_it_on() -> None:
    """An example that is added to the text has to be tried here as well."""
    assert set(MAPPINGS) == set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(MAPPINGS))
def test_an_example_gives_the_values_that_the_text_promises(name: str) -> None:
    """It is a valid object, it compiles, and it works on the devices it is for."""
    mappings = Mappings.of((DerivedAttribute.parse(MAPPINGS[name]),))
    assert mappings.invalid == {}
    compiled = mappings.objects[name]
    assert compiled.problems == ()

    for view, wanted in EXAMPLES[name]:
        answer = compiled.derive(view, Memory())
        assert (answer.cause if isinstance(answer, Missing) else answer) == wanted, view.key


def test_the_parameters_of_a_claim_compile() -> None:
    """Every example of a claim is a claim, and the expressions that it brings along compile."""
    claims = [block for block in BLOCKS if block["kind"] == ResourceClaimTemplate.__name__]
    configured = [entry.opaque for claim in claims for entry in devices_in(claim).config if entry.opaque]

    assert len(claims) == 2
    (parameters,) = [ClaimParameters.model_validate(opaque.parameters) for opaque in configured]
    for rule in parameters.derived_attributes:
        compile_attribute(rule.expression, Environment(own=True))


def devices_in(template: dict[str, Any]) -> DeviceClaim:
    """What a template's claims ask for."""
    return ResourceClaimTemplate.parse(template).spec.spec.devices


def test_the_table_of_built_in_mappings_is_whole() -> None:
    """Every built-in attribute is described, and no other."""
    described = set(re.findall(r"^\| `(dovetail\.dev/\w+)` \|", TEXT, re.MULTILINE))

    assert described == {mapping.spec.attribute for mapping in shipped_mappings()}


def test_every_reason_of_a_missing_value_is_explained() -> None:
    """The words are those of messages and conditions."""
    explained = set(re.findall(r"^\| `(\w+)` \| .* \| .* \|$", TEXT, re.MULTILINE))

    assert set(MissingCause) <= explained
