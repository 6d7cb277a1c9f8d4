"""The command `dovetail audit`: what is wrong across all claims, in a cluster or in a dump of one."""

import asyncio
import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer

from dovetail.api.text import harmless, readable_json
from dovetail.cli.options import dual_mode_option, output_option, seconds_option
from dovetail.core.audit import lasting
from dovetail.core.features import Features
from dovetail.core.findings import TRANSIENT, Finding
from dovetail.core.oversight import audit_world
from dovetail.core.world import World
from dovetail.errors import DovetailError, InputInvalid
from dovetail.services.settings import DualModeNodes

FOUND, FAILED = 1, 2


DUAL_MODES = (
    "Whether devices that a device plugin of their node offers as well may be held: "
    "allow for plugins that keep to other devices."
)


class Format(enum.StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"


def audit(
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="FILE|DIR|-",
            help="Manifests instead of the cluster of KUBECONFIG.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Format, output_option(Format, "How findings are printed.")] = Format.TEXT,
    dual_mode_nodes: Annotated[DualModeNodes, dual_mode_option(DUAL_MODES)] = "exclude",
    settle: Annotated[
        float,
        seconds_option(
            "Seconds between two readings of the cluster: "
            "what controllers are repairing is gone in the second one.",
            least=0,
            most=600,
        ),
    ] = 5.0,
) -> None:
    """Check every claim, whoever wrote it: devices held twice, too much taken, what is left over.

    Exit code 0: nothing found, 1: something found, 2: the audit was not possible.
    """
    try:
        if source:
            world = _world(_manifests(source), dual_mode_nodes)
            findings = audit_world(world)
        else:
            world, findings = asyncio.run(_audit_cluster(settle, dual_mode_nodes))
    except DovetailError as error:
        typer.echo(f"error: {harmless(str(error))}", err=True)
        raise typer.Exit(FAILED) from error
    typer.echo(_as_json(world, findings) if output is Format.JSON else _as_text(world, findings))
    raise typer.Exit(FOUND if findings else 0)


def _world(bodies: Iterable[Mapping[str, Any]], dual_mode_nodes: DualModeNodes) -> World:
    world = World(Features(), exclude_dual_mode=dual_mode_nodes == "exclude")
    for body in bodies:
        world.put(body["kind"], body)
    return world


def _manifests(paths: Sequence[str]) -> Iterable[Mapping[str, Any]]:
    """The objects of manifests; what cannot be read ends the audit, since it may hold devices."""
    from dovetail.cli.gathering import gather

    gathered = gather(paths)
    if gathered.troubles:
        raise InputInvalid(str(gathered.troubles[0]))
    return (manifest.body for manifest in gathered.manifests.values())


async def _audit_cluster(settle: float, dual_mode_nodes: DualModeNodes) -> tuple[World, tuple[Finding, ...]]:
    world = _world(await _read_cluster(), dual_mode_nodes)
    findings = audit_world(world)
    if settle > 0 and any(finding.fault in TRANSIENT for finding in findings):
        await asyncio.sleep(settle)
        world = _world(await _read_cluster(), dual_mode_nodes)
        findings = lasting(audit_world(world), findings)
    return world, findings


async def _read_cluster() -> list[dict[str, Any]]:
    from dovetail.api import kinds as api
    from dovetail.services.farewell import visit

    # Claims come first: a pod that goes while the lists are read leaves a reservation that settles.
    wanted = (api.CLAIM, api.POD, api.SLICE, api.CLASS, api.NODE, api.TAINT_RULE, api.MAPPING)
    async with visit() as cluster:
        kinds = [kind for kind in wanted if kind not in api.OPTIONAL or await cluster.reader.is_served(kind)]
        listings = [await cluster.reader.list_all(kind) for kind in kinds]
    return [body for listing in listings for body in listing.items]


def _as_text(world: World, findings: tuple[Finding, ...]) -> str:
    lines = [f"{finding.fault}: {harmless(finding.sentence)}" for finding in findings]
    read = ", ".join(_counted(number, name) for name, number in _counts(world).items())
    found = _counted(len(findings), "findings") if findings else "Nothing found"
    return "\n".join([*lines, f"{found} in {read}."])


def _counted(number: int, plural: str) -> str:
    return f"{number} {plural.removesuffix('s') if number == 1 else plural}"


def _as_json(world: World, findings: tuple[Finding, ...]) -> str:
    body = {"findings": [finding.as_json() for finding in findings], "read": _counts(world)}
    return readable_json(body)


def _counts(world: World) -> dict[str, int]:
    return {
        "claims": len(world.claims),
        "devices": sum(1 for _ in world.inventory.devices()),
        "pods": len(world.pods),
    }
