"""The command line: which commands there are, each loaded only when it is used."""

import importlib
import importlib.util
from importlib.metadata import version
from typing import Annotated

import typer
from typer.core import TyperCommand, TyperGroup
from typing_extensions import override

COMMANDS = ("run", "demo", "plan", "explain", "topology", "lint", "mappings", "audit", "ungate")
"""Each is the function of that name in the module `dovetail.cli` of that name."""


class LazyGroup(TyperGroup):
    """A group whose commands are imported when they are asked for, so that none pays for the others."""

    @override
    def list_commands(self, ctx: object) -> list[str]:
        return [name for name in COMMANDS if importlib.util.find_spec(f"dovetail.cli.{name}")]

    @override
    def get_command(self, ctx: object, cmd_name: str) -> TyperCommand | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"dovetail.cli.{cmd_name}")
        # A command with many long flags asks for plain help: tables cut the flags off in narrow terminals.
        single = typer.Typer(add_completion=False, rich_markup_mode=getattr(module, "MARKUP", "rich"))
        single.command(name=cmd_name)(getattr(module, cmd_name))
        command = typer.main.get_command(single)
        return command if isinstance(command, TyperCommand) else None


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dovetail {version('dovetail')}")
        raise typer.Exit


@app.callback()
def dovetail(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version, and do no more."
        ),
    ] = False,
) -> None:
    """Gives pods devices that belong together, and says why when it cannot.

    Exit status of every command: 2 for a wrong command line,
    130 when interrupted, 141 when nobody reads the output any more,
    74 when it cannot be written, 70 for a fault of Dovetail itself.
    """
