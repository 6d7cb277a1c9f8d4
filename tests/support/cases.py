"""Allocation cases: a file's objects as an inventory, and the answer that the file expects."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dovetail.api.claims import DeviceClass, ResourceClaim
from dovetail.api.nodes import Node
from dovetail.api.slices import ResourceSlice
from dovetail.core.features import GATES, Features
from dovetail.core.inventory import Inventory

Json = dict[str, Any]

BOTH = "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus"
"""Two gates that are one switch in cases."""


@dataclass(frozen=True, slots=True)
class AllocationCase:
    """One case, as the file has it."""

    name: str
    body: Mapping[str, Any]

    @property
    def node(self) -> str:
        """The node to allocate for."""
        return str(self.body["node"]["metadata"]["name"])

    def claims(self) -> list[ResourceClaim]:
        """The claims to allocate together."""
        return [ResourceClaim.parse(claim) for claim in self.body["claims"]]

    def inventory(self, nodes: Sequence[Json] = ()) -> Inventory:
        """What the cluster offers and what is taken, with the case's node, or with these."""
        inventory = Inventory(features_of(self.body["features"]))
        for node in nodes or [self.body["node"]]:
            inventory.put_node(Node.parse(node))
        for device_class in self.body["classes"]:
            inventory.put_class(DeviceClass.parse(device_class))
        for published in _named_apart(self.body["slices"]):
            inventory.put_slice(ResourceSlice.parse(published))
        for holder in holders_of(self.body["allocated"]):
            inventory.put_claim(ResourceClaim.parse(holder))
        return inventory


def read_allocation_cases(folder: Path) -> Iterator[AllocationCase]:
    """Every allocation case in a folder and its subfolders."""
    for path in sorted(folder.rglob("*.json")):
        body = json.loads(path.read_text())
        if isinstance(body, dict) and {"claims", "slices", "expect"} <= body.keys():
            yield AllocationCase(body.get("name", path.stem), body)


def _named_apart(slices: Sequence[Json]) -> Iterator[Json]:
    """The slices with names that differ, as they do in a cluster: a repeated name gets a longer one."""
    seen: set[str] = set()
    for number, published in enumerate(slices):
        metadata = dict(published["metadata"])
        if metadata["name"] in seen:
            metadata["name"] += f"~{number:03}"
        seen.add(metadata["name"])
        yield {**published, "metadata": metadata}


def features_of(names: Sequence[str]) -> Features:
    """The gates of a case; all others are off."""
    gates = {gate for name in names for gate in name.split("+")}
    if "DRADeviceTaints" in gates:
        gates.add("DRADeviceTaintRules")
    return Features.none().with_gates({gate: True for gate in gates if gate in GATES})


def holders_of(allocated: Mapping[str, Sequence[Json]]) -> Iterator[Json]:
    """Claims that hold what a case says is in use."""
    consumed = {_device(entry): entry for entry in allocated.get("consumedCapacity") or ()}
    shares = [dict(entry) for entry in allocated.get("shares") or ()]
    known = {_device(entry) for entry in shares}
    shares += [{**entry, "shareID": "unknown"} for key, entry in consumed.items() if key not in known]
    for share in shares:
        entry = consumed.pop(_device(share), {})
        amounts = entry.get("consumed") or entry.get("consumedCapacity") or {}
        yield _holder(share, shareID=share["shareID"], consumedCapacity=amounts)
    for entry in allocated.get("devices") or ():
        yield _holder(entry)


def _device(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return (entry["driver"], entry["pool"], entry["device"])


def _holder(entry: Mapping[str, Any], **share: Any) -> Json:
    driver, pool, device = _device(entry)
    result = {"request": "r", "driver": driver, "pool": pool, "device": device, **share}
    name = "-".join(("holder", driver, pool, device, str(share.get("shareID", ""))))
    return {"metadata": {"name": name}, "status": {"allocation": {"devices": {"results": [result]}}}}
