"""What the page on nodes that offer devices twice says is so."""

import re

from dovetail.core.plugin_names import PLUGIN_RESOURCES
from tests.docs.pages import ROOT


def test_every_driver_that_is_known_by_its_plugin_is_listed() -> None:
    """R-G4: the page has each driver with its extended resources, as the code has them."""
    page = (ROOT / "docs" / "operators" / "troubleshooting.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.-]+)` \| (`[^|]*`) \|$", page, re.MULTILINE)
    assert {driver: tuple(re.findall(r"`(.*?)`", names)) for driver, names in rows} == PLUGIN_RESOURCES
