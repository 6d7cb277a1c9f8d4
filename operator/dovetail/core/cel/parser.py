"""Text to tree: what cel-python's parser makes of it, checked and simplified, macros expanded."""

from collections.abc import Callable
from typing import Any, Final

from lark import Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from dovetail.core.cel import grammar, literals
from dovetail.core.cel.effort import Effort
from dovetail.core.cel.faults import brief, fault
from dovetail.core.cel.macros import MacroMisused, expand
from dovetail.core.cel.syntax import (
    MAX_DEPTH,
    Call,
    Entry,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Place,
    Select,
    StructExpr,
)
from dovetail.errors import ExpressionInvalid

MAX_BYTES: Final = 10_240
"""What the API server takes for one expression (CELSelectorExpressionMaxLength)."""

_KEYWORDS: Final = frozenset(("false", "in", "null", "true"))
_RESERVED: Final = frozenset(
    [
        *_KEYWORDS,
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"),
        *("package", "namespace", "return", "var", "void", "while"),
    ]
)
_LEFT_ASSOCIATIVE: Final = frozenset(("relation", "addition", "multiplication"))
_MEMBERS: Final = frozenset(
    ("member_dot", "member_dot_arg", "member_index", "member_opt", "member_opt_index", "member_object")
)
_OPERATORS: Final = {"in": "@in"}


def parse(expression: str, effort: Effort | None = None) -> Node:
    """The tree of an expression; raises ExpressionInvalid with line and column.

    Raises TooLarge as soon as the tree becomes too large or too deep, and what `effort` raises.
    """
    if len(expression) > MAX_BYTES or len(_encoded(expression)) > MAX_BYTES:
        raise ExpressionInvalid(expression, f"the expression is longer than {MAX_BYTES} bytes")
    effort = effort or Effort()
    try:
        tree = _tokens_to_tree(expression, effort)
    except UnexpectedInput as error:
        raise _syntax_error(expression, error) from error
    return _Builder(expression, effort).build(tree)


def _encoded(expression: str) -> bytes:
    try:
        return expression.encode()
    except UnicodeEncodeError as error:
        raise ExpressionInvalid(expression, "it holds half a character, which is no text") from error


def _tokens_to_tree(expression: str, effort: Effort) -> Any:
    """Token by token, so that it can be ended in between."""
    reading = grammar.parser().parse_interactive(expression)
    token = None
    for token in reading.iter_parse():  # noqa: B007 - the last one tells where the text ends
        effort.spend()
    return reading.feed_eof(token)


def _syntax_error(expression: str, error: UnexpectedInput) -> ExpressionInvalid:
    line, column = max(int(error.line), 0), max(int(error.column), 0)
    match error:
        case UnexpectedToken() if error.token.type == "$END":
            ends = expression.splitlines() or [""]
            return ExpressionInvalid(
                expression, "the expression ends too early", len(ends), len(ends[-1]) + 1
            )
        case UnexpectedToken():
            token = brief(str(error.token))
            return ExpressionInvalid(expression, f"{token!r} does not belong here", line, column)
        case UnexpectedCharacters():
            return ExpressionInvalid(expression, f"{error.char!r} does not belong here", line, column)
        case _:
            return ExpressionInvalid(expression, "the expression ends too early", line, column)


class _Builder:
    """Builds the tree of one expression."""

    def __init__(self, expression: str, effort: Effort) -> None:
        self.expression = expression
        self.effort = effort
        self.nested = 0

    def build(self, tree: Any) -> Node:
        """The node for a tree of the parser."""
        self.effort.spend()
        return _RULES[tree.data](self, tree)

    def nest(self, tree: Any) -> Node:
        """An expression within the expression: only so many may enclose each other."""
        self.nested += 1
        if self.nested >= MAX_DEPTH:
            raise ExpressionInvalid(self.expression, f"expressions are nested more than {MAX_DEPTH} deep")
        node = _RULES[tree.data](self, tree)
        self.nested -= 1
        return node

    def fail(self, token: Token, reason: str) -> ExpressionInvalid:
        """An error at a token."""
        return fault(self.expression, reason, _at(token))

    def chain(self, tree: Any) -> Node:
        """Operators that bind to the left, by loop: a chain may be long."""
        links = []
        while isinstance(tree, Tree) and tree.data in _LEFT_ASSOCIATIVE:
            operation, right = tree.children
            tree, operator = operation.children
            links.append((operator, right))
        node = self.build(tree)
        for operator, right in reversed(links):
            name = _OPERATORS.get(operator.value, f"_{operator.value}_")
            node = Call(name, None, [node, self.build(right)], at=_at(operator))
        return node

    def members(self, tree: Any) -> Node:
        """Selections, indexes and method calls, by loop."""
        links = []
        while isinstance(tree, Tree) and tree.data in _MEMBERS:
            links.append(tree)
            tree = tree.children[0]
        node = self.build(tree)
        for link in reversed(links):
            node = _MEMBER_RULES[link.data](self, node, link.children[1:])
        return node

    def field_name(self, token: Token) -> str:
        """The name of a field, backquotes removed."""
        if token.value in _KEYWORDS:
            raise self.fail(token, f"{token.value!r} is no name for a field")
        return str(token.value).strip("`")

    def expanded(self, call: Call) -> Node:
        """The call, or what it stands for."""
        try:
            return expand(call)
        except MacroMisused as error:
            raise fault(self.expression, str(error), error.node.at) from error

    # Rules, in the order of precedence.

    def expr(self, tree: Any) -> Node:
        condition, mark, first, _, second = tree.children
        args = [self.build(condition), self.build(first), self.nest(second)]
        return Call("_?_:_", None, args, at=_at(mark))

    def logic(self, tree: Any) -> Node:
        """`&&` and `||`: a whole chain becomes one call."""
        rule, operands = tree.data, []
        operator = tree.children[1]
        while isinstance(tree, Tree) and tree.data == rule:
            operands.append(tree.children[2])
            tree = tree.children[0]
        operands.append(tree)
        name = f"_{operator.value}_"
        return Call(name, None, list(map(self.build, reversed(operands))), at=_at(operator))

    def unary(self, tree: Any) -> Node:
        """Signs: an even number of them cancels out, and one before a number belongs to it."""
        signs: list[Any] = []
        while isinstance(tree, Tree) and tree.data == "unary":
            sign, operand_tree = tree.children
            signs.append(sign.children[0])
            tree = operand_tree
        first = signs[0]
        if first.value == "!" and signs[-1].value == "-":
            return self.negated_literal(signs, tree)
        if any(sign.value != first.value for sign in signs):
            raise self.fail(first, "signs of different kinds cannot follow each other")
        if len(signs) == 1 and first.value == "-" and (literal := self.signed(tree)) is not None:
            return literal
        operand = self.build(tree)
        name = "!_" if first.value == "!" else "-_"
        return operand if len(signs) % 2 == 0 else Call(name, None, [operand], at=_at(first))

    def negated_literal(self, signs: list[Token], tree: Any) -> Node:
        literal = self.signed(tree)
        if literal is None or [sign.value for sign in signs].count("-") > 1:
            raise self.fail(signs[0], "signs of different kinds cannot follow each other")
        return literal if len(signs) % 2 else Call("!_", None, [literal], at=_at(signs[0]))

    def signed(self, tree: Any) -> Node | None:
        """A tree that begins with a number, the number negative; None for other trees."""
        base, links = tree, []
        while isinstance(base, Tree) and base.data in _MEMBERS:
            links.append(base)
            base = base.children[0]
        if base.data != "literal" or base.children[0].type not in ("INT_LIT", "FLOAT_LIT"):
            return None
        node = self.literal(base, negative=True)
        for link in reversed(links):
            node = _MEMBER_RULES[link.data](self, node, link.children[1:])
        return node

    def literal(self, tree: Any, *, negative: bool = False) -> Node:
        token = tree.children[0]
        try:
            if negative:
                read: Callable[..., Any] = (
                    literals.read_int if token.type == "INT_LIT" else literals.read_double
                )
                return Literal(read(token.value, negative=True), at=_at(token))
            return Literal(literals.READERS[token.type](token.value), at=_at(token))
        except literals.BadLiteral as error:
            raise self.fail(token, f"{error}: {token.value[:64]}") from error

    def paren_expr(self, tree: Any) -> Node:
        return self.nest(tree.children[1])

    def ident(self, tree: Any) -> Node:
        return self.name(tree.children[0], "")

    def dot_ident(self, tree: Any) -> Node:
        return self.name(tree.children[1], ".")

    def name(self, token: Token, dot: str) -> Node:
        if token.value in _RESERVED:
            raise self.fail(token, f"reserved identifier: {token.value}")
        return Ident(dot + token.value, at=_at(token))

    def ident_arg(self, tree: Any) -> Node:
        token, *rest = tree.children
        return self.call(token, "", list(map(self.nest, _arguments(rest))))

    def dot_ident_arg(self, tree: Any) -> Node:
        _, token, *rest = tree.children
        return self.call(token, ".", list(map(self.nest, _arguments(rest))))

    def call(self, token: Token, dot: str, args: list[Node]) -> Node:
        if token.value in _RESERVED:
            raise self.fail(token, f"reserved identifier: {token.value}")
        return self.expanded(Call(dot + token.value, None, args, at=_at(token)))

    def list_lit(self, tree: Any) -> Node:
        parts = _spread(tree.children, "listinit")
        optional = frozenset(index for index, part in enumerate(parts) if len(part.children) > 1)
        elements = list(map(self.nest, [part.children[-1] for part in parts]))
        return ListExpr(elements, optional, at=_at(tree.children[0]))

    def map_lit(self, tree: Any) -> Node:
        entries = []
        for part in _spread(tree.children, "mapinits"):
            key, _, value = part.children
            entries.append(Entry(self.nest(key.children[-1]), self.nest(value), len(key.children) > 1))
        return MapExpr(entries, at=_at(tree.children[0]))

    # What follows a member.

    def select(self, operand: Node, parts: list[Any]) -> Node:
        return Select(operand, self.field_name(parts[1]), at=_at(parts[1]))

    def select_optional(self, operand: Node, parts: list[Any]) -> Node:
        field = Literal(self.field_name(parts[2]), at=_at(parts[2]))
        return Call("_?._", None, [operand, field], at=_at(parts[2]))

    def method(self, operand: Node, parts: list[Any]) -> Node:
        name = parts[1]
        if name.value in _KEYWORDS:
            raise self.fail(name, f"{name.value!r} is no name for a function")
        args = list(map(self.nest, _arguments(parts[3:])))
        return self.expanded(Call(str(name.value), operand, args, at=_at(name)))

    def index(self, operand: Node, parts: list[Any]) -> Node:
        return Call("_[_]", None, [operand, self.nest(parts[1])], at=_at(parts[0]))

    def index_optional(self, operand: Node, parts: list[Any]) -> Node:
        return Call("_[?_]", None, [operand, self.nest(parts[2])], at=_at(parts[0]))

    def message(self, operand: Node, parts: list[Any]) -> Node:
        name = qualified_name(operand)
        if name is None:
            raise self.fail(parts[0], "'{' does not belong here")
        fields = []
        for part in _spread(parts, "fieldinits"):
            is_optional = part.children[0].value == "?"
            token = part.children[1 if is_optional else 0]
            fields.append(Entry(self.field_name(token), self.nest(part.children[-1]), is_optional))
        return StructExpr(name, fields, at=operand.at)


def qualified_name(node: Node) -> str | None:
    """`a.b.c`, if the node is names joined by dots and nothing else."""
    names: list[str] = []
    while isinstance(node, Select) and not node.is_test:
        names.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(names)]) if isinstance(node, Ident) else None


def _at(token: Token) -> Place:
    return token.line or 0, token.column or 0


def _arguments(parts: list[Any]) -> list[Any]:
    """The arguments between two parentheses."""
    lists = [part for part in parts if isinstance(part, Tree)]
    return [part for part in lists[0].children if isinstance(part, Tree)] if lists else []


def _spread(parts: list[Any], rule: str) -> list[Any]:
    """The elements of a list that the grammar builds from the left."""
    found: list[Any] = []
    lists = [part for part in parts if isinstance(part, Tree)]
    while lists and lists[0].data == rule:
        *rest, last = [part for part in lists[0].children if isinstance(part, Tree)]
        found.append(last)
        lists = rest
    return found[::-1]


_RULES: Final[dict[str, Callable[[_Builder, Any], Node]]] = {
    "expr": _Builder.expr,
    "conditionalor": _Builder.logic,
    "conditionaland": _Builder.logic,
    "unary": _Builder.unary,
    **dict.fromkeys(_LEFT_ASSOCIATIVE, _Builder.chain),
    **dict.fromkeys(_MEMBERS, _Builder.members),
    "literal": _Builder.literal,
    "paren_expr": _Builder.paren_expr,
    "ident": _Builder.ident,
    "dot_ident": _Builder.dot_ident,
    "ident_arg": _Builder.ident_arg,
    "dot_ident_arg": _Builder.dot_ident_arg,
    "list_lit": _Builder.list_lit,
    "map_lit": _Builder.map_lit,
}

_MEMBER_RULES: Final[dict[str, Callable[[_Builder, Node, list[Any]], Node]]] = {
    "member_dot": _Builder.select,
    "member_opt": _Builder.select_optional,
    "member_dot_arg": _Builder.method,
    "member_index": _Builder.index,
    "member_opt_index": _Builder.index_optional,
    "member_object": _Builder.message,
}
