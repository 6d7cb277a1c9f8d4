"""Tree to functions: each node of a checked expression becomes a function of the frame."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from dovetail.core.cel import chains, messages
from dovetail.core.cel.calls import (
    IN_SET,
    application,
    comparison,
    evaluated,
    in_set,
    metered_application,
    raise_first,
    verdict,
)
from dovetail.core.cel.chains import Link
from dovetail.core.cel.cost import LIST, MAP, STRUCT, call_cost, equality_cost, inequality_cost
from dovetail.core.cel.effort import Effort
from dovetail.core.cel.environment import Scope
from dovetail.core.cel.equality import equal
from dovetail.core.cel.faults import fault
from dovetail.core.cel.folds import Loop, Slots, plan_binding, plan_loop
from dovetail.core.cel.library.conversions import FOLDED
from dovetail.core.cel.library.regexes import PATTERN_ARGUMENT, compile_pattern
from dovetail.core.cel.logic import plan_conditional, plan_logic, plan_not, plan_not_strictly_false
from dovetail.core.cel.macros import UNUSED
from dovetail.core.cel.meter import Meter
from dovetail.core.cel.pieces import METER, VIEW, Frame, Piece, Run, charged, constant
from dovetail.core.cel.signatures import Dispatch
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
)
from dovetail.core.cel.values import (
    Aborted,
    CelMap,
    EvalError,
    NoSuchOverload,
    Optional,
    Unhashable,
)
from dovetail.errors import ExpressionInvalid


class Planner:
    """Plans one expression, with or without a meter.

    Without one nothing is charged: good for expressions that cannot become expensive.
    """

    def __init__(self, expression: str, scope: Scope, effort: Effort, *, metered: bool) -> None:
        self.expression = expression
        self.scope = scope
        self.effort = effort
        self.metered = metered
        self.slots = Slots()

    def plan(self, node: Node) -> Piece:
        """The piece for a node; raises ExpressionInvalid where a constant part fails."""
        self.effort.spend()
        if chains.is_link(node) or (isinstance(node, Select) and node.is_test):
            return self.chain(node)
        if isinstance(node, Literal):
            return constant(node.value)
        for kind, rule in _RULES:
            if isinstance(node, kind):
                return rule(self, node)
        raise self.fail(node, "unknown part of an expression")

    def fail(self, node: Node, reason: str) -> ExpressionInvalid:
        """An error at a node."""
        return fault(self.expression, reason, node.at)

    def charge(self, run: Run, cost: int) -> Run:
        """The same with a cost, if costs count."""
        return charged(run, cost) if self.metered else run

    # Names and chains.

    def name(self, node: Ident | Select) -> Piece:
        """A variable, a type or a constant."""
        if node.constant is not None:
            return constant(node.constant)
        assert isinstance(node, Ident)
        if node.kind.kind == "type":
            raise self.fail(node, f"reference to undefined type: {node.name}")
        if node.is_global:
            own = self.scope.own
            bare: Run = lambda frame: frame[VIEW].root(own=own)  # noqa: E731 - one of two
        else:
            bare = self.slots.reader(node.name)
        return Piece(self.charge(bare, 1), bare=bare)

    def chain(self, node: Node) -> Piece:
        """Selections and indexes, from their root on."""
        root, links = chains.unchained(node)
        is_test = isinstance(node, Select) and node.is_test
        path = chains.constant_path(node)
        optional = any(isinstance(link, Call) and link.function != "_[_]" for link in links)
        if path is not None and not optional:
            direct = chains.plan_direct(path, is_test=is_test)
            if direct is not None:
                bare = self.charge(direct, len(path))
                return Piece(bare if is_test else self.charge(bare, 1), bare=bare)
        planned = [self.link(link) for link in links]
        return chains.plan_general(self.plan(root), planned, is_test=is_test, metered=self.metered)

    def link(self, node: Node) -> Link:
        """One selection or index."""
        if isinstance(node, Select):
            return Link(node.field)
        assert isinstance(node, Call)
        optional = node.function != "_[_]"
        key = self.plan(node.args[1])
        if not key.is_constant:
            return Link(None, key.as_branch, optional)
        if not chains.is_valid_key(key.constant):
            raise self.fail(node.args[1], "a constant of this type cannot be a key")
        return Link(key.constant, None, optional)

    # Literals of lists, maps and messages.

    def list(self, node: ListExpr) -> Piece:
        """A list; a constant one is built at once."""
        pieces = list(map(self.plan, node.elements))
        if all(piece.is_constant for piece in pieces) and not node.optional:
            return constant([piece.constant for piece in pieces])
        runs = [piece.run for piece in pieces]
        if node.optional:
            return Piece(self.charge(_optional_list(runs, node.optional), LIST))
        return Piece(self.charge(lambda frame: [run(frame) for run in runs], LIST))

    def map(self, node: MapExpr) -> Piece:
        """A map; a constant one is built at once."""
        pieces = [(self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries]
        if all(key.is_constant and value.is_constant and not optional for key, value, optional in pieces):
            try:
                return constant(CelMap((key.constant, value.constant) for key, value, _ in pieces))
            except Unhashable as error:
                raise self.fail(node, str(error)) from error
        entries = [(key.run, value.run, optional) for key, value, optional in pieces]
        return Piece(self.charge(lambda frame: _built_map(entries, frame), MAP))

    def struct(self, node: StructExpr) -> Piece:
        """A message."""
        fields = [(entry.key, self.plan(entry.value).run, entry.optional) for entry in node.fields]
        name = node.name

        def build(frame: Frame) -> Any:
            found = {}
            for field, run, optional in fields:
                value = run(frame)
                if not optional:
                    found[field] = value
                elif _optional(value).has_value:
                    found[field] = value.value
            return messages.build(name, found, frame[METER])

        return Piece(self.charge(build, STRUCT))

    # Calls.

    def call(self, node: Call) -> Piece:
        """A function, operator or method."""
        special = _SPECIAL.get(node.function)
        if special is not None:
            return special(self, node)
        if node.function in ("or", "orValue") and len(node.operands) == 2 and node.target is not None:
            return self.alternative(node)
        pieces = list(map(self.plan, node.operands))
        self.check_pattern(node, pieces)
        dispatch = self.scope.functions[node.function].chosen(node.overloads)
        if node.function in FOLDED and len(pieces) == 1 and pieces[0].is_constant:
            return self.folded(node, dispatch, pieces[0])
        return self.applied(node, dispatch, pieces)

    def applied(self, node: Call, dispatch: Dispatch, pieces: Sequence[Piece]) -> Piece:
        """A call that dispatches on the types of its arguments."""
        runs = [piece.run for piece in pieces]
        if not self.metered:
            return Piece(application(dispatch, runs))
        cost = call_cost(node.function, node.overloads)
        return Piece(metered_application(dispatch, runs, cost if callable(cost) else lambda *_: cost))

    def folded(self, node: Call, dispatch: Dispatch, argument: Piece) -> Piece:
        """A conversion of a constant: done at once, so that it fails at once."""
        try:
            return constant(dispatch.apply(Meter(), (argument.constant,)))
        except Aborted as error:
            raise self.fail(node, str(error)) from error
        except EvalError as error:
            raise self.fail(node, str(error)) from error

    def check_pattern(self, node: Call, pieces: Sequence[Piece]) -> None:
        """A constant pattern must compile."""
        position = PATTERN_ARGUMENT.get(node.function)
        if position is None or position >= len(pieces) or not isinstance(pieces[position].constant, str):
            return
        try:
            compile_pattern(pieces[position].constant, Meter(self.effort.budget))
        except EvalError as error:
            raise self.fail(node.operands[position], str(error)) from error

    def membership(self, node: Call) -> Piece:
        """`x in list`; a constant list of plain values is a set."""
        value, values = map(self.plan, node.operands)
        if values.is_constant and node.overloads == ("in_list",):
            if not values.constant:
                return constant(False)
            if all(type(element) in IN_SET for element in values.constant):
                return Piece(in_set(value.run, values.constant))
        return self.applied(node, self.scope.functions["@in"].chosen(node.overloads), [value, values])

    def equality(self, node: Call) -> Piece:
        """`==` and `!=`."""
        first, second = map(self.plan, node.operands)
        negated = node.function == "_!=_"
        run = comparison(first.run, second, negated=negated)
        if not self.metered:
            return Piece(run)
        cost = inequality_cost if negated else equality_cost
        left, right = first.run, second.run

        def metered(frame: Frame) -> bool:
            mine, other = evaluated([left, right], frame)
            frame[METER].charge(cost(mine, other))
            raise_first((mine, other))
            return verdict(equal(mine, other, frame[METER]), negated=negated)

        return Piece(metered)

    def logic(self, node: Call) -> Piece:
        """`&&` and `||`."""
        runs = [piece.run for piece in list(map(self.plan, node.args))]
        return Piece(plan_logic(runs, node.function == "_||_"))

    def negation(self, node: Call) -> Piece:
        """`!`."""
        return Piece(self.charge(plan_not(self.plan(node.args[0]).run), 1))

    def not_strictly_false(self, node: Call) -> Piece:
        """What keeps the loops of `all` and `exists` going."""
        return Piece(self.charge(plan_not_strictly_false(self.plan(node.args[0]).run), 1))

    def conditional(self, node: Call) -> Piece:
        """`?:`."""
        condition, first, second = map(self.plan, node.args)
        run = plan_conditional(condition.run, first.as_branch, second.as_branch)
        return Piece(run, bare=run, is_conditional=True)

    def alternative(self, node: Call) -> Piece:
        """`a.or(b)` and `a.orValue(b)`: the second is computed only if needed, and neither costs."""
        first, second = (piece.run for piece in map(self.plan, node.operands))
        unwraps = node.function == "orValue"

        def choose(frame: Frame) -> Any:
            value = first(frame)
            if type(value) is not Optional:
                raise NoSuchOverload("no such overload: or")
            if not value.has_value:
                return second(frame)
            return value.value if unwraps else value

        return Piece(choose)

    # Loops.

    def fold(self, node: Fold) -> Piece:
        """A loop or a binding."""
        init = self.plan(node.init).run
        if node.variable == UNUSED:
            slot = self.slots.enter(node.accumulator, init)
            self.plan(node.step)
            body = self.plan(node.result).run
            self.slots.leave(node.accumulator)
            return Piece(plan_binding(slot, body))
        over = self.plan(node.range).run
        accumulator = self.slots.enter(node.accumulator, init)
        names = [name for name in (node.variable, node.variable2) if name]
        variables = [self.slots.enter(name) for name in names]
        condition, step = self.plan(node.condition), self.plan(node.step)
        for name in reversed(names):
            self.slots.leave(name)
        result = self.plan(node.result).run
        self.slots.leave(node.accumulator)
        parts = Loop(over, accumulator, variables, condition, step.run, result)
        return Piece(plan_loop(parts, metered=self.metered))


_RULES: Final[tuple[tuple[type[Node], Callable[[Planner, Any], Piece]], ...]] = (
    (Call, Planner.call),
    (Ident, Planner.name),
    (Select, Planner.name),
    (ListExpr, Planner.list),
    (MapExpr, Planner.map),
    (StructExpr, Planner.struct),
    (Fold, Planner.fold),
)

_SPECIAL: Final[dict[str, Callable[[Planner, Call], Piece]]] = {
    "@in": Planner.membership,
    "_==_": Planner.equality,
    "_!=_": Planner.equality,
    "_&&_": Planner.logic,
    "_||_": Planner.logic,
    "!_": Planner.negation,
    "_?_:_": Planner.conditional,
    "@not_strictly_false": Planner.not_strictly_false,
}


def _optional(value: Any) -> Optional:
    if type(value) is not Optional:
        raise EvalError("cannot initialize an optional element from a value that is not optional")
    return value


def _optional_list(runs: list[Run], optional: frozenset[int]) -> Run:
    def build(frame: Frame) -> list[Any]:
        built = []
        for index, run in enumerate(runs):
            value = run(frame)
            if index not in optional:
                built.append(value)
            elif _optional(value).has_value:
                built.append(value.value)
        return built

    return build


def _built_map(entries: list[tuple[Run, Run, bool]], frame: Frame) -> CelMap:
    """A later entry replaces an earlier one of the same key; an absent one removes it."""
    built = CelMap()
    for key_run, value_run, optional in entries:
        key, value = key_run(frame), value_run(frame)
        single = CelMap(((key, value),))
        if optional and not _optional(value).has_value:
            for encoded in single.entries:
                built.entries.pop(encoded, None)
            continue
        built.entries |= CelMap(((key, value.value),)).entries if optional else single.entries
    return built
