"""What the claims of a pod ask for, read once per specification; or why they cannot be served."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from dovetail.api.claims import (
    DeviceClass,
    DeviceConfig,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dovetail.api.mappings import PARAMETERS_DRIVER, ClaimParameters
from dovetail.api.ownership import FENCE_KEY
from dovetail.api.selection import Toleration
from dovetail.core.features import Features
from dovetail.core.ours import attribute_of, has_parameters
from dovetail.core.outcome import RequestInvalid
from dovetail.core.quantity import Quantity
from dovetail.core.sources import ClaimRules, Expressions, NativeRules

RESULTS_LIMIT = 32
"""How many devices a claim may have (allocation-rules 2.2)."""

OWN_FENCE = Toleration(key=FENCE_KEY, operator="Exists", effect="NoSchedule")
"""Lets claims of ours through the fence; it is no part of the request, and so of no result (S80)."""

MOST_ALTERNATIVES = 8
"""How many alternatives a request may have: the best one scores as many points (allocation-rules 2.6)."""


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """One way to serve a request: the request itself, or one of its alternatives.

    `number` counts through all alternatives of all claims.
    `wanted` is None where all devices are asked for.
    """

    number: int
    claim: int
    request: int
    rank: int
    name: str
    parent: str
    device_class: DeviceClass
    class_selectors: tuple[str, ...]
    selectors: tuple[str, ...]
    wanted: int | None
    admin: bool
    tolerations: tuple[Toleration, ...]
    capacity: Mapping[str, Quantity]
    native: NativeRules
    constraints: tuple[int, ...]
    ours: bool = False
    """Whether the claim is ours, so that the fence around owned devices lets it pass."""

    @property
    def passes(self) -> tuple[Toleration, ...]:
        """What counts against taints: the request's tolerations, and for us the one of our own fence."""
        return (*self.tolerations, OWN_FENCE) if self.ours else self.tolerations

    @property
    def full_name(self) -> str:
        """The name as in results: `main`, or `main/sub`."""
        return _full_name(self.name, self.parent)


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """What devices of some requests have in common, or not. `number` counts through all claims."""

    number: int
    claim: int
    requests: tuple[str, ...]
    attribute: str
    distinct: bool

    def covers(self, name: str, parent: str) -> bool:
        """Whether a request, or an alternative of `parent`, is under the constraint."""
        if not self.requests:
            return True
        if parent:
            return parent in self.requests or f"{parent}/{name}" in self.requests
        return name in self.requests


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One request: a single alternative, or several in order of preference."""

    name: str
    alternatives: tuple[Alternative, ...]
    has_alternatives: bool


@dataclass(frozen=True, slots=True, eq=False)
class ClaimRequests:
    """One claim, read; whose it is, does not matter."""

    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...]
    rules: ClaimRules
    config: tuple[DeviceConfig, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What all claims of a pod ask for together; equal specifications share one."""

    claims: tuple[ClaimRequests, ...]
    alternatives: tuple[Alternative, ...]
    constraints: tuple[Constraint, ...]


def read_requests(
    claims: Sequence[ResourceClaim],
    classes: Mapping[str, DeviceClass],
    features: Features,
    expressions: Expressions,
) -> Asked:
    """Read claims. Raises `RequestInvalid` for what no node can serve (allocation-rules 2.2)."""
    reader = _Reader(classes, features, expressions)
    read = tuple(reader.claim(claim) for claim in claims)
    return Asked(read, tuple(reader.alternatives), tuple(reader.constraints))


def label_of(claim: ResourceClaim) -> str:
    """How messages name a claim."""
    metadata = claim.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def _full_name(name: str, parent: str) -> str:
    return f"{parent}/{name}" if parent else name


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an alternative stands in its claim."""

    request: int
    rank: int
    name: str
    parent: str

    @property
    def full_name(self) -> str:
        return _full_name(self.name, self.parent)


class _Reader:
    """Reads one claim after another and numbers what it finds."""

    def __init__(
        self, classes: Mapping[str, DeviceClass], features: Features, expressions: Expressions
    ) -> None:
        self._classes = classes
        self._features = features
        self._expressions = expressions
        self._claim = ""
        self._ours = False
        self.alternatives: list[Alternative] = []
        self.constraints: list[Constraint] = []
        self._claims = 0

    def claim(self, claim: ResourceClaim) -> ClaimRequests:
        self._claim = label_of(claim)
        devices = claim.spec.devices
        self._ours = has_parameters(devices) or any(
            self._expressions.is_mapped(attribute_of(constraint)) for constraint in devices.constraints
        )
        constraints = tuple(map(self._constraint, range(len(devices.constraints)), devices.constraints))
        requests = tuple(
            self._request(index, request, constraints) for index, request in enumerate(devices.requests)
        )
        self._check_size(requests)
        rules = self._expressions.of_claim(self._claim, _parameters(self._claim, devices.config))
        self._claims += 1
        return ClaimRequests(requests, constraints, rules, devices.config)

    def _constraint(self, index: int, given: DeviceConstraint) -> Constraint:
        attribute = given.match_attribute or given.distinct_attribute
        if attribute is None:
            raise self._invalid(f"constraint {index} is of no kind that is known")
        read = Constraint(
            len(self.constraints), self._claims, given.requests, attribute, given.match_attribute is None
        )
        self.constraints.append(read)
        return read

    def _request(self, index: int, given: DeviceRequest, constraints: Sequence[Constraint]) -> Request:
        if given.first_available:
            if not self._features.prioritized_list:
                raise self._invalid(f"request {given.name!r} has alternatives, and DRAPrioritizedList is off")
            subs = tuple(
                self._alternative(_Place(index, rank, sub.name, given.name), sub, constraints)
                for rank, sub in enumerate(given.first_available)
            )
            return Request(given.name, subs, has_alternatives=True)
        if given.exactly is None:
            raise self._invalid(f"request {given.name!r} is of no kind that is known")
        exact = self._alternative(_Place(index, 0, given.name, ""), given.exactly, constraints)
        return Request(given.name, (exact,), has_alternatives=False)

    def _alternative(
        self,
        place: _Place,
        given: ExactDeviceRequest | DeviceSubRequest,
        constraints: Sequence[Constraint],
    ) -> Alternative:
        where = f"request {place.full_name!r}"
        admin = given.admin_access if isinstance(given, ExactDeviceRequest) else None
        self._check_gates(where, given, admin)
        device_class = self._class_of(where, given.device_class_name)
        read = Alternative(
            number=len(self.alternatives),
            claim=self._claims,
            request=place.request,
            rank=place.rank,
            name=place.name,
            parent=place.parent,
            device_class=device_class,
            class_selectors=self._selectors(
                f"class {device_class.metadata.name!r}", device_class.spec.selectors
            ),
            selectors=self._selectors(where, given.selectors),
            wanted=self._wanted(where, given),
            admin=bool(admin),
            tolerations=given.tolerations,
            capacity=self._capacity(where, given),
            native=self._expressions.native(given.derived_attributes),
            constraints=tuple(c.number for c in constraints if c.covers(place.name, place.parent)),
            ours=self._ours,
        )
        self.alternatives.append(read)
        return read

    def _check_gates(
        self, where: str, given: ExactDeviceRequest | DeviceSubRequest, admin: bool | None
    ) -> None:
        features = self._features
        for needed, gate, is_on in (
            (given.capacity is not None, "DRAConsumableCapacity", features.consumable_capacity),
            (bool(given.derived_attributes), "DRADerivedAttributes", features.derived_attributes),
            (admin is not None, "DRAAdminAccess", features.admin_access),
        ):
            if needed and not is_on:
                raise self._invalid(f"{where} needs {gate}, which is off")

    def _class_of(self, where: str, name: str) -> DeviceClass:
        if not name:
            raise self._invalid(f"{where} names no device class")
        if name not in self._classes:
            raise self._invalid(f"{where} names device class {name!r}, which does not exist")
        return self._classes[name]

    def _selectors(self, where: str, selectors: Sequence[DeviceSelector]) -> tuple[str, ...]:
        for index, selector in enumerate(selectors):
            if selector.cel is None:
                raise self._invalid(f"{where}: selector {index} has no CEL expression")
        return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)

    def _wanted(self, where: str, given: ExactDeviceRequest | DeviceSubRequest) -> int | None:
        if given.allocation_mode == "All":
            return None
        if given.allocation_mode != "ExactCount":
            raise self._invalid(f"{where} has allocation mode {given.allocation_mode!r}, which is not known")
        return 1 if given.count is None else given.count

    def _capacity(self, where: str, given: ExactDeviceRequest | DeviceSubRequest) -> Mapping[str, Quantity]:
        if given.capacity is None:
            return {}
        try:
            return {name: Quantity.parse(raw) for name, raw in given.capacity.requests.items()}
        except ValueError as error:
            raise self._invalid(f"{where}: {error}") from error

    def _check_size(self, requests: Sequence[Request]) -> None:
        fewest = sum(min(alternative.wanted or 0 for alternative in r.alternatives) for r in requests)
        if fewest > RESULTS_LIMIT:
            raise self._invalid(f"asks for {fewest} devices, and a claim may have {RESULTS_LIMIT}")

    def _invalid(self, reason: str) -> RequestInvalid:
        return RequestInvalid(self._claim, reason)


def _parameters(
    claim: str, config: Sequence[DeviceConfig]
) -> Iterator[tuple[tuple[str, ...], ClaimParameters]]:
    """Our own parameters in a claim's configuration, each with the requests that it is for."""
    for index, entry in enumerate(config):
        if entry.opaque is None or entry.opaque.driver != PARAMETERS_DRIVER:
            continue
        try:
            yield entry.requests, ClaimParameters.model_validate(entry.opaque.parameters)
        except ValidationError as error:
            first = error.errors()[0]
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
            path = f"spec.devices.config[{index}].opaque.parameters{place}"
            raise RequestInvalid(
                claim, f"configuration for {PARAMETERS_DRIVER}: {path}: {first['msg']}"
            ) from error
