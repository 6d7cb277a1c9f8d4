"""From chosen devices to `status.allocation`: results, configuration, node selector, alignment."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from dovetail.api.claims import DeviceConfig, ResourceClaim
from dovetail.api.selection import NodeSelector, Requirement
from dovetail.core.attempt import Chosen
from dovetail.core.board import Board
from dovetail.core.features import Features
from dovetail.core.labels import NAME_FIELD
from dovetail.core.offers import NodeOffer
from dovetail.core.outcome import Alignment, Allocation, Fits, RequestInvalid
from dovetail.core.published import OfferedDevice, PublishedSlice
from dovetail.core.requests import Alternative, ClaimRequests, Constraint, label_of
from dovetail.core.search import Found
from dovetail.core.values import DeviceKey, Scalar

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Device:
    """A chosen device with everything that the result says of it."""

    alternative: Alternative
    number: int
    key: DeviceKey
    offered: OfferedDevice
    home: PublishedSlice


@dataclass(frozen=True, slots=True)
class _Picture:
    """What all results of one decision have in common."""

    board: Board
    found: Found
    offer: NodeOffer
    shows_conditions: bool
    shows_skips: bool


def fits(
    board: Board, found: Found, offer: NodeOffer, claims: Sequence[ResourceClaim], features: Features
) -> Fits:
    """What each claim gets on the node."""
    shows_conditions = features.binding_conditions and features.device_status
    picture = _Picture(board, found, offer, shows_conditions, features.optional_node_operations)
    allocations = tuple(_allocation(picture, index, claim) for index, claim in enumerate(claims))
    return Fits(offer.node, allocations, found.score)


def _allocation(picture: _Picture, index: int, claim: ResourceClaim) -> Allocation:
    board, found = picture.board, picture.found
    asked = board.asked.claims[index]
    devices = [_device(board, picture.offer, chosen) for chosen in found.chosen[index]]
    ranked = zip(asked.requests, found.ranks[index], strict=True)
    picked = [request.alternatives[rank] for request, rank in ranked]
    results = [_result(picture, claim, place, device) for place, device in enumerate(devices)]
    config = [*_class_config(picked), *_claim_config(asked.config, picked)]
    body: Json = {"devices": {"results": results} if results else {}}
    if config:
        body["devices"]["config"] = [_scoped(entry, picked) for entry in config]
    selector = _node_selector(devices, picture.offer.node, label_of(claim))
    if selector is not None:
        body["nodeSelector"] = selector
    return Allocation(body, tuple(_alignment(board, asked, devices)))


def _device(board: Board, offer: NodeOffer, chosen: Chosen) -> _Device:
    pool, position = offer.locate(chosen.device)
    return _Device(
        board.asked.alternatives[chosen.alternative],
        chosen.device,
        pool.key_of(position),
        pool.devices[position],
        pool.home_of(position),
    )


def _result(picture: _Picture, claim: ResourceClaim, place: int, device: _Device) -> Json:
    alternative, offered = device.alternative, device.offered
    result: Json = {
        "request": alternative.full_name,
        "driver": device.key.driver,
        "pool": device.key.pool,
        "device": device.key.device,
    }
    if alternative.admin:
        result["adminAccess"] = True
    if alternative.tolerations:
        result["tolerations"] = [
            given.model_dump(mode="json", by_alias=True, exclude_unset=True)
            for given in alternative.tolerations
        ]
    if picture.shows_conditions:
        if offered.binding_conditions:
            result["bindingConditions"] = list(offered.binding_conditions)
        if offered.binding_failure_conditions:
            result["bindingFailureConditions"] = list(offered.binding_failure_conditions)
    if picture.board.sharing >> device.number & 1:
        result |= _share(picture.board, claim, place, device)
    if device.home.skips and picture.shows_skips:
        result["skipNodeOperations"] = list(device.home.skips)
    return result


def _share(board: Board, claim: ResourceClaim, place: int, device: _Device) -> Json:
    share: Json = {"shareID": _share_id(claim, place, device)}
    taking = board.takings.get((device.alternative.number, device.number))
    if taking is not None and taking.amounts:
        share["consumedCapacity"] = {name: str(amount) for name, amount in taking.amounts.items()}
    return share


def _share_id(claim: ResourceClaim, place: int, device: _Device) -> str:
    """An identity that is the same for the same decision, so that a repeated write is harmless."""
    metadata, key = claim.metadata, device.key
    parts = (
        metadata.namespace,
        metadata.name,
        metadata.uid,
        metadata.resource_version,
        device.alternative.full_name,
        *(key.driver, key.pool, key.device),
        str(place),
    )
    return str(uuid5(NAMESPACE_URL, "dovetail.dev/share?" + "&".join(parts)))


# -- configuration -----------------------------------------------------------------------------------


def _class_config(picked: Sequence[Alternative]) -> Iterator[Json]:
    """The configuration of each class, once, for all requests that chose the class."""
    users: dict[str, list[str]] = {}
    for alternative in picked:
        users.setdefault(alternative.device_class.metadata.name, []).append(alternative.full_name)
    classes = {alternative.device_class.metadata.name: alternative.device_class for alternative in picked}
    for name, requests in users.items():
        for entry in classes[name].spec.config:
            yield _entry("FromClass", requests, entry)


def _claim_config(config: Iterable[DeviceConfig], picked: Sequence[Alternative]) -> Iterator[Json]:
    """The claim's own configuration, as far as it is for what was chosen."""
    for entry in config:
        if not entry.requests or any(_is_for(entry.requests, alternative) for alternative in picked):
            yield _entry("FromClaim", entry.requests, entry)


def _is_for(requests: Sequence[str], alternative: Alternative) -> bool:
    return alternative.full_name in requests or (alternative.parent or alternative.name) in requests


def _entry(source: str, requests: Sequence[str], entry: DeviceConfig) -> Json:
    rest = entry.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"requests"})
    return {"source": source, "requests": list(requests), **rest}


def _scoped(entry: Json, picked: Sequence[Alternative]) -> Json:
    """The entry without its requests where it is for all of them."""
    if all(_is_for(entry["requests"], alternative) for alternative in picked) or not entry["requests"]:
        return {name: value for name, value in entry.items() if name != "requests"}
    return entry


# -- node selector -----------------------------------------------------------------------------------


def _node_selector(devices: Iterable[_Device], node: str, claim: str) -> Json | None:
    """From where the devices can be used; None where from everywhere (allocation-rules 2.4)."""
    fields: list[Requirement] = []
    expressions: list[Requirement] = []
    for device in devices:
        reach = device.offered.reach if device.home.per_device else device.home.reach
        if reach.node or device.offered.binds_to_node:
            only = {"key": NAME_FIELD, "operator": "In", "values": [node]}
            return {"nodeSelectorTerms": [{"matchFields": [only]}]}
        if reach.selector is not None:
            _merge(reach.selector, fields, expressions, claim)
    term = {
        name: [
            requirement.model_dump(mode="json", by_alias=True, exclude_unset=True)
            for requirement in requirements
        ]
        for name, requirements in (("matchFields", fields), ("matchExpressions", expressions))
        if requirements
    }
    return {"nodeSelectorTerms": [term]} if term else None


def _merge(
    selector: NodeSelector, fields: list[Requirement], expressions: list[Requirement], claim: str
) -> None:
    terms = selector.node_selector_terms
    if len(terms) > 1:
        raise RequestInvalid(claim, f"a slice has a node selector with {len(terms)} terms, and may have one")
    for term in terms:
        _add_new(term.match_fields, fields)
        _add_new(term.match_expressions, expressions)


def _add_new(given: Iterable[Requirement], known: list[Requirement]) -> None:
    for requirement in given:
        if not any(_same(requirement, other) for other in known):
            known.append(requirement)


def _same(one: Requirement, other: Requirement) -> bool:
    return (one.key, one.operator, set(one.values)) == (other.key, other.operator, set(other.values))


# -- alignment ---------------------------------------------------------------------------------------


def _alignment(board: Board, asked: ClaimRequests, devices: Sequence[_Device]) -> Iterator[Alignment]:
    names = tuple(request.name for request in asked.requests)
    for constraint in asked.constraints:
        given = list(_given(board, constraint, devices))
        if not given:
            continue
        requests = constraint.requests or names
        if constraint.distinct:
            yield Alignment(constraint.attribute, requests, tuple(v for values in given for v in values))
        else:
            yield Alignment(constraint.attribute, requests, _common(given))


def _given(board: Board, constraint: Constraint, devices: Sequence[_Device]) -> Iterator[tuple[Scalar, ...]]:
    for device in devices:
        values = board.values.get((constraint.number, device.alternative.number))
        if values is not None:
            yield values.values[device.number].given


def _common(given: Sequence[tuple[Scalar, ...]]) -> Scalar | tuple[Scalar, ...]:
    """What all have in common: the value, or the sorted values where there are several."""
    common = set(given[0]).intersection(*map(set, given[1:]))
    values: tuple[Scalar, ...] = tuple(sorted(common, key=_order))
    return values[0] if len(values) == 1 else values


def _order(value: Scalar) -> tuple[bool, int, str]:
    return (isinstance(value, str), 0, value) if isinstance(value, str) else (False, int(value), "")
