"""The table of functions as a page of documentation, generated from the table that the checker uses."""

from collections.abc import Iterator
from typing import Final

from dovetail.core.cel.environment import CONSTANTS, LIBRARIES, TYPES
from dovetail.core.cel.kinds import Type
from dovetail.core.cel.library import sequences
from dovetail.core.cel.macros import SIGNATURES
from dovetail.core.cel.messages import MESSAGES
from dovetail.core.cel.signatures import Library, Overload

_OPERATORS: Final = {
    "-_": "-{0}",
    "!_": "!{0}",
    "@in": "{0} in {1}",
    "_?_:_": "{0} ? {1} : {2}",
    "_[_]": "{0}[{1}]",
    "_[?_]": "{0}[?{1}]",
    "_?._": "{0}.?name",
}
_HIDDEN: Final = frozenset(("@not_strictly_false", "@sortByAssociatedKeys", "cel.@mapInsert"))

_INTRODUCTION: Final = """# Functions in CEL expressions

Generated from the code by `make docs-cel`; a test checks that it is current.

This is what a selector or a mapping may use: the environment of kube-scheduler 1.37 for devices.
A `?` before a key or an element allows it to be absent.
`dyn` stands for a value whose type only the run shows, letters such as `A` for any type.

## Macros

| Macro | What it gives |
|---|---|
"""


def document() -> str:
    """The whole page."""
    lines = [_INTRODUCTION.rstrip("\n")]
    lines += [f"| `{_escaped(form)}` | {gives} |" for form, gives in SIGNATURES]
    lines += ["", "## Functions and operators", "", "| Library | Form | Result |", "|---|---|---|"]
    for library in (*LIBRARIES, sequences.INCLUDES):
        lines += _rows(library)
    lines += ["", "`includes` needs the gate DRAListTypeAttributes.", ""]
    lines += ["## Names", "", "| Name | Type |", "|---|---|"]
    lines += [f"| `{name}` | `{_escaped(str(kind))}` |" for name, kind in _names()]
    return "\n".join(lines) + "\n"


def _rows(library: Library) -> Iterator[str]:
    for overload in library.overloads:
        if overload.checked and overload.function not in _HIDDEN:
            form = _escaped(_form(overload))
            yield f"| {library.name} | `{form}` | `{_escaped(str(overload.result))}` |"


def _form(overload: Overload) -> str:
    args = [str(kind) for kind in overload.params]
    template = _OPERATORS.get(overload.function)
    if template is not None:
        return template.format(*args)
    if overload.function.startswith("_"):
        return f" {overload.function.strip('_')} ".join(args)
    if overload.is_member:
        return f"{args[0]}.{overload.function}({', '.join(args[1:])})"
    return f"{overload.function}({', '.join(args)})"


def _names() -> Iterator[tuple[str, Type | str]]:
    yield "device.driver", "string"
    yield 'device.attributes["domain"].id', "dyn"
    yield 'device.capacity["domain"].id', "kubernetes.Quantity"
    yield "device.allowMultipleAllocations (with DRAConsumableCapacity)", "bool"
    yield "device.name, device.pool (in mappings of ours)", "string"
    for name in TYPES:
        yield name, "type"
    for name in MESSAGES:
        yield f"{name}{{}}", MESSAGES[name]
    for name in CONSTANTS:
        yield name, "int"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
