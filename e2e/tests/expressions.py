"""Random expressions over the whole table of functions, well typed or nearly so.

A wanted type is made from a literal, from the device, or from any function whose result can have that type,
with arguments made in the same way.
Now and then a type is hidden behind `dyn`, or something of another type takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from dovetail.core.cel import Environment
from dovetail.core.cel import kinds as k
from dovetail.core.cel.environment import scope
from dovetail.core.cel.kinds import Type
from dovetail.core.cel.signatures import Overload
from e2e.tests.literals import DOUBLES, INTS, TEXTS, UINTS, text_literal

SCALARS: Final = (k.BOOL, k.INT, k.STRING, k.DOUBLE, k.UINT, k.BYTES, k.DURATION, k.TIMESTAMP)
PLAIN: Final = (k.BOOL, k.INT, k.STRING, k.STRING)
KUBERNETES: Final = (k.QUANTITY, k.SEMVER, k.IP, k.CIDR, k.URL, k.FORMAT)

_HIDDEN: Final = frozenset(("@not_strictly_false", "@sortByAssociatedKeys", "cel.@mapInsert", "_?._"))
_BINARY: Final = frozenset(
    ("_+_", "_-_", "_*_", "_/_", "_%_", "_<_", "_<=_", "_>_", "_>=_", "_==_", "_!=_", "_&&_", "_||_", "@in")
)

Bindings = dict[str, Type]


def unify(pattern: Type, wanted: Type, bound: Bindings) -> bool:
    """Whether the pattern can become the wanted type; binds its parameters."""
    if pattern.kind == "param":
        return bound.setdefault(pattern.name, wanted) == wanted
    if (
        pattern.kind != wanted.kind
        or pattern.name != wanted.name
        or len(pattern.params) != len(wanted.params)
    ):
        return False
    return all(unify(part, other, bound) for part, other in zip(pattern.params, wanted.params, strict=True))


def substitute(kind: Type, bound: Bindings) -> Type:
    """The type with its parameters replaced."""
    if kind.kind == "param":
        return bound[kind.name]
    return Type(kind.kind, kind.name, tuple(substitute(part, bound) for part in kind.params))


class Grammar:
    """Makes expressions for one environment and one device."""

    def __init__(self, random: Random, environment: Environment, device: Mapping[str, Any]) -> None:
        self.random = random
        self.overloads = [
            overload
            for function in scope(environment).functions.values()
            if function.name not in _HIDDEN
            for overload in function.overloads
            if overload.checked and not any("authorization" in kind.name for kind in overload.params)
        ]
        self.functions = sorted({overload.function for overload in self.overloads})
        self.by_function: dict[str, list[Overload]] = {}
        for overload in self.overloads:
            self.by_function.setdefault(overload.function, []).append(overload)
        self.lists = environment.list_type_attributes or environment.stored
        self.device = device
        self.variables: list[tuple[str, Type]] = []
        self.names = 0

    def selector(self) -> str:
        """An expression that should be a bool."""
        return self.make(k.BOOL, self.depth())

    def attribute(self) -> str:
        """An expression that should be a scalar or a list of scalars."""
        kind = self.random.choice((k.STRING, k.INT, k.BOOL, k.SEMVER, k.DYN))
        if self.lists and self.random.random() < 0.3:
            kind = k.list_of(self.random.choice((k.STRING, k.INT, k.BOOL)))
        return self.make(kind, self.depth())

    def about(self, function: str) -> str:
        """An expression that applies this function, and shows its result as a derived attribute can."""
        overload = self.random.choice(self.by_function[function])
        bound = {name: self.plain() for name in self.parameters(overload)}
        call = self.apply(overload, bound, self.random.randrange(1, 3))
        return self.shown(call, substitute(overload.result, bound))

    def depth(self) -> int:
        """How deep an expression may nest."""
        return self.random.choice((1, 2, 2, 3, 3, 4))

    def plain(self) -> Type:
        """A type for a parameter that may be anything."""
        return self.random.choice((*PLAIN, *SCALARS, k.QUANTITY, k.SEMVER))

    def shown(self, text: str, kind: Type) -> str:
        """A value in a form that a derived attribute may have."""
        is_list = kind.kind == "list" and kind.params[0].kind in ("bool", "int", "string") and self.lists
        if kind.kind in ("bool", "int", "string", "dyn") or kind == k.SEMVER or is_list:
            return text
        inner, is_optional = k.unwrap_optional(kind)
        if is_optional:
            return f"({text}).hasValue() ? {self.described(f'({text}).value()', inner)} : 'none'"
        return self.described(text, kind)

    def described(self, text: str, kind: Type) -> str:
        """A value as a string."""
        if kind in (*SCALARS, k.IP, k.CIDR):
            return f"string({text})"
        if kind == k.QUANTITY:
            return f"string(({text}).asApproximateFloat())"
        if kind == k.URL:
            return f"({text}).getScheme() + ({text}).getHost() + ({text}).getEscapedPath()"
        if kind.kind in ("list", "map"):
            return f'"%s".format([{text}])'
        if kind.kind == "type":
            return f"string(({text}) == int)"
        return f"string(({text}) == ({text}))"

    def parameters(self, overload: Overload) -> set[str]:
        """The type parameters of an overload."""
        found = set(overload.result.variables)
        for kind in overload.params:
            found |= kind.variables
        return found

    def make(self, wanted: Type, depth: int) -> str:
        """An expression of the wanted type, mostly."""
        chance = self.random.random()
        if chance < 0.02:
            wanted = self.plain()
        if depth <= 0 or chance < 0.12:
            return self.leaf(wanted)
        if chance < 0.2 and wanted.kind != "dyn":
            return f"dyn({self.make(wanted, depth - 1)})"
        if chance < 0.28:
            return self.branch(wanted, depth)
        if chance < 0.38:
            return self.macro(wanted, depth)
        return self.call(wanted, depth)

    def call(self, wanted: Type, depth: int) -> str:
        """A function whose result can have the wanted type."""
        for _ in range(6):
            function = self.random.choice(self.functions)
            overload = self.random.choice(self.by_function[function])
            bound: Bindings = {}
            if wanted.kind == "dyn" or unify(overload.result, wanted, bound):
                for name in self.parameters(overload):
                    bound.setdefault(name, self.plain())
                return self.apply(overload, bound, depth)
        return self.leaf(wanted)

    def apply(self, overload: Overload, bound: Bindings, depth: int) -> str:
        """A call with arguments of the right types."""
        args = [self.make(substitute(kind, bound), depth - 1) for kind in overload.params]
        return spelled(overload, args)

    def branch(self, wanted: Type, depth: int) -> str:
        """`?:`, an optional with a default, or a binding."""
        form = self.random.randrange(4)
        if form == 0:
            parts = (self.make(k.BOOL, depth - 1), self.make(wanted, depth - 1), self.make(wanted, depth - 1))
            return "({} ? {} : {})".format(*parts)
        if form == 1:
            return f"{self.path('?')}.orValue({self.make(wanted, depth - 1)})"
        if form == 2:
            return (
                f"[{self.make(wanted, depth - 1)}][{self.random.choice(('0', '0', '1', '-1', '0u', '0.0'))}]"
            )
        name, kind = self.fresh(), self.plain()
        init = self.make(kind, depth - 1)
        body = self.within(name, kind, lambda: self.make(wanted, depth - 1))
        return f"cel.bind({name}, {init}, {body})"

    def macro(self, wanted: Type, depth: int) -> str:
        """A macro that gives the wanted type."""
        element = self.plain()
        over = self.make(k.list_of(element), depth - 1)
        name = self.fresh()
        if wanted == k.BOOL:
            macro = self.random.choice(("all", "exists", "exists_one", "existsOne"))
            if self.random.random() < 0.3:
                other = self.fresh()
                test = self.within(other, element, lambda: self.make(k.BOOL, depth - 1))
                return f"{over}.{macro}({name}, {other}, {test})"
            return (
                f"{over}.{macro}({name}, {self.within(name, element, lambda: self.make(k.BOOL, depth - 1))})"
            )
        if wanted.kind == "list":
            return self.list_macro(wanted, over, name, element, depth)
        if wanted == k.optional_of(k.STRING):
            macro = self.random.choice(("optMap", "optFlatMap"))
            body_kind = k.STRING if macro == "optMap" else wanted
            body = self.within(name, k.DYN, lambda: self.make(body_kind, depth - 1))
            return f"{self.path('?')}.{macro}({name}, {body})"
        return self.call(wanted, depth)

    def list_macro(self, wanted: Type, over: str, name: str, element: Type, depth: int) -> str:
        """A macro that gives a list."""

        def body() -> str:
            return self.make(wanted.params[0], depth - 1)

        form = self.random.randrange(5)
        if form == 0:
            return f"{over}.map({name}, {self.within(name, element, body)})"
        if form == 1:
            test = self.within(name, element, lambda: self.make(k.BOOL, depth - 1))
            return f"{over}.map({name}, {test}, {self.within(name, element, body)})"
        if form == 2:
            own = self.make(wanted, depth - 1)
            test = self.within(name, wanted.params[0], lambda: self.make(k.BOOL, depth - 1))
            return f"{own}.filter({name}, {test})"
        if form == 3:
            key = self.within(name, wanted.params[0], lambda: self.make(k.INT, 1))
            return f"{self.make(wanted, depth - 1)}.sortBy({name}, {key})"
        other = self.fresh()
        return f"{over}.transformList({name}, {other}, {self.within(other, element, body)})"

    def within(self, name: str, kind: Type, body: Callable[[], str]) -> str:
        """What a function makes while a variable is in scope."""
        self.variables.append((name, kind))
        text = body()
        self.variables.pop()
        return text

    def fresh(self) -> str:
        """A name for a variable."""
        self.names += 1
        return f"v{self.names}"

    def path(self, mark: str = "") -> str:
        """A read of the device, of something that is there or not."""
        places = [(of, name) for of in ("attributes", "capacity") for name in self.device.get(of) or ()]
        if not places or self.random.random() < 0.2:
            of, domain, ident = self.random.choice(("attributes", "capacity")), "no.example.com", "nothing"
        else:
            of, name = self.random.choice(places)
            domain, slash, ident = name.rpartition("/")
            domain = domain if slash else str(self.device["driver"])
        if self.random.random() < 0.1:
            return f"device.{of}[{text_literal(domain)}][{mark}{text_literal(ident)}]"
        return f"device.{of}[{text_literal(domain)}].{mark}{ident}"

    def leaf(self, wanted: Type) -> str:
        """A literal, a variable, or a read of the device."""
        fitting = [name for name, kind in self.variables if kind == wanted or wanted.kind == "dyn"]
        if fitting and self.random.random() < 0.6:
            return self.random.choice(fitting)
        if wanted.kind in ("dyn", "int", "string", "bool", "struct") and self.random.random() < 0.3:
            return self.path()
        make = _LEAVES.get(wanted.kind)
        if make is not None:
            return make(self, wanted)
        return self.leaf(self.plain())

    def text(self) -> str:
        """A string literal."""
        return text_literal(self.random.choice(TEXTS))

    def struct(self, wanted: Type) -> str:
        """A value of one of Kubernetes' own types."""
        if wanted == k.FORMAT:
            return f"format.{self.random.choice(('uuid', 'dns1123Label', 'date', 'qualifiedName'))}()"
        name = {"kubernetes.Quantity": "quantity", "kubernetes.Semver": "semver", "kubernetes.URL": "url"}
        good = {
            "kubernetes.Quantity": ("1Ki", "1500m", "2", "0", "10M"),
            "kubernetes.Semver": ("1.0.0", "1.2.3-rc.1", "2.0.0+b"),
            "kubernetes.URL": ("http://h:80/a?b=c", "/x/y"),
        }
        if wanted.name not in name:
            return self.leaf(self.plain())
        pool = good[wanted.name] if self.random.random() < 0.8 else TEXTS
        return f"{name[wanted.name]}({text_literal(self.random.choice(pool))})"

    def opaque(self, wanted: Type) -> str:
        """An optional, an address or a network."""
        inner, is_optional = k.unwrap_optional(wanted)
        if is_optional:
            return "optional.none()" if self.random.random() < 0.3 else f"optional.of({self.leaf(inner)})"
        pool = (
            ("10.0.0.1", "::1", "fe80::1") if wanted == k.IP else ("10.0.0.0/8", "fe80::/10", "10.1.2.3/16")
        )
        return f"{'ip' if wanted == k.IP else 'cidr'}({text_literal(self.random.choice(pool))})"

    def list_literal(self, wanted: Type) -> str:
        """A list of leaves."""
        return f"[{', '.join(self.leaf(wanted.params[0]) for _ in range(self.random.randrange(4)))}]"

    def map_literal(self, wanted: Type) -> str:
        """A map with one entry at most: cel-go visits more in no particular order."""
        if self.random.random() < 0.2:
            return "{}"
        return f"{{{self.leaf(wanted.params[0])}: {self.leaf(wanted.params[1])}}}"


def spelled(overload: Overload, args: list[str]) -> str:
    """A call as it is written."""
    name = overload.function
    if name in _BINARY:
        operator = "in" if name == "@in" else name.strip("_")
        return f"({args[0]} {operator} {args[1]})"
    if name in ("!_", "-_"):
        return f"{name[0]}({args[0]})"
    if name == "_?_:_":
        return f"({args[0]} ? {args[1]} : {args[2]})"
    if name in ("_[_]", "_[?_]"):
        return f"{args[0]}[{'?' if '?' in name else ''}{args[1]}]"
    if overload.is_member:
        return f"{args[0]}.{name}({', '.join(args[1:])})"
    return f"{name}({', '.join(args)})"


_LEAVES: Final[dict[str, Callable[[Grammar, Type], str]]] = {
    "bool": lambda grammar, _: grammar.random.choice(("true", "false")),
    "int": lambda grammar, _: str(grammar.random.choice(INTS)),
    "uint": lambda grammar, _: f"{grammar.random.choice(UINTS)}u",
    "double": lambda grammar, _: grammar.random.choice(DOUBLES),
    "string": lambda grammar, _: grammar.text(),
    "bytes": lambda grammar, _: (
        "b" + grammar.random.choice(('""', '"a"', '"\\xff"', '"\\303\\251"', "'abc'"))
    ),
    "null": lambda grammar, _: "null",
    "duration": lambda grammar, _: "duration({})".format(
        grammar.random.choice(('"1h"', '"-1.5s"', '"3ns"', '"0s"'))
    ),
    "timestamp": lambda grammar, _: "timestamp({})".format(
        grammar.random.choice(('"2024-02-29T12:34:56.5+02:00"', "0", "1700000000", '"0001-01-01T00:00:00Z"'))
    ),
    "type": lambda grammar, _: grammar.random.choice(("int", "string", "list", "type", "net.IP")),
    "dyn": lambda grammar, _: f"dyn({grammar.leaf(grammar.plain())})",
    "list": Grammar.list_literal,
    "map": Grammar.map_literal,
    "struct": Grammar.struct,
    "opaque": Grammar.opaque,
}
