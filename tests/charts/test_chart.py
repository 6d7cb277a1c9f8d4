"""The chart agrees with what it is made from: definitions, version, settings and the locked image."""

import json
import re
from pathlib import Path

import pytest
import yaml

from dovetail.services.settings import Settings

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "dovetail"


def test_the_chart_carries_the_definitions_as_they_are() -> None:
    """The copies that the chart needs are equal to crds/; `make chart` writes them."""
    originals = {path.name: path.read_text() for path in (ROOT / "crds").glob("*.yaml")}
    copies = {path.name: path.read_text() for path in (CHART / "files" / "crds").glob("*.yaml")}
    assert copies == originals


def test_the_chart_has_the_version_of_the_package() -> None:
    """The image that the chart names by default is the one of this version."""
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert version is not None
    assert (chart["version"], chart["appVersion"]) == (version[1], version[1])


def test_the_schema_knows_every_setting_of_the_operator() -> None:
    """A setting that the operator does not have is refused; where it listens and writes is for the chart."""
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]["settings"]
    names = {re.sub(r"_(.)", lambda match: match[1].upper(), name) for name in Settings.model_fields}
    names -= {"listen", "stateDirectory"}
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == names


@pytest.mark.parametrize("name", ["image", "rbac", "gatePolicy", "tolerationPolicy", "crds"])
def test_every_value_has_a_place_in_the_schema(name: str) -> None:
    """The schema and the default values name the same things."""
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values) | {"global"} == set(schema)
    assert set(values[name]) == set(schema[name]["properties"])


def test_the_image_is_built_from_the_lock_file() -> None:
    """What goes into the image is what the lock file names, by hash, and it does not run as root."""
    text = (ROOT / "Dockerfile").read_text()
    assert "--require-hashes" in text
    assert "requirements/runtime.txt" in text
    assert re.search(r"^USER (?!0\b|root\b)", text, re.MULTILINE)


def test_the_chart_names_no_image_of_others() -> None:
    """There is no public image: a default would run what somebody else puts there."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["image"]["repository"] == ""
    texts = [path.read_text() for path in CHART.rglob("*") if path.is_file()]
    assert not [text for text in texts if re.search(r"ghcr\.io|docker\.io|quay\.io", text)]
