"""Which claims are ours, and which of them kube-scheduler could allocate as well (design, section 1)."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from dovetail.api.claims import (
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    NativeDerivedAttribute,
    ResourceClaimSpec,
)
from dovetail.api.mappings import PARAMETERS_DRIVER, ClaimParameters

if TYPE_CHECKING:
    from dovetail.core.world import World


@dataclass(frozen=True, slots=True)
class Unsupplied:
    """An attribute of a constraint that nothing supplies; `nearest` is a known name like it, or empty."""

    attribute: str
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class Ours:
    """Whose a claim is.

    `ours`: Dovetail allocates it.
    `shared`: ours, but kube-scheduler could allocate it as well: taken only while its pods are gated.
    `unsupplied`: attributes of its constraints that no mapping, native entry or published attribute supplies.
    """

    ours: bool
    shared: bool = False
    unsupplied: tuple[Unsupplied, ...] = ()


def judge_claim(spec: ResourceClaimSpec, world: "World") -> Ours:
    """Whose a claim with this specification is, in this world."""
    claim = spec.devices
    attributes = [attribute_of(constraint) for constraint in claim.constraints]
    configured = has_parameters(claim)
    ours = configured or any(world.mappings.find(attribute) for attribute in attributes)
    if not attributes and not configured:
        return Ours(ours=False)
    published = world.attribute_names.names
    return Ours(
        ours=ours,
        shared=ours and not _is_beyond_kube_scheduler(claim, published, world.features.derived_attributes),
        unsupplied=_unsupplied(claim, attributes, {*world.mappings.attributes, *published}),
    )


def has_parameters(claim: DeviceClaim) -> bool:
    """The claim carries configuration that is meant for Dovetail, readable or not."""
    return any(config.opaque and config.opaque.driver == PARAMETERS_DRIVER for config in claim.config)


def attribute_of(constraint: DeviceConstraint) -> str:
    """The attribute that a constraint is about; empty for a constraint of an unknown kind."""
    return constraint.match_attribute or constraint.distinct_attribute or ""


def _is_beyond_kube_scheduler(claim: DeviceClaim, published: Collection[str], derived: bool) -> bool:
    """Some request cannot be served without an attribute that kube-scheduler does not have (V-1, V-22)."""
    return any(_is_blocked(request, claim.constraints, published, derived) for request in claim.requests)


def _is_blocked(
    request: DeviceRequest, constraints: Iterable[DeviceConstraint], published: Collection[str], derived: bool
) -> bool:
    """Each way to serve the request is under a constraint on such an attribute."""
    hidden = [c for c in constraints if attribute_of(c) and attribute_of(c) not in published]
    exact = request.exactly
    ways = [(f"{request.name}/{sub.name}", sub.derived_attributes) for sub in request.first_available]
    if exact is not None:
        ways.append((request.name, exact.derived_attributes))
    return bool(ways) and all(
        any(
            _covers(constraint, request.name, way) and not (derived and _is_native(constraint, native))
            for constraint in hidden
        )
        for way, native in ways
    )


def _covers(constraint: DeviceConstraint, request: str, way: str) -> bool:
    return not constraint.requests or request in constraint.requests or way in constraint.requests


def _is_native(constraint: DeviceConstraint, native: Iterable[NativeDerivedAttribute]) -> bool:
    return any(entry.name == attribute_of(constraint) for entry in native)


def _unsupplied(
    claim: DeviceClaim, attributes: Iterable[str], known: Collection[str]
) -> tuple[Unsupplied, ...]:
    supplied = {*known, *_brought_along(claim)}
    missing = [name for name in dict.fromkeys(attributes) if name and name not in supplied]
    if not missing or _has_unreadable_parameters(claim):
        return ()
    return tuple(Unsupplied(name, _nearest(name, supplied)) for name in missing)


def _brought_along(claim: DeviceClaim) -> set[str]:
    """The derived attributes that the claim itself defines, natively or in its parameters."""
    names = {derived.name for parameters in _parameters(claim) for derived in parameters.derived_attributes}
    for request in claim.requests:
        names |= {derived.name for way in request.first_available for derived in way.derived_attributes}
        if request.exactly is not None:
            names |= {derived.name for derived in request.exactly.derived_attributes}
    return names


def _parameters(claim: DeviceClaim) -> Iterable[ClaimParameters]:
    for config in claim.config:
        if config.opaque and config.opaque.driver == PARAMETERS_DRIVER:
            try:
                yield ClaimParameters.model_validate(config.opaque.parameters)
            except ValueError:
                continue


def _has_unreadable_parameters(claim: DeviceClaim) -> bool:
    """The claim may define any attribute: that its parameters are wrong is said where it is allocated."""
    wanted = [c for c in claim.config if c.opaque and c.opaque.driver == PARAMETERS_DRIVER]
    return len(list(_parameters(claim))) < len(wanted)


def _nearest(name: str, known: Iterable[str]) -> str:
    return next(iter(get_close_matches(name, sorted(known), n=1, cutoff=0.75)), "")
