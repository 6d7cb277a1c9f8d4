"""Values of options, read with words of our own: what is wrong, and the value."""

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar, get_args

import typer

from dovetail.services.settings import DualModeNodes

T = TypeVar("T", bound=str)


def seconds(least: float, most: float = math.inf) -> Callable[[object], float]:
    """Reads a number of seconds from `least` to `most`."""

    def read(value: object) -> float:
        try:
            number = float(str(value))
        except ValueError as error:
            raise typer.BadParameter(f"{value!r} has to be a number") from error
        if not math.isfinite(number) or not least <= number <= most:
            end = f" to {most:g}" if math.isfinite(most) else " or more"
            raise typer.BadParameter(f"{value} has to be {least:g}{end}")
        return number

    return read


def one_of(*known: T) -> Callable[[object], T]:
    """Reads one of some texts, such as the members of an enumeration."""

    def read(value: object) -> T:
        for each in known:
            if str(value) == each:
                return each
        raise typer.BadParameter(f"{str(value)!r} has to be {' or '.join(known)}")

    return read


def output_option(forms: type[StrEnum], help_: str) -> Any:
    """How the answer is printed: `--output`, `-o`."""
    return typer.Option("--output", "-o", parser=one_of(*forms), metavar="|".join(forms), help=help_)


def dual_mode_option(help_: str) -> Any:
    """The setting `dual_mode_nodes` as an option, or by the operator's variable."""
    modes = get_args(DualModeNodes)
    return typer.Option(
        envvar="DOVETAIL_DUAL_MODE_NODES", parser=one_of(*modes), metavar="|".join(modes), help=help_
    )


def seconds_option(help_: str, least: float, most: float = math.inf) -> Any:
    """A number of seconds."""
    return typer.Option(parser=seconds(least, most), metavar="SECONDS", help=help_)
