"""Macros: calls that stand for loops, presence tests and bindings."""

from collections.abc import Callable
from typing import Final

from dovetail.core.cel.syntax import Call, Fold, Ident, ListExpr, Literal, MapExpr, Node, Select, StructExpr

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"
SORT_INPUT: Final = "@__sortBy_input__"

FORBIDDEN: Final = frozenset((ACCUMULATOR, "__result__"))


class MacroMisused(ValueError):
    """A macro cannot be expanded; `node` is the argument at fault."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(reason)
        self.node = node


Expander = Callable[[Call], Node | None]


def expand(call: Call) -> Node:
    """What the call stands for: itself, unless a macro has its name, style and number of arguments."""
    expander = _MACROS.get((call.function, len(call.args), call.target is not None))
    return call if expander is None else expander(call) or call


def _call(at: Node, function: str, *args: Node) -> Call:
    return Call(function, None, list(args), at=at.at)


def _method(at: Node, function: str, target: Node, *args: Node) -> Call:
    return Call(function, target, list(args), at=at.at)


def _ident(at: Node, name: str = ACCUMULATOR) -> Ident:
    return Ident(name, at=at.at)


def _constant(at: Node, value: object) -> Literal:
    return Literal(value, at=at.at)


def _variable(argument: Node) -> str:
    if not isinstance(argument, Ident):
        raise MacroMisused(argument, "argument must be a simple name")
    if argument.name in FORBIDDEN:
        raise MacroMisused(argument, "iteration variable overwrites accumulator variable")
    return argument.name


def _two_variables(first: Node, second: Node) -> tuple[str, str]:
    names = _variable(first), _variable(second)
    if names[0] == names[1]:
        raise MacroMisused(second, f"duplicate variable name: {names[1]}")
    return names


def _target(call: Call) -> Node:
    assert call.target is not None
    return call.target


def _fold(call: Call, names: tuple[str, str], *parts: Node) -> Fold:
    """A loop over the target; the parts are initial value, condition, step and result."""
    return Fold(_target(call), *names, ACCUMULATOR, *parts, at=call.at)


def _has(call: Call) -> Node:
    argument = call.args[0]
    if not isinstance(argument, Select):
        raise MacroMisused(argument, "invalid argument to has() macro")
    return Select(argument.operand, argument.field, is_test=True, at=call.at)


def _names(call: Call, variables: int) -> tuple[str, str]:
    return (_variable(call.args[0]), "") if variables == 1 else _two_variables(call.args[0], call.args[1])


def _all(variables: int) -> Expander:
    def expander(call: Call) -> Node:
        names = _names(call, variables)
        condition = _call(call, "@not_strictly_false", _ident(call))
        step = _call(call, "_&&_", _ident(call), call.args[-1])
        return _fold(call, names, _constant(call, True), condition, step, _ident(call))

    return expander


def _exists(variables: int) -> Expander:
    def expander(call: Call) -> Node:
        names = _names(call, variables)
        condition = _call(call, "@not_strictly_false", _call(call, "!_", _ident(call)))
        step = _call(call, "_||_", _ident(call), call.args[-1])
        return _fold(call, names, _constant(call, False), condition, step, _ident(call))

    return expander


def _exists_one(variables: int) -> Expander:
    def expander(call: Call) -> Node:
        names = _names(call, variables)
        more = _call(call, "_+_", _ident(call), _constant(call, 1))
        step = _call(call, "_?_:_", call.args[-1], more, _ident(call))
        result = _call(call, "_==_", _ident(call), _constant(call, 1))
        return _fold(call, names, _constant(call, 0), _constant(call, True), step, result)

    return expander


def _collect(call: Call, names: tuple[str, str], init: Node, step: Node, condition: Node | None) -> Node:
    if condition is not None:
        step = _call(call, "_?_:_", condition, step, _ident(call))
    return _fold(call, names, init, _constant(call, True), step, _ident(call))


def _empty_list(at: Node) -> ListExpr:
    return ListExpr([], at=at.at)


def _listed(call: Call, element: Node) -> Node:
    return _call(call, "_+_", _ident(call), ListExpr([element], at=element.at))


def _map(variables: int, *, filtered: bool = False) -> Expander:
    def expander(call: Call) -> Node:
        names = _names(call, variables)
        condition = call.args[variables] if filtered else None
        return _collect(call, names, _empty_list(call), _listed(call, call.args[-1]), condition)

    return expander


def _filter(call: Call) -> Node:
    names = _names(call, 1)
    return _collect(call, names, _empty_list(call), _listed(call, call.args[0]), call.args[1])


def _transform_map(*, filtered: bool, entries: bool) -> Expander:
    def expander(call: Call) -> Node:
        names = _names(call, 2)
        empty = MapExpr([], at=call.at)
        keyed = () if entries else (_ident(call, names[0]),)
        step = _call(call, "cel.@mapInsert", _ident(call), *keyed, call.args[-1])
        return _collect(call, names, empty, step, call.args[2] if filtered else None)

    return expander


def _binding(call: Call, name: str, init: Node, body: Node) -> Fold:
    """A loop over nothing: its accumulator is the variable, computed when first read."""
    return Fold(
        _empty_list(call),
        UNUSED,
        "",
        name,
        init,
        _constant(call, False),
        _ident(call, name),
        body,
        at=call.at,
    )


def _bind(call: Call) -> Node | None:
    if not isinstance(call.target, Ident) or call.target.name != "cel":
        return None
    if not isinstance(call.args[0], Ident):
        raise MacroMisused(call.args[0], "cel.bind() variable names must be simple identifiers")
    return _binding(call, call.args[0].name, call.args[1], call.args[2])


def _opt_map(*, flat: bool) -> Expander:
    def expander(call: Call) -> Node:
        if not isinstance(call.args[0], Ident):
            raise MacroMisused(call.args[0], f"{call.function}() variable name must be a simple identifier")
        # The target stands in two places, and is the same node in both: a copy would double at every link.
        value = _method(call, "value", _target(call))
        body: Node = _binding(call, call.args[0].name, value, call.args[1])
        if not flat:
            body = _call(call, "optional.of", body)
        return _call(
            call, "_?_:_", _method(call, "hasValue", _target(call)), body, _call(call, "optional.none")
        )

    return expander


def _sort_by(call: Call) -> Node:
    target = _target(call)
    if isinstance(target, Literal | MapExpr | StructExpr):
        raise MacroMisused(target, "sortBy can only be applied to a list, a name, a call or a selection")
    keys = _map(1)(_method(call, "map", _ident(call, SORT_INPUT), *call.args))
    assert keys is not None
    return _binding(
        call, SORT_INPUT, target, _method(call, "@sortByAssociatedKeys", _ident(call, SORT_INPUT), keys)
    )


_MACROS: Final[dict[tuple[str, int, bool], Expander]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _all(1),
    ("all", 3, True): _all(2),
    ("exists", 2, True): _exists(1),
    ("exists", 3, True): _exists(2),
    ("exists_one", 2, True): _exists_one(1),
    ("exists_one", 3, True): _exists_one(2),
    ("existsOne", 3, True): _exists_one(2),
    ("map", 2, True): _map(1),
    ("map", 3, True): _map(1, filtered=True),
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _map(2),
    ("transformList", 4, True): _map(2, filtered=True),
    ("transformMap", 3, True): _transform_map(filtered=False, entries=False),
    ("transformMap", 4, True): _transform_map(filtered=True, entries=False),
    ("transformMapEntry", 3, True): _transform_map(filtered=False, entries=True),
    ("transformMapEntry", 4, True): _transform_map(filtered=True, entries=True),
    ("bind", 3, True): _bind,
    ("optMap", 2, True): _opt_map(flat=False),
    ("optFlatMap", 2, True): _opt_map(flat=True),
    ("sortBy", 2, True): _sort_by,
}

SIGNATURES: Final = (
    ("has(a.b)", "whether the field or key is there"),
    ("list.all(x, test)", "whether every element, or key of a map, passes"),
    ("list.all(i, x, test)", "the same with index and element, or key and value"),
    ("list.exists(x, test)", "whether an element passes"),
    ("list.exists(i, x, test)", "the same with index and element, or key and value"),
    ("list.exists_one(x, test)", "whether exactly one element passes"),
    ("list.existsOne(i, x, test)", "the same with index and element, or key and value; also `exists_one`"),
    ("list.map(x, value)", "a list of the values"),
    ("list.map(x, test, value)", "a list of the values of the elements that pass"),
    ("list.filter(x, test)", "a list of the elements that pass"),
    ("list.transformList(i, x, value)", "a list of the values; a test may stand before the value"),
    ("map.transformMap(k, v, value)", "a map with other values; a test may stand before the value"),
    ("map.transformMapEntry(k, v, {key: value})", "a map of these entries; a test may stand before them"),
    ("list.sortBy(x, key)", "the list in the order of the keys"),
    ("cel.bind(name, value, body)", "the body, in which the name stands for the value"),
    ("optional.optMap(x, value)", "an optional of the value where there is one"),
    ("optional.optFlatMap(x, optional)", "that optional where there is a value"),
)
"""The macros as documentation shows them."""
