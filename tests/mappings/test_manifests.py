"""The command `dovetail mappings` prints manifests that do the same as what is built in."""

import json
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from dovetail.api.mappings import DerivedAttribute
from dovetail.cli.app import app
from dovetail.core.attributes import Mappings, Missing
from dovetail.core.cel import Memory
from dovetail.core.shipped import shipped_mappings
from tests.mappings.worlds import devices_of, slice_files

NAMES = [mapping.metadata.name for mapping in shipped_mappings()]


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["mappings", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def documents(*arguments: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(printed(*arguments)))


def test_the_manifests_say_what_is_built_in() -> None:
    """Read back, each object has the very rules of the built-in mapping."""
    specs = [DerivedAttribute.parse(document).spec for document in documents()]

    assert specs == [mapping.spec for mapping in shipped_mappings()]


def test_applied_as_objects_they_change_nothing() -> None:
    """Every device of every slice gets from the objects what it gets from the built-in mappings."""
    objects = Mappings.of([DerivedAttribute.parse(document) for document in documents()])
    built_in = Mappings.of(())
    memory = Memory()

    assert {held.origin for held in objects.effective.values()} == set(NAMES)
    for file in slice_files():
        for _, device in devices_of(file):
            for attribute, held in objects.effective.items():
                shipped = built_in.effective[attribute].derive(device, memory)
                assert held.derive(device, memory) == shipped, (file, device.key, attribute)


def test_json_has_the_same_objects() -> None:
    """As one List, which kubectl takes as well."""
    listed = json.loads(printed("-o", "json"))

    assert listed["kind"] == "List"
    assert listed["items"] == documents()


def test_one_mapping_is_found_by_name_and_by_attribute() -> None:
    """So that a person prints only the one to be changed."""
    assert documents("socket") == documents("dovetail.dev/socket")
    assert [document["metadata"]["name"] for document in documents("rdma", "socket")] == ["rdma", "socket"]


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    """Nothing is printed on standard output, and the exit code tells a wrong call."""
    result = CliRunner().invoke(app, ["mappings", "numa"])

    assert result.exit_code == 2
    assert result.stdout == ""
    assert "numa-node" in result.stderr


@pytest.mark.parametrize("name", NAMES)
def test_no_line_of_a_manifest_hides_an_expression_of_several_lines(name: str) -> None:
    """Line breaks of an expression are line breaks of the manifest, as a person would write them."""
    assert "\\n" not in printed(name)


def test_missing_values_have_the_reasons_of_the_built_in_mappings() -> None:
    """The words are the same as well, since rules have the same numbers."""
    objects = Mappings.of([DerivedAttribute.parse(document) for document in documents("socket")])
    held, shipped = objects.find("dovetail.dev/socket"), Mappings.of(()).find("dovetail.dev/socket")
    assert held is not None
    assert shipped is not None
    (_, device), *_ = devices_of("kind__example-net.yaml")

    answer = held.derive(device, Memory())

    assert isinstance(answer, Missing)
    assert answer == shipped.derive(device, Memory())
