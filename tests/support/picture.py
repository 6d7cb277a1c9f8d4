"""What one node sees of a world, and what is in use: read from JSON, without the allocator."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.support.meanings import amount

Json = Mapping[str, Any]
Key = tuple[str, str, str]


class Picture:
    """The devices that a node reaches, in the order of trying; slices, counters and use of their pools."""

    def __init__(self, world: Json, node: Json) -> None:
        self.gates = {gate for name in world["features"] for gate in name.split("+")}
        self.claims = world["claims"]
        self.classes = {entry["metadata"]["name"]: entry for entry in world["classes"]}
        self.node = node
        self.sharing_on = "DRAConsumableCapacity" in self.gates
        self._slices = world["slices"]
        self._read_use(world["allocated"])
        self.devices: dict[Key, Json] = {}
        self.home: dict[Key, Json] = {}
        self.sets: dict[tuple[str, str], dict[str, dict[str, Fraction]]] = {}
        self.unusable = False
        self._read_pools()

    def _read_use(self, allocated: Json) -> None:
        self.held = {_key(entry) for entry in allocated["devices"]}
        self.shared = Counter(_key(entry) for entry in allocated["shares"])
        self.consumed: dict[Key, dict[str, Fraction]] = {
            _key(entry): {name: amount(raw) for name, raw in entry["consumed"].items()}
            for entry in allocated["consumedCapacity"]
        }

    def _read_pools(self) -> None:
        pools: dict[tuple[str, str], list[Json]] = defaultdict(list)
        for entry in self._slices:
            pools[entry["spec"]["driver"], entry["spec"]["pool"]["name"]].append(entry)
        offered = [(key, self._offer(slices)) for key, slices in sorted(pools.items())]
        with_conditions = [
            any(
                device.get("bindingConditions") for one in slices for device in one["spec"].get("devices", ())
            )
            for _, slices in offered
        ]
        for wanted in (False, True):
            for (key, slices), conditions in zip(offered, with_conditions, strict=True):
                if conditions == wanted:
                    self._take_in(key, slices)

    def _offer(self, slices: Sequence[Json]) -> list[Json]:
        """The slices of the pool that count for the node, by name; none where it cannot be used."""
        readable = [one for one in slices if self._readable(one)]
        relevant = [one for one in readable if self._relevant(one)]
        if not relevant:
            return []
        newest = max(_generation(one) for one in relevant)
        kept = [one for one in relevant if _generation(one) == newest]
        wanted = kept[0]["spec"]["pool"]["resourceSliceCount"]
        everything = list(kept)
        if len(kept) != wanted:
            if any(_generation(one) > newest for one in slices):
                return []
            everything = [one for one in slices if _generation(one) == newest and self._groups_readable(one)]
            if len(everything) != wanted:
                self.unusable = True
                return []
        key = (kept[0]["spec"]["driver"], kept[0]["spec"]["pool"]["name"])
        self.sets[key] = self._sets(everything)
        return sorted(
            (one for one in kept if "devices" in one["spec"]), key=lambda one: one["metadata"]["name"]
        )

    def _readable(self, one: Json) -> bool:
        spec = one["spec"]
        if "DRAPartitionableDevices" not in self.gates and (
            spec.get("perDeviceNodeSelection") is not None or spec.get("sharedCounters")
        ):
            return False
        return self._groups_readable(one)

    def _groups_readable(self, one: Json) -> bool:
        return "DRADeviceCompatibilityGroups" in self.gates or not any(
            part.get("compatibilityGroups")
            for device in one["spec"].get("devices", ())
            for part in device.get("consumesCounters", ())
        )

    def _relevant(self, one: Json) -> bool:
        spec = one["spec"]
        if spec.get("perDeviceNodeSelection"):
            return any(self.reached(device) for device in spec.get("devices", ()))
        return self.reached(spec)

    def reached(self, where: Json) -> bool:
        """Whether the node is in reach of a slice or device."""
        if where.get("nodeName"):
            return bool(where["nodeName"] == self.node["metadata"]["name"])
        if where.get("allNodes"):
            return True
        if "nodeSelector" not in where:
            return False
        labels = self.node["metadata"].get("labels", {})
        (term,) = where["nodeSelector"]["nodeSelectorTerms"]
        return all(labels.get(r["key"]) in r["values"] for r in term["matchExpressions"])

    def _sets(self, slices: Sequence[Json]) -> dict[str, dict[str, Fraction]]:
        if "DRAPartitionableDevices" not in self.gates:
            return {}
        return {
            entry["name"]: {name: amount(counter["value"]) for name, counter in entry["counters"].items()}
            for one in slices
            for entry in one["spec"].get("sharedCounters", ())
        }

    def _take_in(self, pool: tuple[str, str], slices: Sequence[Json]) -> None:
        for one in slices:
            for device in one["spec"]["devices"]:
                key = (*pool, device["name"])
                self.devices[key] = {**device, "driver": pool[0]}
                self.home[key] = one

    def all_devices(self, pool: tuple[str, str]) -> list[Key]:
        """Every device of the pool's newest generation, whatever node it is for."""
        newest = max(_generation(one) for one in self._pool_slices(pool))
        return [
            (*pool, device["name"])
            for one in self._pool_slices(pool)
            if _generation(one) == newest
            for device in one["spec"].get("devices", ())
        ]

    def _pool_slices(self, pool: tuple[str, str]) -> list[Json]:
        return [one for one in self._slices if (one["spec"]["driver"], one["spec"]["pool"]["name"]) == pool]

    def body_of(self, key: Key) -> Json:
        """A device as its driver publishes it."""
        for one in self._pool_slices(key[:2]):
            for device in one["spec"].get("devices", ()):
                if device["name"] == key[2]:
                    return dict(device)
        raise KeyError(key)


def _generation(one: Json) -> int:
    return int(one["spec"]["pool"]["generation"])


def _key(entry: Json) -> Key:
    return (entry["driver"], entry["pool"], entry["device"])
