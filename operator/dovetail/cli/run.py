"""The command `dovetail run`: every setting is a flag and an environment variable of the same name."""

import inspect
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from dovetail.services.journal import Journal
from dovetail.services.logs import set_up_logging
from dovetail.services.settings import Settings, first_fault, variable_of
from dovetail.services.supervision import supervised

MARKUP = None
"""Plain help: there are many flags, and their names are long."""


def run(context: typer.Context, **flags: Any) -> None:
    """Run the operator against the cluster of KUBECONFIG, or the one it runs in, until it is told to stop.

    Exit status 0: it was told to stop, 1: it could not start, or failed.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        settings = Settings(**given)
    except ValidationError as error:
        name, words = first_fault(error)
        raise typer.BadParameter(words, param_hint=_given_as(context, name)) from error
    set_up_logging(form=settings.log_format, level=settings.log_level)
    journal = Journal.open(settings.state_directory)

    def work() -> int:
        # Loaded in the process that works: the one that watches stays small.
        from dovetail.app import run as run_operator

        return run_operator(settings, journal)

    raise typer.Exit(supervised(work, journal, mebibytes=settings.decision_mebibytes))


def _given_as(context: typer.Context, name: str) -> str:
    """The flag or the variable that gave a setting its value."""
    source = context.get_parameter_source(name)
    return _flag(name) if source is not None and source.name == "COMMANDLINE" else variable_of(name)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _parameters() -> Iterator[inspect.Parameter]:
    """One option per setting; its default stays with the settings, so that there is one place for it."""
    yield inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    for name, field in Settings.model_fields.items():
        yield inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(name, field)
        )


def _annotation(name: str, field: FieldInfo) -> Any:
    """The settings read the values themselves, so that one place says what is wrong with one.

    Those that are true or false also read their variables: the option is no more than a switch.
    """
    is_switch = field.annotation is bool
    declarations = [f"{_flag(name)}/--no-{name.replace('_', '-')}" if is_switch else _flag(name)]
    default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
    option = typer.Option(
        *declarations,
        envvar=None if is_switch else variable_of(name),
        help=f"{field.description}{f'  [env var: {variable_of(name)}]' if is_switch else ''}",
        show_default=(default.lower() if is_switch else default) or "empty",
        metavar=_metavar(field),
    )
    return Annotated[(bool if is_switch else str) | None, option]


def _metavar(field: FieldInfo) -> str | None:
    if field.annotation is bool:
        return None
    if get_origin(field.annotation) is Literal:
        return "|".join(get_args(field.annotation))
    return {int: "N", float: "SECONDS"}.get(field.annotation, "TEXT")  # type: ignore[arg-type]


run.__signature__ = inspect.Signature(list(_parameters()))  # type: ignore[attr-defined]
run.__annotations__ = {parameter.name: parameter.annotation for parameter in _parameters()}
