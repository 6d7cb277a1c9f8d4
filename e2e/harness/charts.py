"""The chart as the real Helm renders it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from e2e import build
from e2e.harness.errors import HarnessError
from e2e.harness.kube import Object
from e2e.harness.objects import ROOT

CHART = ROOT / "charts" / "dovetail"
IMAGE = {"repository": "registry.example.com/dovetail"}
"""The chart has no default: there is no public image."""


class RenderFailed(HarnessError):
    """Helm refused the chart or its values; the message is Helm's."""


async def render(
    values: Mapping[str, Any] | None = None,
    *,
    namespace: str = "dovetail-system",
    release: str = "dovetail",
    chart: Path = CHART,
) -> tuple[Object, ...]:
    """`helm template` of a chart: its manifests, in Helm's order; the image is named if need be."""
    given = dict(values or {})
    helm = build.build([group for group in build.GROUPS if group.name == "helm"])["helm"]
    command = [
        str(helm),
        "template",
        release,
        str(chart),
        "--namespace",
        namespace,
        "--include-crds",
        "-f",
        "-",
    ]
    result = await asyncio.to_thread(
        subprocess.run,
        command,
        input=yaml.safe_dump(given | {"image": IMAGE | given.get("image", {})}),
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise RenderFailed(result.stderr)
    return tuple(document for document in yaml.safe_load_all(result.stdout) if document)
