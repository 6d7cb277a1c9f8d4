"""Which types go together, and what type variables stand for, as cel-go's checker decides it."""

from collections.abc import Iterable
from typing import Final

from dovetail.core.cel.effort import Effort
from dovetail.core.cel.kinds import DYN, Type

_SIMPLE: Final = frozenset(
    ("bool", "bytes", "double", "int", "string", "uint", "duration", "timestamp", "struct")
)
_COMPOSED: Final = frozenset(("opaque", "list", "map"))
_NULLABLE: Final = frozenset(("opaque", "struct", "any", "duration", "timestamp", "null"))


class Bindings:
    """What each type variable stands for; what does not fit leaves no trace.

    Every part of a type that is looked at is a step of `effort`.
    """

    def __init__(self, effort: Effort) -> None:
        self._effort = effort
        self._known: dict[str, Type] = {}
        self._changes: list[tuple[str, Type | None]] = []
        self._fresh = 0

    def fresh(self) -> Type:
        """A new type variable."""
        self._fresh += 1
        return Type("param", f"_var{self._fresh}")

    def instance(self, kinds: Iterable[Type]) -> list[Type]:
        """The types with type variables of their own in place of their parameters."""
        kinds = list(kinds)
        names = sorted({name for kind in kinds for name in kind.variables})
        if not names:
            return kinds
        renamed = {name: self.fresh() for name in names}
        return [_rename(kind, renamed) for kind in kinds]

    def accepts(self, wanted: Type, given: Type) -> bool:
        """Whether one may stand for the other; binds type variables if so."""
        return self.accept_all([wanted], [given])

    def accept_all(self, wanted: list[Type], given: list[Type]) -> bool:
        """Whether each may stand for its counterpart; binds type variables only if all may."""
        if len(wanted) != len(given):
            return False
        before = len(self._changes)
        if all(self._accept(first, second) for first, second in zip(wanted, given, strict=True)):
            return True
        while len(self._changes) > before:
            name, kind = self._changes.pop()
            if kind is None:
                del self._known[name]
            else:
                self._known[name] = kind
        return False

    def resolve(self, kind: Type, *, to_dyn: bool = False) -> Type:
        """The type with its variables replaced; those that stand for nothing become dyn if asked."""
        if not kind.variables:
            return kind
        self._effort.spend()
        if kind.kind == "param":
            known = self._known.get(kind.name)
            if known is not None:
                return self.resolve(known, to_dyn=to_dyn)
            return DYN if to_dyn else kind
        return Type(kind.kind, kind.name, tuple(self.resolve(part, to_dyn=to_dyn) for part in kind.params))

    def _bind(self, name: str, kind: Type) -> None:
        self._changes.append((name, self._known.get(name)))
        self._known[name] = kind

    def _accept(self, first: Type, second: Type) -> bool:
        self._effort.spend()
        if second.kind == "param":
            valid, is_known = self._substitute(first, second)
            if valid or is_known:
                return valid
        if first.kind == "param":
            return self._substitute(second, first)[0]
        if first.is_dyn or second.is_dyn or "error" in (first.kind, second.kind):
            return True
        if first.kind == "null":
            return _takes_null(second)
        if second.kind == "null":
            return _takes_null(first)
        return self._accept_concrete(first, second)

    def _accept_concrete(self, first: Type, second: Type) -> bool:
        if first.kind in _SIMPLE:
            return first.kind == second.kind and first.name == second.name
        if first.kind == "type":
            return second.kind == "type"
        if first.kind not in _COMPOSED or first.kind != second.kind or first.name != second.name:
            return False
        return len(first.params) == len(second.params) and all(map(self._accept, first.params, second.params))

    def _substitute(self, kind: Type, variable: Type) -> tuple[bool, bool]:
        """Whether the variable may stand for the type, and whether it stood for one already."""
        if kind == variable:
            return True, True
        known = self._known.get(variable.name)
        if known is None:
            if self._mentions(variable, kind):
                return False, False
            self._bind(variable.name, kind)
            return True, False
        self._effort.spend(min(kind.size, known.size))
        if kind == known:
            return True, True
        if not self._accept(kind, known):
            return False, True
        wider = more_general(kind, known)
        if not self._mentions(variable, wider):
            self._bind(variable.name, wider)
        return True, True

    def _mentions(self, variable: Type, kind: Type) -> bool:
        self._effort.spend()
        if kind == variable:
            return True
        if not kind.variables:
            return False
        if kind.kind == "param":
            known = self._known.get(kind.name)
            return known is not None and self._mentions(variable, known)
        return any(self._mentions(variable, part) for part in kind.params)


def _rename(kind: Type, names: dict[str, Type]) -> Type:
    if kind.kind == "param":
        return names[kind.name]
    if not kind.variables:
        return kind
    return Type(kind.kind, kind.name, tuple(_rename(part, names) for part in kind.params))


def _takes_null(kind: Type) -> bool:
    return kind.kind in _NULLABLE or kind.nullable


def more_general(first: Type, second: Type) -> Type:
    """The type of the two that says less."""
    return first if _says_less(first, second) else second


def _says_less(first: Type, second: Type) -> bool:
    """Whether the first type says no more than the second."""
    if first.is_dyn or first.kind == "param":
        return True
    if second.is_dyn or second.kind == "param" or first.kind != second.kind:
        return False
    if first.kind in _COMPOSED:
        same = first.name == second.name and len(first.params) == len(second.params)
        return same and all(map(_says_less, first.params, second.params))
    return first.kind == "type" or first == second
