"""What an expression may cost at worst, before it runs: cel-go's estimate, which Kubernetes limits.

Expressions of our own are estimated in the same way, with one difference, `parts`: a part of a text is no
longer than the text. cel-go does not know that, and so refuses to join what was split.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from dovetail.core.cel.call_estimates import CallForm, Operand, estimate_call
from dovetail.core.cel.cost import LIST, MAP, STRUCT
from dovetail.core.cel.effort import Effort
from dovetail.core.cel.estimates import EMPTY, NOTHING, ONE, UNKNOWN, Entries, Range, exactly
from dovetail.core.cel.kinds import Type
from dovetail.core.cel.macros import ACCUMULATOR, UNUSED
from dovetail.core.cel.syntax import Call, Fold, Ident, ListExpr, Literal, MapExpr, Node, Select, StructExpr

Path = tuple[str, ...]

_ATTRIBUTE: Final = 64
_FIELDS: Final = {"driver": 63, "name": 63, "pool": 253, "allowMultipleAllocations": 1}
_MOST_NAMES: Final = 32
_DOMAIN: Final = 63
_ID: Final = 32
_SCALARS: Final = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))


class DeviceSizes:
    """How large the parts of a device may be, by the limits of the API."""

    def known(self, path: Path) -> Range | None:
        """The size of a part; None where the path leads nowhere."""
        if not path or path[0] != "device":
            return None
        most = _size(path[1:])
        return None if most is None else Range(0, most)


_MAPS: Final = ("attributes", "capacity")
_EACH: Final = ("@values", "@items")


_SIZES: Final[dict[Path, int]] = {
    (): 0,
    **{(name,): most for name, most in _FIELDS.items()},
    **{(of,): _MOST_NAMES for of in _MAPS},
    **{(of, "@keys"): _DOMAIN for of in _MAPS},
    **{(of, each): _MOST_NAMES for of in _MAPS for each in _EACH},
    **{(of, each, "@keys"): _ID for of in _MAPS for each in _EACH},
    **{("capacity", each, entry): 0 for each in _EACH for entry in _EACH},
}


def _size(path: Path) -> int | None:
    """The most that a part of the device may hold; any name leads to an attribute of a domain."""
    known = _SIZES.get(path)
    if known is None and len(path) == 3 and path[0] == "attributes" and path[1] in _EACH:
        return _ATTRIBUTE
    return known


def estimate(root: Node, effort: Effort, *, parts: bool = False) -> int:
    """The cost at worst of a checked expression; raises what `effort` raises."""
    return _Estimator(effort, parts=parts).cost(root).most


_PARTS: Final = frozenset(("split", "findAll"))
_SAME_PARTS: Final = frozenset(("slice", "reverse", "sort", "distinct", "@sortByAssociatedKeys"))


class _Local:
    """A variable of a macro: what it reads, and how large it may be."""

    __slots__ = ("entries", "path", "size")

    def __init__(self, path: Path, size: Range | None, entries: Entries | None = None) -> None:
        self.path = path
        self.size = size
        self.entries = entries


class _Estimator:
    """Estimates one expression."""

    def __init__(self, effort: Effort, *, parts: bool) -> None:
        self.effort = effort
        self.parts = parts
        self.device = DeviceSizes()
        self.locals: dict[str, list[_Local]] = {}
        self.paths: dict[int, Path] = {}
        self.sizes: dict[int, Range] = {}
        self.entries: dict[int, Entries] = {}

    def cost(self, node: Node) -> Range:
        """What evaluating a node costs, its parts included."""
        self.effort.spend()
        rule = _RULES.get(type(node))
        return NOTHING if rule is None else rule(self, node)

    def ident(self, node: Ident) -> Range:
        local = self.local(node)
        self.paths[id(node)] = (node.name,) if local is None else local.path
        return ONE

    def list(self, node: ListExpr) -> Range:
        cost = self.total(node.elements)
        self.entries[id(node)] = Entries("list", ONE, self.joined(node.elements))
        return cost + exactly(LIST)

    def struct(self, node: StructExpr) -> Range:
        return self.total(entry.value for entry in node.fields) + exactly(STRUCT)

    def fold(self, node: Fold) -> Range:
        return self.binding(node) if node.variable == UNUSED else self.loop(node)

    def total(self, nodes: Iterable[Node]) -> Range:
        """What several nodes cost together."""
        whole = NOTHING
        for node in nodes:
            whole += self.cost(node)
        return whole

    def joined(self, nodes: Sequence[Node]) -> Range:
        """A size for all of the nodes."""
        sizes = EMPTY if nodes else NOTHING
        for node in nodes:
            sizes |= self.size_or_unknown(node)
        return sizes

    def map(self, node: MapExpr) -> Range:
        keys, values = [entry.key for entry in node.entries], [entry.value for entry in node.entries]
        costs = self.total(keys) + self.total(values)
        self.entries[id(node)] = Entries("map", self.joined(keys), self.joined(values))
        return costs + exactly(MAP)

    def select(self, node: Select) -> Range:
        if node.constant is not None:
            return ONE
        cost = self.cost(node.operand)
        if node.is_test:
            return cost
        if node.operand.kind.kind in ("map", "struct", "param"):
            cost += ONE
        self.paths[id(node)] = (*self.path(node.operand), node.field)
        return cost

    # Calls.

    def call(self, node: Call) -> Range:
        if node.function == "dyn":
            cost = self.cost(node.args[0]) + ONE
            self.copy(node, node.args[0])
            return cost
        costs = [self.cost(argument) for argument in node.args]
        if not node.overloads:
            return NOTHING
        whole = NOTHING if node.target is None else self.cost(node.target)
        if node.function in ("_&&_", "_||_"):
            self.sizes[id(node)] = ONE
            return whole + Range(costs[0].least, sum(costs, NOTHING).most)
        arguments = self.conditional(costs) if node.function == "_?_:_" else sum(costs, NOTHING)
        return whole + arguments + self.forms(node)

    def conditional(self, costs: Sequence[Range]) -> Range:
        """One of the branches."""
        condition, first, second = costs
        return condition + (first | second)

    def forms(self, node: Call) -> Range:
        """A cost for every form that the types allow; the size of the result is noted."""
        target = None if node.target is None else self.operand(node.target)
        args = list(map(self.operand, node.args))
        cost, size = EMPTY, None
        for overload in node.overloads:
            form_cost, form_size = estimate_call(CallForm(node.function, overload, target, args, self.device))
            cost |= form_cost
            if form_size is not None:
                size = form_size if size is None else size | form_size
            self.note_entries(node, overload)
            if overload in ("index_list", "index_map"):
                entries = self.entries_of(node.args[0])
                size = None if entries is None else entries.value
                self.paths[id(node)] = (
                    *self.path(node.args[0]),
                    "@items" if overload == "index_list" else "@values",
                )
            if size is None:
                size = self.size(node)
        if size is not None:
            self.sizes[id(node)] = size
        if self.parts and node.target is not None:
            self.note_parts(node, node.target)
        return cost

    def note_parts(self, node: Call, target: Node) -> None:
        """How long the parts of a text are, as long as they are in a list."""
        if node.function in _PARTS:
            self.entries[id(node)] = Entries("list", ONE, Range(0, self.size_or_unknown(target).most))
        elif node.function in _SAME_PARTS and (entries := self.entries_of(target)) is not None:
            self.entries[id(node)] = entries

    def note_entries(self, node: Call, overload: str) -> None:
        """What the result of a choice, or of adding lists, holds."""
        if overload not in ("conditional", "add_string", "add_bytes", "add_list"):
            return
        first, second = map(self.entries_of, node.args[-2:])
        joined = None if first is None else first.joined(second)
        if joined is not None:
            self.entries[id(node)] = joined

    def operand(self, node: Node) -> Operand:
        """A node as a call sees it: an accumulator reads nothing of the device."""
        path = self.path(node)
        if path and path[0] in (ACCUMULATOR, "__result__"):
            path = ()
        entries = self.entries_of(node) if self.parts else None
        return Operand(node, node.kind, path, self.size(node), None if entries is None else entries.value)

    # Loops.

    def binding(self, node: Fold) -> Range:
        cost = exactly(LIST) + self.cost(node.init)
        bound = _Local(self.path(node.init), self.size(node.init), self.entries_of(node.init))
        with self.variables({node.accumulator: bound}):
            cost += self.cost(node.result)
        self.copy(node, node.result)  # cel-go has forgotten the variable by now, and so its size
        return cost

    def loop(self, node: Fold) -> Range:
        cost = self.cost(node.range) + self.cost(node.init)
        bound = _Local(self.path(node.init), self.size(node.init), self.entries_of(node.init))
        with self.variables({node.accumulator: bound}):
            with self.variables(self.iterated(node)):
                each = self.cost(node.condition) + self.cost(node.step)
            cost += self.cost(node.result)
        times = self.size_or_unknown(node.range)
        if isinstance(node.init, Literal):
            self.sizes[id(node)] = self.size_or_unknown(node.init)
        elif isinstance(node.init, ListExpr | MapExpr):
            self.sizes[id(node)] = times
            entries = self.entries_of(node.step)
            if entries is not None:
                self.entries[id(node)] = entries
        return cost + times * each

    def iterated(self, node: Fold) -> dict[str, _Local]:
        """The variables of a loop."""
        entries, path = self.entries_of(node.range), self.path(node.range)
        is_list = (node.range.kind.kind if entries is None else entries.kind) == "list"
        key, value = (None, None) if entries is None else (entries.key, entries.value)
        keyed = _Local((*path, "@indices" if is_list else "@keys"), key)
        valued = _Local((*path, "@items" if is_list else "@values"), value)
        if node.variable2:
            return {node.variable: keyed, node.variable2: valued}
        return {node.variable: valued if is_list else keyed}

    @contextmanager
    def variables(self, names: dict[str, _Local]) -> Iterator[None]:
        """More variables, for a while."""
        for name, local in names.items():
            self.locals.setdefault(name, []).append(local)
        yield
        for name in names:
            self.locals[name].pop()

    # What is known of a node.

    def local(self, node: Node) -> _Local | None:
        known = self.locals.get(node.name) if isinstance(node, Ident) else None
        return known[-1] if known else None

    def path(self, node: Node) -> Path:
        local = self.local(node)
        return self.paths.get(id(node), ()) if local is None else local.path

    def copy(self, to: Node, of: Node) -> None:
        """The one is as large as the other."""
        size, entries = self.size(of), self.entries_of(of)
        if size is not None:
            self.sizes[id(to)] = size
        if entries is not None:
            self.entries[id(to)] = entries

    def size_or_unknown(self, node: Node) -> Range:
        return self.size(node) or UNKNOWN

    def size(self, node: Node) -> Range | None:
        """How large the value of a node may be, where that can be told."""
        known = self.sizes.get(id(node)) or _written(node)
        if known is not None:
            return known
        known = self.device.known(self.path(node))
        if known is not None:
            self.sizes[id(node)] = known
            return known
        if _is_scalar(node.kind):
            return ONE
        local = self.local(node)
        return None if local is None else local.size

    def entries_of(self, node: Node) -> Entries | None:
        """How large the entries of a node may be, where that can be told."""
        known = self.entries.get(id(node))
        local = self.local(node) if known is None else None
        return known if local is None else local.entries


_RULES: Final[dict[type[Node], Callable[[_Estimator, Any], Range]]] = {
    Ident: _Estimator.ident,
    Select: _Estimator.select,
    Call: _Estimator.call,
    ListExpr: _Estimator.list,
    MapExpr: _Estimator.map,
    StructExpr: _Estimator.struct,
    Fold: _Estimator.fold,
}


def _written(node: Node) -> Range | None:
    """The size of what stands in the expression itself."""
    match node:
        case Literal():
            return exactly(len(node.value) if isinstance(node.value, (str, bytes)) else 1)
        case ListExpr():
            return exactly(len(node.elements))
        case MapExpr():
            return exactly(len(node.entries))
        case _:
            return None


def _is_scalar(kind: Type) -> bool:
    if kind.kind == "opaque" and kind.name == "optional_type":
        return _is_scalar(kind.params[0])
    return kind.kind in _SCALARS and not kind.nullable
