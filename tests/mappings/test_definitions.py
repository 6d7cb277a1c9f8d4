"""The CustomResourceDefinition, its copies and our own model say the same."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dovetail.api.mappings import API_VERSION, DerivedAttributeSpec, Rule
from dovetail.core.attributes import MAX_DOMAIN, MAX_IDENTIFIER

ROOT = Path(__file__).parents[2]
TRUE_COPIES = sorted((ROOT / "crds").glob("*.yaml"))
DEFINITION: dict[str, Any] = yaml.safe_load((ROOT / "crds" / "derivedattributes.yaml").read_text())
SPEC: dict[str, Any] = DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def aliases(model: type[Rule] | type[DerivedAttributeSpec]) -> set[str]:
    """The names of a model's fields in manifests."""
    return {field.alias or name for name, field in model.model_fields.items()}


@pytest.mark.parametrize("path", TRUE_COPIES, ids=lambda path: path.name)
def test_the_chart_carries_the_true_copies(path: Path) -> None:
    """Helm reads only files of its chart, so they are copied, and the copy is the same to the byte."""
    assert (ROOT / "charts/dovetail/files/crds" / path.name).read_bytes() == path.read_bytes()


def test_the_schema_has_the_fields_of_the_model() -> None:
    """A field of one that the other lacks would be pruned, or refused."""
    assert set(SPEC["properties"]) == aliases(DerivedAttributeSpec)
    assert set(SPEC["properties"]["rules"]["items"]["properties"]) == aliases(Rule)
    assert f"{DEFINITION['spec']['group']}/{DEFINITION['spec']['versions'][0]['name']}" == API_VERSION


def test_an_attribute_may_be_as_long_as_its_parts() -> None:
    """The bound of the whole, which CEL needs to estimate costs, never cuts a valid name."""
    assert SPEC["properties"]["attribute"]["maxLength"] == MAX_DOMAIN + 1 + MAX_IDENTIFIER
