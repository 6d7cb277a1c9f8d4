"""Devices and mappings for tests: built from few words, or read from the slices of `tests/data`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dovetail.api.mappings import API_VERSION, DerivedAttribute
from dovetail.api.slices import ResourceSlice
from dovetail.core.devices import DeviceView
from dovetail.core.published import Reader
from dovetail.core.values import AttributeValue, DeviceKey, Kind, Scalar

SLICES = Path(__file__).parent.parent / "data" / "slices"

Plain = Scalar | list[Any] | AttributeValue


def value(plain: Plain) -> AttributeValue:
    """An attribute value of the kind that the Python value has; versions are given whole."""
    if isinstance(plain, AttributeValue):
        return plain
    scalars = tuple(plain) if isinstance(plain, list) else (plain,)
    kinds = {bool: Kind.BOOL, int: Kind.INT, str: Kind.STRING}
    return AttributeValue(kinds[type(scalars[0])], scalars, isinstance(plain, list))


def version(text: str) -> AttributeValue:
    """A semver value, which is not the string of the same letters."""
    return AttributeValue(Kind.VERSION, (text,))


def device(driver: str, name: str = "dev-0", pool: str = "node-1", **attributes: Plain) -> DeviceView:
    """A device with bare attributes: their domain is the driver, as for drivers that publish them so."""
    return published(driver, {f"{driver}/{key}": plain for key, plain in attributes.items()}, name, pool)


def published(
    driver: str, attributes: dict[str, Plain], name: str = "dev-0", pool: str = "node-1"
) -> DeviceView:
    """A device with qualified attributes."""
    return DeviceView(
        key=DeviceKey(driver, pool, name),
        attributes={key: value(plain) for key, plain in attributes.items()},
    )


def rule(driver: str, expression: str, when: str | None = None) -> dict[str, str]:
    """A rule as a manifest has it."""
    return {"driver": driver, "expression": expression} | ({"when": when} if when is not None else {})


def mapping(
    *rules: dict[str, str],
    attribute: str = "example.com/numa",
    name: str = "numa",
    created: str | None = None,
    **spec: Any,
) -> DerivedAttribute:
    """A DerivedAttribute with these rules."""
    return DerivedAttribute.parse(
        {
            "apiVersion": API_VERSION,
            "kind": "DerivedAttribute",
            "metadata": {"name": name, "creationTimestamp": created},
            "spec": {"attribute": attribute, "rules": list(rules), **spec},
        }
    )


def slice_files() -> list[str]:
    """The names of all files with slices."""
    return sorted(path.name for path in SLICES.glob("*.yaml"))


def devices_of(file: str) -> Iterator[tuple[str, DeviceView]]:
    """Every device of a file by its name in `expected.json`, those of stale and incomplete pools too."""
    reader = Reader()
    for body in yaml.safe_load_all((SLICES / file).read_text()):
        read = reader.read(ResourceSlice.parse(body))
        for offered in read.content.devices:
            yield f"{read.name}#{offered.name}", offered.view_in(read.pool.pool)
