"""The command `dovetail ungate`: takes our gate from all pods, for when Dovetail is taken away."""

import asyncio
from typing import Annotated

import typer

from dovetail.api.text import harmless
from dovetail.errors import DovetailError


def ungate(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only name the pods that carry the gate.")
    ] = False,
) -> None:
    """Remove the scheduling gate dovetail.dev/allocation from every pod of the cluster.

    Stop the operator and delete the gate policy first: else new gates appear.
    Claims that only Dovetail can allocate stay pending; pods that run are not touched.

    Exit status 0: no pod carries the gate any more,
    1: a pod could not be ungated, or nothing was read.
    """
    try:
        failures = asyncio.run(_ungate_all(dry_run=dry_run))
    except DovetailError as error:
        typer.echo(f"error: {harmless(str(error))}", err=True)
        raise typer.Exit(1) from error
    raise typer.Exit(1 if failures else 0)


async def _ungate_all(*, dry_run: bool) -> int:
    from dovetail.services.farewell import gated_pods, open_gate, visit

    failures = 0
    async with visit() as cluster:
        pods = await gated_pods(cluster)
        for pod in pods:
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            try:
                done = dry_run or await open_gate(cluster, pod)
            except DovetailError as error:
                typer.echo(f"pod {name}: {harmless(str(error))}", err=True)
                failures += 1
            else:
                typer.echo(f"pod {name}: {'gated' if dry_run else 'ungated' if done else 'gone'}")
    typer.echo(_carrying(len(pods)) if dry_run else f"{_pods(len(pods) - failures)} ungated")
    return failures


def _carrying(number: int) -> str:
    return f"{_pods(number)} {'carries' if number == 1 else 'carry'} the gate"


def _pods(number: int) -> str:
    return f"{number} {'pod' if number == 1 else 'pods'}"
