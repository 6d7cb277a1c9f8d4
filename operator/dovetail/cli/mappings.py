"""The command `dovetail mappings`: the built-in mappings, as manifests."""

import enum
import json
from typing import Annotated, Any

import typer
import yaml

from dovetail.api.mappings import API_VERSION, DerivedAttribute
from dovetail.cli.options import output_option
from dovetail.core.shipped import shipped_mappings


class Format(enum.StrEnum):
    """How the manifests are printed."""

    YAML = "yaml"
    JSON = "json"


def mappings(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Only these, by name or attribute, such as numa-node or dovetail.dev/numaNode.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Format, output_option(Format, "How to print them.")] = Format.YAML,
) -> None:
    """Print the built-in mappings as DerivedAttribute manifests.

    Applied as they are, they change nothing; edited, each replaces the built-in mapping of its attribute.
    """
    manifests = [manifest(mapping) for mapping in _chosen(names or [])]
    typer.echo(_as_json(manifests) if output is Format.JSON else _as_yaml(manifests))


def _chosen(names: list[str]) -> list[DerivedAttribute]:
    known = {mapping.metadata.name: mapping for mapping in shipped_mappings()}
    by_attribute = {mapping.spec.attribute: mapping for mapping in known.values()}
    unknown = [name for name in names if name not in known and name not in by_attribute]
    if unknown:
        raise typer.BadParameter(f"no built-in mapping {', '.join(unknown)}; there are {', '.join(known)}")
    return [known.get(name) or by_attribute[name] for name in names] or list(known.values())


def manifest(mapping: DerivedAttribute) -> dict[str, Any]:
    """A mapping as the API server takes it."""
    spec = mapping.spec.model_dump(mode="json", by_alias=True)
    spec["rules"] = [_in_reading_order(rule) for rule in spec["rules"]]
    return {
        "apiVersion": API_VERSION,
        "kind": "DerivedAttribute",
        "metadata": {"name": mapping.metadata.name},
        "spec": spec,
    }


def _in_reading_order(rule: dict[str, Any]) -> dict[str, Any]:
    """Which devices first, then what they get."""
    return {key: rule[key] for key in ("driver", "when", "expression") if rule[key] is not None}


def _as_json(manifests: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}, indent=2)


def _as_yaml(manifests: list[dict[str, Any]]) -> str:
    return "---\n".join(
        yaml.dump(document, Dumper=_Manifest, sort_keys=False, width=1000) for document in manifests
    ).rstrip()


class _Manifest(yaml.SafeDumper):
    """YAML as people write it: an expression of several lines is a block."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Manifest.add_representer(str, _text)
