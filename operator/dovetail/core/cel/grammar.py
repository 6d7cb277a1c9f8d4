"""cel-python's grammar, mended: these fixes belong upstream.

cel-python 0.5 lacks CEL's optional syntax, trailing commas and escaped identifiers.
Its lexer knows neither triple-quoted raw strings nor all escapes, and takes a sign for a part of a number,
so that `- 1` and `-1` differ.
Each fix replaces one rule or terminal of `celpy/cel.lark`; one that no longer finds its target fails loudly.
The parser is an instance of our own: cel-python's is shared by the whole process, and its first user
fixes how it works.
"""

import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

from lark import Lark, Token

RULES: Final = {
    # Optional selection and indexing, and fields in backquotes.
    "member": "member_dot | member_dot_arg | member_index | member_opt | member_opt_index"
    " | member_object | primary",
    "member_dot": 'member "." (IDENT | ESC_IDENT)',
    # Optional elements and entries, and a comma at the end.
    "list_lit": '"[" "]" | "[" "," "]" | "[" listinit "]" | "[" listinit "," "]"',
    "map_lit": '"{" "}" | "{" "," "}" | "{" mapinits "}" | "{" mapinits "," "}"',
    "mapinits": 'mapentry | mapinits "," mapentry',
    "member_object": 'member "{" "}" | member "{" "," "}"'
    ' | member "{" fieldinits "}" | member "{" fieldinits "," "}"',
    "fieldinits": 'fieldinit | fieldinits "," fieldinit',
    "literal": "UINT_LIT | FLOAT_LIT | INT_LIT | STRING_LIT | BYTES_LIT | BOOL_LIT | NULL_LIT",
}
"""Rules that take the place of cel-python's."""

ADDED: Final = """
member_opt       : member "." "?" (IDENT | ESC_IDENT)
member_opt_index : member "[" "?" expr "]"
listinit         : optexpr | listinit "," optexpr
optexpr          : expr | "?" expr
mapentry         : optexpr ":" expr
fieldinit        : (IDENT | ESC_IDENT) ":" expr | "?" (IDENT | ESC_IDENT) ":" expr
ESC_IDENT        : /`[A-Za-z0-9_.\\/ -]+`/
"""
"""Rules that cel-python does not have."""

_ESCAPE: Final = (
    r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}"""
    r"""|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
)
_STRING: Final = "|".join(
    (
        r'[rR]"""[\s\S]*?"""',  # one way only to read each character: two would make 2^n of n characters
        r"[rR]'''[\s\S]*?'''",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"(?:{_ESCAPE}|[^\\\n\r"])*"',  # a quote right behind the backslash would lose it in Lark
        rf"'(?:{_ESCAPE}|[^\\\n\r'])*'",
    )
)

TERMINALS: Final = {
    "BYTES_LIT": rf"[bB](?:{_STRING})",
    "STRING_LIT": _STRING,
    "FLOAT_LIT": r"(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+",
    "UINT_LIT": r"(?:0x[0-9a-fA-F]+|[0-9]+)[uU]",
    "INT_LIT": r"0x[0-9a-fA-F]+|[0-9]+",
}
"""Terminals that take the place of cel-python's, those to try first before the others."""

_INLINE: Final = (
    "expr",
    "conditionalor",
    "conditionaland",
    "relation",
    "addition",
    "multiplication",
    "unary",
)


class GrammarChanged(RuntimeError):
    """cel-python's grammar is not the one that the fixes were written for."""


def mended(text: str) -> str:
    """The grammar with every fix applied."""
    text = re.sub(r"(?m)^\s*//.*$", "", text)
    for name, body in RULES.items():
        text = _replace(text, name, body)
    for rank, (name, pattern) in enumerate(reversed(TERMINALS.items()), start=2):
        escaped = re.sub(r"(?<!\\)/", r"\/", pattern)
        text = _replace(text, name, f"/{escaped}/", f"{name}.{rank}")
    for name in (*_INLINE, "member", "primary"):
        text = _replace(text, name, None, f"?{name}")
    return text + ADDED


def _replace(text: str, name: str, body: str | None, new_name: str | None = None) -> str:
    """One definition replaced: it ends where the next begins."""
    definition = re.compile(rf"(?m)^{name}\s*:((?:.*\n)(?:[ \t]+.*\n|\n(?=[ \t]+\|))*)")
    found = definition.search(text)
    if found is None:
        raise GrammarChanged(f"cel-python's grammar defines no {name!r}")
    kept = found[1].strip("\n") if body is None else f" {body}"
    return f"{text[: found.start()]}{new_name or name} :{kept}\n{text[found.end() :]}"


def _keyword(token: Token) -> Token:
    """`true` and `false` look like identifiers to the lexer."""
    return Token.new_borrow_pos("BOOL_LIT", token.value, token) if token.value in ("true", "false") else token


@cache
def parser() -> Any:
    """The parser; building it takes a tenth of a second, once in a process."""
    text = files("celpy").joinpath("cel.lark").read_text()
    return Lark(
        mended(text),
        parser="lalr",
        start="expr",
        keep_all_tokens=True,
        maybe_placeholders=False,
        lexer_callbacks={"IDENT": _keyword},
    )
