"""How devices get derived attributes: which mapping holds for each attribute (design, section 3).

Objects come before shipped mappings, and of two objects for one attribute the older one holds.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Self

from dovetail.api.mappings import DerivedAttribute
from dovetail.core.rules import (
    ANY_DRIVER,
    SHIPPED,
    CompiledMapping,
    Missing,
    MissingCause,
    RuleProblem,
    compile_mapping,
)
from dovetail.core.shipped import shipped_mappings

__all__ = [
    "SHIPPED",
    "CompiledMapping",
    "Mappings",
    "Missing",
    "MissingCause",
    "RuleProblem",
    "compile_mapping",
    "refuse_attribute",
    "refuse_spec",
]

MAX_DOMAIN = 63
MAX_IDENTIFIER = 32

_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DRIVER = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*")
_RESERVED = re.compile(r"(.*\.)?(k8s|kubernetes)\.io")


@dataclass(frozen=True, slots=True)
class _Entry:
    """An object with what became of it: compiled, or the reason why it is not used."""

    name: str
    created: str | None = None
    compiled: CompiledMapping | None = None
    reason: str = ""

    @property
    def seniority(self) -> tuple[bool, str, str]:
        """Older first; an object that was never stored has no age and comes last."""
        return (self.created is None, self.created or "", self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Mappings:
    """All mappings of a cluster and which of them hold. Never changes; a change makes a new one."""

    effective: Mapping[str, CompiledMapping]
    """The mapping that decides, by attribute."""
    objects: Mapping[str, CompiledMapping]
    """Every usable object by its name, those that do not hold included."""
    duplicates: Mapping[str, str]
    """Objects that do not hold, each with the name of the older object that does."""
    invalid: Mapping[str, str]
    """Objects that are not used at all, each with the reason."""
    shipped: bool
    _entries: Mapping[str, _Entry]

    @classmethod
    def of(cls, objects: Iterable[DerivedAttribute], *, shipped: bool = True) -> Self:
        """The mappings of these objects, and the shipped ones for attributes that no object defines."""
        return cls._assembled({mapping.metadata.name: _entry(mapping) for mapping in objects}, shipped)

    @classmethod
    def none(cls) -> Self:
        """No mapping at all, not even a shipped one."""
        return cls.of((), shipped=False)

    @property
    def attributes(self) -> frozenset[str]:
        """Every attribute that a mapping decides."""
        return frozenset(self.effective)

    def find(self, attribute: str) -> CompiledMapping | None:
        """The mapping that decides for the attribute, whether it compiles or not."""
        return self.effective.get(attribute)

    def with_object(self, mapping: DerivedAttribute) -> "Mappings":
        """The same with one object added or replaced; nothing else is compiled again."""
        return self._assembled({**self._entries, mapping.metadata.name: _entry(mapping)}, self.shipped)

    def with_malformed(self, name: str, reason: str) -> "Mappings":
        """The same with one object that cannot be read: what it said before no longer holds."""
        return self._assembled({**self._entries, name: _Entry(name, reason=reason)}, self.shipped)

    def without_object(self, name: str) -> "Mappings":
        """The same without one object; a name that is not there changes nothing."""
        left = {known: entry for known, entry in self._entries.items() if known != name}
        return self._assembled(left, self.shipped)

    @classmethod
    def _assembled(cls, entries: Mapping[str, _Entry], shipped: bool) -> Self:
        effective: dict[str, CompiledMapping] = {}
        duplicates: dict[str, str] = {}
        for entry in sorted(entries.values(), key=lambda entry: entry.seniority):
            if entry.compiled is None:
                continue
            holder = effective.setdefault(entry.compiled.attribute, entry.compiled)
            if holder is not entry.compiled:
                duplicates[entry.compiled.origin] = holder.origin
        if shipped:
            effective = {**_compiled_shipped(), **effective}
        return cls(
            effective=MappingProxyType(effective),
            objects=MappingProxyType(
                {name: entry.compiled for name, entry in entries.items() if entry.compiled is not None}
            ),
            duplicates=MappingProxyType(duplicates),
            invalid=MappingProxyType(
                {name: entry.reason for name, entry in entries.items() if entry.compiled is None}
            ),
            shipped=shipped,
            _entries=MappingProxyType(dict(entries)),
        )


def _entry(mapping: DerivedAttribute) -> _Entry:
    name, created = mapping.metadata.name, mapping.metadata.creation_timestamp
    if reason := refuse_spec(mapping):
        return _Entry(name, created, reason=reason)
    return _Entry(name, created, compile_mapping(mapping))


@cache
def _compiled_shipped() -> Mapping[str, CompiledMapping]:
    return {mapping.spec.attribute: compile_mapping(mapping, SHIPPED) for mapping in shipped_mappings()}


def refuse_spec(mapping: DerivedAttribute) -> str:
    """Why an object cannot be used as it is, in words, or nothing.

    The schema of the CustomResourceDefinition says the same;
    this is for objects that no API server has seen, and for those stored before a rule existed.
    """
    spec = mapping.spec
    drivers = [rule.driver for rule in spec.rules]
    if not drivers:
        return "spec.rules: at least one rule is needed"
    if ANY_DRIVER in drivers[:-1]:
        return 'spec.rules: only the last rule may have driver "*"'
    for driver in drivers:
        if driver != ANY_DRIVER and not (_DRIVER.fullmatch(driver) and len(driver) <= MAX_DOMAIN):
            return f'spec.rules: {driver!r} is neither the name of a driver nor "*"'
    return refuse_attribute(spec.attribute, drivers)


def refuse_attribute(attribute: str, drivers: Iterable[str] = ()) -> str:
    """Why a mapping may not define the attribute, in words, or nothing.

    Names are those that the API server takes in a constraint: a domain and a C identifier (V20).
    `drivers` are those whose domains are taken.
    """
    domain, slash, identifier = attribute.partition("/")
    if not slash:
        return f"spec.attribute: {attribute!r} needs a domain and a name separated by a slash"
    if not _DOMAIN.fullmatch(domain) or len(domain) > MAX_DOMAIN:
        return f"spec.attribute: {domain!r} is no DNS subdomain of at most {MAX_DOMAIN} characters"
    if not _IDENTIFIER.fullmatch(identifier) or len(identifier) > MAX_IDENTIFIER:
        return f"spec.attribute: {identifier!r} is no C identifier of at most {MAX_IDENTIFIER} characters"
    if _RESERVED.fullmatch(domain):
        return f"spec.attribute: the domain {domain!r} is reserved for Kubernetes"
    if domain in drivers:
        return f"spec.attribute: the domain {domain!r} belongs to a driver"
    return ""
