"""The command `dovetail run`: every setting is a flag and an environment variable of the same name."""

import inspect
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from dovetail.services.settings import Settings, first_fault

MARKUP = None
"""Plain help: there are many flags, and their names are long."""


def run(**flags: Any) -> None:
    """Run the operator against the cluster of KUBECONFIG, or the one it runs in, until it is told to stop."""
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        settings = Settings(**given)
    except ValidationError as error:
        name, words = first_fault(error)
        raise typer.BadParameter(words, param_hint=_flag(name) if name else "settings") from error
    from dovetail.app import run as run_operator

    raise typer.Exit(run_operator(settings))


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _parameters() -> Iterator[inspect.Parameter]:
    """One option per setting; its default stays with the settings, so that there is one place for it."""
    for name, field in Settings.model_fields.items():
        yield inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(name, field)
        )


def _annotation(name: str, field: FieldInfo) -> Any:
    declarations = [_flag(name)]
    if field.annotation is bool:
        declarations = [f"{_flag(name)}/--no-{name.replace('_', '-')}"]
    default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
    option = typer.Option(
        *declarations,
        envvar=f"DOVETAIL_{name.upper()}",
        help=field.description,
        show_default=(default.lower() if field.annotation is bool else default) or "empty",
        metavar=_metavar(field),
    )
    kind = field.annotation if field.annotation in (bool, int, float) else str
    return Annotated[kind | None, option]


def _metavar(field: FieldInfo) -> str | None:
    if field.annotation is bool:
        return None
    if get_origin(field.annotation) is Literal:
        return "|".join(get_args(field.annotation))
    return {int: "N", float: "SECONDS"}.get(field.annotation, "TEXT")  # type: ignore[arg-type]


run.__signature__ = inspect.Signature(list(_parameters()))  # type: ignore[attr-defined]
run.__annotations__ = {parameter.name: parameter.annotation for parameter in _parameters()}
