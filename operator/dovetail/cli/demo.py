"""The command `dovetail demo`: the whole story in one process."""

import asyncio
from typing import Annotated

import typer
from rich.console import Console


def demo(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what the operator logs.")] = False,
) -> None:
    """Run the operator against an embedded API server: pods get devices that belong together, or a reason.

    No cluster is needed and none is touched. Exits with 0 only if everything that is shown is so.
    """
    from dovetail.demo.play import new_cluster, play
    from dovetail.services.logs import set_up_logging

    set_up_logging(form="console", level="info" if verbose else "error")
    raise typer.Exit(asyncio.run(play(Console(), new_cluster())))
