"""Types, checked before anything runs, by cel-go's rules."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from dovetail.core.cel.effort import Effort
from dovetail.core.cel.environment import CONSTANTS, TYPES, Scope
from dovetail.core.cel.faults import brief, fault
from dovetail.core.cel.kinds import (
    BOOL,
    BYTES,
    DEVICE,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of,
    unwrap_optional,
)
from dovetail.core.cel.messages import MESSAGES, message_fields
from dovetail.core.cel.parser import qualified_name
from dovetail.core.cel.signatures import Function, Overload
from dovetail.core.cel.syntax import (
    Call,
    Fold,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
    StructExpr,
    walk,
)
from dovetail.core.cel.unify import Bindings, more_general
from dovetail.core.cel.values import TypeValue
from dovetail.errors import ExpressionInvalid

MOST_OF_A_TYPE: Final = 120
"""Characters of a type that a message shows."""

_LITERALS: Final[dict[str, Type]] = {
    "bool": BOOL,
    "bytes": BYTES,
    "float": DOUBLE,
    "int": INT,
    "NoneType": NULL,
    "str": STRING,
    "Uint": UINT,
}


def check(expression: str, root: Node, scope: Scope, effort: Effort | None = None) -> Type:
    """Give every node its type and every call its overloads; raises ExpressionInvalid at the first fault.

    Raises TooLarge where a type becomes too large, and what `effort` raises.
    """
    effort = effort or Effort()
    checker = _Checker(expression, scope, effort)
    checker.check(root)
    for node in walk(root):
        effort.spend()
        node.kind = checker.bindings.resolve(node.kind, to_dyn=True)
    return root.kind


class _Checker:
    """Checks one expression."""

    def __init__(self, expression: str, scope: Scope, effort: Effort) -> None:
        self.expression = expression
        self.scope = scope
        self.effort = effort
        self.bindings = Bindings(effort)
        self.seen: set[int] = set()
        self.locals: list[dict[str, Type]] = []

    def check(self, node: Node) -> Type:
        """The type of a node, its variables not yet resolved.

        A node that is part of several others sees the same variables in all of them: it is checked once.
        """
        if id(node) in self.seen:
            return node.kind
        self.seen.add(id(node))
        self.effort.spend()
        match node:
            case Literal():
                node.kind = _LITERALS[type(node.value).__name__]
            case Ident():
                node.kind = self.ident(node)
            case Select():
                node.kind = self.select(node)
            case Call():
                node.kind = self.call(node)
            case ListExpr():
                node.kind = self.list(node)
            case MapExpr():
                node.kind = self.map(node)
            case StructExpr():
                node.kind = self.struct(node)
            case Fold():
                node.kind = self.fold(node)
            case _:
                raise self.fail(node, "unknown part of an expression")
        return node.kind

    def fail(self, node: Node, reason: str) -> ExpressionInvalid:
        """An error at a node."""
        return fault(self.expression, reason, node.at)

    def shown(self, kind: Type) -> str:
        """A type as a message shows it."""
        return brief(str(self.bindings.resolve(kind, to_dyn=True)), MOST_OF_A_TYPE)

    # Names.

    def ident(self, node: Ident) -> Type:
        local = self.local(node.name)
        if local is not None and not node.name.startswith("."):
            return local
        name = node.name.removeprefix(".")
        node.is_global = True
        if name == "device":
            node.name = name
            return DEVICE
        kind = self.named(node, name)
        if kind is None:
            raise self.fail(node, f"undeclared reference to {node.name!r}")
        return kind

    def named(self, node: Ident | Select, name: str) -> Type | None:
        """The type of a name that stands for a type or a constant."""
        if name in TYPES:
            node.constant = TypeValue(name)
            return type_of(TYPES[name])
        if name in MESSAGES:
            node.constant = TypeValue(MESSAGES[name].name)
            return type_of(MESSAGES[name])
        if name in CONSTANTS:
            node.constant = CONSTANTS[name]
            return INT
        return None

    def local(self, name: str) -> Type | None:
        """The type of a variable of a macro."""
        return next((names[name] for names in reversed(self.locals) if name in names), None)

    @contextmanager
    def variables(self, names: dict[str, Type]) -> Iterator[None]:
        """More variables, for a while."""
        self.locals.append({name: kind for name, kind in names.items() if name})
        yield
        self.locals.pop()

    def select(self, node: Select) -> Type:
        name = None if node.is_test else qualified_name(node)
        if name is not None and self.local(name.split(".")[0] or name) is None:
            kind = self.named(node, name.removeprefix("."))
            if kind is not None:
                return kind
        kind = self.field(node, node.operand, node.field, optional=False)
        return BOOL if node.is_test else kind

    def field(self, node: Node, operand: Node, field: str, *, optional: bool) -> Type:
        """The type of a field; an optional operand makes an optional of it."""
        target, is_optional = unwrap_optional(self.bindings.resolve(self.check(operand)))
        if target.kind == "map":
            kind = target.params[1]
        elif target == DEVICE:
            if field not in self.scope.device:
                raise self.fail(
                    node, f"undefined field {field!r}: a device has {', '.join(self.scope.device)}"
                )
            kind = self.scope.device[field]
        elif target.kind == "param":
            self.bindings.accepts(DYN, target)
            kind = DYN
        elif target.is_dyn or target.kind == "error":
            kind = DYN
        else:
            raise self.fail(node, f"type {self.shown(target)!r} does not support field selection")
        return self.bindings.resolve(optional_of(kind) if is_optional or optional else kind)

    # Calls.

    def call(self, node: Call) -> Type:
        if node.function == "_?._":
            field = node.args[1]
            assert isinstance(field, Literal)
            field.kind = STRING
            node.overloads = ("select_optional_field",)
            return self.field(node, node.args[0], field.value, optional=True)
        for argument in node.args:
            self.check(argument)
        if node.target is not None and not self.is_namespaced(node):
            self.check(node.target)
        node.function = node.function.removeprefix(".")
        function = self.scope.functions.get(node.function)
        if function is None:
            raise self.fail(node, f"undeclared reference to {node.function!r}")
        if function.name in ("_&&_", "_||_"):
            return self.logic(node)
        return self.resolve(node, function)

    def is_namespaced(self, node: Call) -> bool:
        """Whether `a.b(…)` is the function `a.b`; the call then has no target."""
        assert node.target is not None
        prefix = qualified_name(node.target)
        name = f"{prefix}.{node.function}".removeprefix(".")
        if prefix is None or name not in self.scope.functions:
            return False
        node.target, node.function = None, name
        return True

    def logic(self, node: Call) -> Type:
        for argument in node.args:
            if not self.bindings.accepts(argument.kind, BOOL):
                shown = self.shown(argument.kind)
                raise self.fail(argument, f"{node.function.strip('_')} wants bool, and this is {shown}")
        node.overloads = ("logical",)
        return BOOL

    def resolve(self, node: Call, function: Function) -> Type:
        """The type of the call: that of the forms which the types of the arguments allow."""
        given = [operand.kind for operand in node.operands]
        result: Type | None = None
        found = []
        for overload in function.overloads:
            kind = self.try_overload(overload, given, is_member=node.target is not None)
            if kind is None:
                continue
            found.append(overload.id)
            self.effort.spend(kind.size)
            if result is None:
                result = kind
            elif not result.is_dyn and kind != result:
                result = DYN
        if result is None:
            raise self.fail(node, self.no_overload(node, function, given))
        node.overloads = tuple(found)
        return result

    def try_overload(self, overload: Overload, given: list[Type], *, is_member: bool) -> Type | None:
        if not overload.checked or overload.is_member != is_member or len(overload.params) != len(given):
            return None
        result, *wanted = self.bindings.instance((overload.result, *overload.params))
        return self.bindings.resolve(result) if self.bindings.accept_all(given, wanted) else None

    def no_overload(self, node: Call, function: Function, given: list[Type]) -> str:
        shown = [self.shown(kind) for kind in given]
        applied = f"({', '.join(shown)})"
        if node.target is not None:
            applied = f"{shown[0]}.({', '.join(shown[1:])})"
        return f"found no matching overload for {function.name!r} applied to {applied!r}"

    # Literals of lists, maps and messages.

    def element(self, node: Node, *, optional: bool) -> Type:
        kind = self.check(node)
        if not optional:
            return kind
        inner, is_optional = unwrap_optional(kind)
        if not is_optional and not kind.is_dyn:
            raise self.fail(node, f"expected an optional, but found {self.shown(kind)}")
        return inner

    def join(self, previous: Type | None, current: Type) -> Type:
        """A type for both; dyn where there is none."""
        if previous is None:
            return current
        return more_general(previous, current) if self.bindings.accepts(previous, current) else DYN

    def list(self, node: ListExpr) -> Type:
        joined: Type | None = None
        for index, element in enumerate(node.elements):
            joined = self.join(joined, self.element(element, optional=index in node.optional))
        return list_of(joined or self.bindings.fresh())

    def map(self, node: MapExpr) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self.join(key, self.check(entry.key))
            value = self.join(value, self.element(entry.value, optional=entry.optional))
        return map_of(key or self.bindings.fresh(), value or self.bindings.fresh())

    def struct(self, node: StructExpr) -> Type:
        name = node.name.removeprefix(".")
        kind = DEVICE if name == DEVICE.name else MESSAGES.get(name)
        if kind is None:
            raise self.fail(node, f"undeclared reference to {node.name!r}")
        node.name = name
        fields = self.scope.device if kind == DEVICE else message_fields(name)
        for entry in node.fields:
            given = self.element(entry.value, optional=entry.optional)
            if entry.key not in fields:
                raise self.fail(node, f"undefined field {entry.key!r}")
            if not self.bindings.accepts(fields[entry.key], given):
                wanted = self.shown(fields[entry.key])
                raise self.fail(node, f"field {entry.key!r} has type {wanted}, not {self.shown(given)}")
        return kind

    # Loops.

    def fold(self, node: Fold) -> Type:
        self.check(node.range)
        accumulated = self.check(node.init)
        first, second = self.iterated(node)
        with self.variables({node.accumulator: accumulated}):
            with self.variables({node.variable: first, node.variable2: second}):
                self.expect(BOOL, node.condition)
                self.expect(accumulated, node.step)
            result = self.check(node.result)
        return self.bindings.resolve(result)

    def iterated(self, node: Fold) -> tuple[Type, Type]:
        """The types of the variables of a loop over this range."""
        kind = self.bindings.resolve(node.range.kind)
        if kind.kind == "list":
            return (INT, kind.params[0]) if node.variable2 else (kind.params[0], ERROR)
        if kind.kind == "map":
            return kind.params[0], kind.params[1]
        if kind.kind in ("dyn", "error", "param"):
            self.bindings.accepts(DYN, kind)
            return DYN, DYN
        shown = self.shown(kind)
        raise self.fail(node.range, f"expression of type {shown!r} cannot be range of a comprehension")

    def expect(self, wanted: Type, node: Node) -> None:
        given = self.check(node)
        if not self.bindings.accepts(wanted, given):
            raise self.fail(node, f"expected type {self.shown(wanted)!r} but found {self.shown(given)!r}")
