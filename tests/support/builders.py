"""Slices, claims and inventories with defaults, so that a test writes out only the fact that it is about."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dovetail.api.claims import DeviceClass, ResourceClaim
from dovetail.api.mappings import DerivedAttribute
from dovetail.api.nodes import Node
from dovetail.api.slices import DeviceTaintRule, ResourceSlice
from dovetail.core.allocator import allocate
from dovetail.core.attributes import Mappings
from dovetail.core.budget import Budget
from dovetail.core.explain import explain
from dovetail.core.features import Features
from dovetail.core.inventory import Inventory
from dovetail.core.outcome import Cut, DoesNotFit, Fits

Json = dict[str, Any]

GPU, NIC = "gpu.example.com", "nic.example.com"
NUMA = "resource.kubernetes.io/numaNode"
_GATES = (
    "DRAAdminAccess",
    "DRAPrioritizedList",
    "DRADeviceTaints",
    "DRADeviceTaintRules",
    "DRAConsumableCapacity",
    "DRAFractionalCapacityRange",
    "DRAPartitionableDevices",
    "DRADeviceBindingConditions",
    "DRAResourceClaimDeviceStatus",
    "DRAListTypeAttributes",
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAOptionalNodeOperations",
)
ALL_FEATURES = Features.none().with_gates(dict.fromkeys(_GATES, True))


def typed(value: Any) -> Json:
    """A value as attributes carry it: by its Python type, lists included."""
    names = {bool: "bool", int: "int", str: "string"}
    if isinstance(value, dict):
        return value
    if isinstance(value, list):
        return {f"{names[type(value[0])]}s": value}
    return {names[type(value)]: value}


def device(name: str, attributes: Mapping[str, Any] | None = None, **more: Any) -> Json:
    """A device; `numa=1` stands for the standard attribute, other fields are those of the API."""
    given = dict(attributes or {})
    if "numa" in more:
        given[NUMA] = more.pop("numa")
    return {"name": name, "attributes": {key: typed(value) for key, value in given.items()}, **more}


def slice_of(
    devices: Sequence[Json],
    *,
    driver: str = GPU,
    node: str | None = "node",
    pool: str = "pool",
    name: str = "",
    count: int = 1,
    generation: int = 1,
    **more: Any,
) -> Json:
    """A slice of one driver on one node; with `node=None`, `more` says where it reaches."""
    where = {"nodeName": node} if node else {}
    return {
        "metadata": {"name": name or f"{driver}-{node}-{pool}"},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            "devices": list(devices),
            **where,
            **more,
        },
    }


def request(name: str = "r", count: int = 1, *, driver: str = GPU, **more: Any) -> Json:
    """A request for devices of one driver's class."""
    exactly = {"deviceClassName": driver, "allocationMode": "ExactCount", "count": count, **more}
    return {"name": name, "exactly": exactly}


def cel(expression: str) -> Json:
    """Selectors with one expression."""
    return {"selectors": [{"cel": {"expression": expression}}]}


def parameters(*rules: Json, requests: tuple[str, ...] = (), **more: Any) -> Json:
    """Our own parameters in the configuration of a claim."""
    body = {
        "apiVersion": "dovetail.dev/v1alpha1",
        "kind": "ClaimParameters",
        "derivedAttributes": list(rules),
        **more,
    }
    return {"requests": list(requests), "opaque": {"driver": "dovetail.dev", "parameters": body}}


def claim(
    *requests: Json,
    match: str | None = None,
    distinct: str | None = None,
    constraints: Iterable[Json] = (),
    name: str = "claim",
    **more: Any,
) -> ResourceClaim:
    """A claim; `match` and `distinct` are constraints over all requests."""
    given = list(constraints)
    if match:
        given.append({"matchAttribute": match})
    if distinct:
        given.append({"distinctAttribute": distinct})
    devices = {"requests": list(requests), "constraints": given, **more}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    return ResourceClaim.parse({"metadata": metadata, "spec": {"devices": devices}})


def allocated(given: ResourceClaim, outcome: Fits, index: int = 0) -> ResourceClaim:
    """The claim with what it got."""
    body = given.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return ResourceClaim.parse({**body, "status": {"allocation": dict(outcome.allocations[index].body)}})


def held(*keys: tuple[str, str, str], name: str = "holder", **more: Any) -> ResourceClaim:
    """A claim that holds devices (driver, pool, device)."""
    results = [{"request": "r", "driver": d, "pool": p, "device": n, **more} for d, p, n in keys]
    metadata = {"name": name, "namespace": "default"}
    return ResourceClaim.parse(
        {"metadata": metadata, "status": {"allocation": {"devices": {"results": results}}}}
    )


def device_class(driver: str, *expressions: str) -> DeviceClass:
    """The class that is called like its driver, for its devices."""
    selectors = [f'device.driver == "{driver}"', *expressions]
    spec = {"selectors": [{"cel": {"expression": expression}} for expression in selectors]}
    return DeviceClass.parse({"metadata": {"name": driver}, "spec": spec})


def mapping(attribute: str, rules: Mapping[str, str], **more: Any) -> DerivedAttribute:
    """A mapping with one expression per driver."""
    spec = {
        "attribute": attribute,
        "rules": [{"driver": driver, "expression": expression} for driver, expression in rules.items()],
        **more,
    }
    return DerivedAttribute.parse({"metadata": {"name": attribute.replace("/", "-").lower()}, "spec": spec})


def inventory(
    *slices: Json,
    features: Features = ALL_FEATURES,
    mappings: Iterable[DerivedAttribute] = (),
    holders: Iterable[ResourceClaim] = (),
    nodes: Iterable[Json] = (),
    taint_rules: Iterable[Json] = (),
) -> Inventory:
    """An inventory with these slices, and a class for each of their drivers."""
    made = Inventory(features, Mappings.of(mappings, shipped=False))
    for node in nodes:
        made.put_node(Node.parse(node))
    for published in slices:
        made.put_slice(ResourceSlice.parse(published))
    for driver in {published["spec"]["driver"] for published in slices} | {GPU, NIC}:
        made.put_class(device_class(driver))
    for rule in taint_rules:
        made.put_taint_rule(DeviceTaintRule.parse(rule))
    for holder in holders:
        made.put_claim(holder)
    return made


def ask(given: Inventory, *claims: ResourceClaim, node: str = "node") -> Fits | DoesNotFit | Cut:
    """The answer for these claims on one node, without a limit on the work."""
    return allocate(given, claims, node, budget=Budget.unlimited())


def names(outcome: Fits | DoesNotFit | Cut, index: int = 0) -> list[str]:
    """The devices that a claim got, by name."""
    assert isinstance(outcome, Fits), outcome
    return [result["device"] for result in outcome.allocations[index].body["devices"].get("results", ())]


def sentence(outcome: Fits | DoesNotFit | Cut) -> str:
    """Why nothing fits."""
    assert isinstance(outcome, DoesNotFit), outcome
    return explain(outcome)
