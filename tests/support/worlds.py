"""Small worlds by chance, as case files have them: all features mixed, nothing that an API server refuses."""

from collections.abc import Mapping
from random import Random
from typing import Any

Json = dict[str, Any]

GPU, NIC = "gpu.example.com", "nic.example.com"

GATES = (
    "DRAAdminAccess",
    "DRAPrioritizedList",
    "DRADeviceTaints",
    "DRAConsumableCapacity",
    "DRAFractionalCapacityRange",
    "DRAPartitionableDevices",
    "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus",
    "DRAListTypeAttributes",
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAOptionalNodeOperations",
)

SELECTORS: Mapping[str, Any] = {
    f'device.driver == "{GPU}"': lambda device: device["driver"] == GPU,
    f'device.driver == "{NIC}"': lambda device: device["driver"] == NIC,
    f'device.attributes["{GPU}"].?model.orValue("") == "a"': lambda device: (
        device["driver"] == GPU and device["attributes"].get("model", {}).get("string") == "a"
    ),
    "device.allowMultipleAllocations": lambda device: bool(device.get("allowMultipleAllocations")),
    "!device.allowMultipleAllocations": lambda device: not device.get("allowMultipleAllocations"),
}
"""Selectors with what they mean, so that a judge needs no CEL."""

DERIVED: Mapping[str, Any] = {
    f'device.driver == "{GPU}" ? 0 : 1': lambda device: {"int": 0 if device["driver"] == GPU else 1},
    '"everywhere"': lambda _: {"string": "everywhere"},
    f'device.attributes["{GPU}"].?model.orValue("none")': lambda device: (
        device["attributes"].get("model", {"string": "none"})
        if device["driver"] == GPU
        else {"string": "none"}
    ),
}
"""Native derived attributes with what they mean."""


class WorldMaker:
    """Makes one world. Gates that are off still find objects that need them, as on a real cluster."""

    def __init__(self, random: Random, *, size: int = 1) -> None:
        self._random = random
        self._size = size
        self._rich = {gate for gate in GATES if self._chance(0.5)}
        self._nodes: list[Json] = []
        self._slices: list[Json] = []
        self._published: list[Json] = []

    def make(self) -> Json:
        """A world in the form of a case, with a list of nodes instead of one."""
        self._nodes = [self._node(index) for index in range(self._random.choice([1, 1, 2, 3]))]
        for index in range(self._random.randint(2, 2 + 2 * self._size)):
            self._pool(index)
        return {
            "features": self._features(),
            "nodes": self._nodes,
            "classes": [
                _class("gpu", f'device.driver == "{GPU}"'),
                _class("nic", f'device.driver == "{NIC}"'),
                _class("any"),
            ],
            "slices": self._slices,
            "allocated": self._allocated(),
            "claims": [self._claim(index) for index in range(self._random.choice([1, 1, 1, 2, 2, 3]))],
        }

    def _features(self) -> list[str]:
        """The gates that are on: a few are off although objects need them, where 1.37 has a rule for that."""
        kept = ("DRAConsumableCapacity", "DRAOptionalNodeOperations")
        return [gate for gate in GATES if gate in self._rich and (gate in kept or not self._chance(0.05))]

    # -- nodes and slices ------------------------------------------------------------------------

    def _node(self, index: int) -> Json:
        node: Json = {
            "metadata": {"name": f"node-{index}", "labels": {"zone": self._random.choice(["z1", "z2"])}}
        }
        if self._chance(0.5):
            node["status"] = {"declaredFeatures": ["DRAOptionalNodeOperations"]}
        return node

    def _pool(self, index: int) -> None:
        random = self._random
        driver = random.choice([GPU, NIC])
        name = random.choice(["pool", f"pool-{index}"])
        if any(s["spec"]["driver"] == driver and s["spec"]["pool"]["name"] == name for s in self._slices):
            name = f"other-{index}"
        counters = "DRAPartitionableDevices" in self._rich and self._chance(0.5)
        amount = random.randint(1, 2)
        count = amount + counters + (self._chance(0.05))
        pool = {"name": name, "generation": 2, "resourceSliceCount": count}
        reach = self._reach()
        for number in range(amount):
            devices = [
                self._device(driver, f"dev-{number}-{place}", counters=counters, per_device="per" in reach)
                for place in range(random.randint(1, 2 + self._size))
            ]
            spec = {"driver": driver, "pool": pool, "devices": devices, **self._where(reach)}
            if "DRAOptionalNodeOperations" in self._rich and self._chance(0.2):
                spec["skipNodeOperations"] = ["NodePrepareResources"]
            self._add_slice(spec)
            self._published += [
                {"driver": driver, "pool": name, "device": device["name"], "of": device} for device in devices
            ]
        if counters:
            self._add_slice(
                {"driver": driver, "pool": pool, "sharedCounters": self._counter_sets(), **self._where(reach)}
            )
        if self._chance(0.1):
            stale = {"name": name, "generation": 1, "resourceSliceCount": 1}
            devices = [{"name": "old", "attributes": {}}]
            self._add_slice(
                {"driver": driver, "pool": stale, "devices": devices, **self._where({"all": True})}
            )

    def _add_slice(self, spec: Json) -> None:
        name = f"slice-{self._random.randint(0, 99):02}-{len(self._slices)}"
        self._slices.append({"metadata": {"name": name}, "spec": spec})

    def _reach(self) -> Json:
        random = self._random
        kind = random.choice(["node", "node", "node", "node", "zone", "all", "per"])
        if kind == "per" and "DRAPartitionableDevices" not in self._rich:
            kind = "node"
        return {kind: random.choice(self._nodes)["metadata"]["name"] if kind == "node" else True}

    def _where(self, reach: Json) -> Json:
        if "node" in reach:
            return {"nodeName": reach["node"]}
        if "zone" in reach:
            return {"nodeSelector": _zone("z1")}
        return {"perDeviceNodeSelection": True} if "per" in reach else {"allNodes": True}

    def _counter_sets(self) -> list[Json]:
        return [
            {
                "name": name,
                "counters": {
                    "memory": {"value": f"{self._random.randint(2, 5)}Gi"},
                    "slots": {"value": str(self._random.randint(1, 4))},
                },
            }
            for name in ("set-0", "set-1")
        ]

    # -- devices ---------------------------------------------------------------------------------

    def _device(self, driver: str, name: str, *, counters: bool, per_device: bool) -> Json:
        random = self._random
        device: Json = {"name": name, "attributes": self._attributes(driver)}
        if self._chance(0.5) or ("DRAConsumableCapacity" in self._rich and self._chance(0.5)):
            self._add_capacity(device)
        if counters and self._chance(0.8):
            device["consumesCounters"] = [
                self._consumption(name) for name in random.sample(["set-0", "set-1"], random.randint(1, 2))
            ]
        if per_device:
            device |= random.choice(
                [
                    {"nodeName": random.choice(self._nodes)["metadata"]["name"]},
                    {"allNodes": True},
                    {"nodeSelector": _zone("z2")},
                ]
            )
        if self._chance(0.15):
            device["taints"] = [
                {
                    "key": "broken",
                    "value": random.choice(["yes", "no"]),
                    "effect": random.choice(["NoSchedule", "NoExecute", "None"]),
                }
            ]
        if self._chance(0.1):
            device["bindingConditions"] = ["attached"]
            device["bindingFailureConditions"] = ["failed"]
            device["bindsToNode"] = self._chance(0.5)
        return device

    def _attributes(self, driver: str) -> Json:
        random = self._random
        attributes: Json = {}
        if self._chance(0.85):
            attributes["model"] = {"string": random.choice(["a", "b"])}
        if self._chance(0.9):
            attributes["resource.kubernetes.io/numaNode"] = self._numa()
        if self._chance(0.5):
            name = random.choice(["shared.example.com/rack", "rack"])
            attributes[name] = random.choice(
                [{"string": "0"}, {"string": "1"}, {"int": 0}, {"version": "1.0.0"}]
            )
        return attributes

    def _numa(self) -> Json:
        random = self._random
        if "DRAListTypeAttributes" in self._rich and self._chance(0.5):
            return {"ints": random.sample([0, 1, 2], random.randint(1, 2))}
        return {"int": random.randint(0, 1)}

    def _add_capacity(self, device: Json) -> None:
        random = self._random
        value = random.randint(2, 6)
        capacity: Json = {"value": f"{value}Gi"}
        device["capacity"] = {"memory": capacity}
        if "DRAConsumableCapacity" not in self._rich or self._chance(0.3):
            return
        device["allowMultipleAllocations"] = True
        if self._chance(0.2):
            del device["capacity"]
            return
        capacity |= random.choice(
            [
                {},
                {"requestPolicy": {"default": "1Gi"}},
                {"requestPolicy": {"default": "1Gi", "validValues": ["1Gi", "2Gi"]}},
                {"requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "max": f"{value}Gi"}}},
                {"requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}},
            ]
        )

    def _consumption(self, counter_set: str) -> Json:
        random = self._random
        counters = random.choice(
            [
                {"memory": {"value": "1Gi"}},
                {"memory": {"value": "2Gi"}, "slots": {"value": "1"}},
                {"slots": {"value": "1"}},
            ]
        )
        consumption: Json = {"counterSet": counter_set, "counters": counters}
        if "DRADeviceCompatibilityGroups" in self._rich and self._chance(0.5):
            consumption["compatibilityGroups"] = random.sample(["x", "y", "z"], random.randint(1, 2))
        return consumption

    # -- what is in use --------------------------------------------------------------------------

    def _allocated(self) -> Json:
        devices: list[Json] = []
        shares: list[Json] = []
        consumed: list[Json] = []
        for entry in self._published:
            place = {name: entry[name] for name in ("driver", "pool", "device")}
            if not self._chance(0.15):
                continue
            if not entry["of"].get("allowMultipleAllocations"):
                devices.append(place)
                continue
            shares.append({**place, "shareID": f"00000000-0000-0000-0000-0000000000{len(shares):02}"})
            if "capacity" in entry["of"]:
                consumed.append({**place, "consumed": {"memory": "1Gi"}})
        return {"devices": devices, "shares": shares, "consumedCapacity": consumed}

    # -- claims ----------------------------------------------------------------------------------

    def _claim(self, index: int) -> Json:
        requests = [self._request(number) for number in range(self._random.choice([1, 1, 2]))]
        devices: Json = {"requests": requests, "constraints": self._constraints(requests)}
        self._derive(devices)
        return {"metadata": {"name": f"claim-{index}"}, "spec": {"devices": devices}}

    def _request(self, number: int) -> Json:
        name = f"req-{number}"
        if "DRAPrioritizedList" in self._rich and self._chance(0.35):
            subs = [{"name": f"sub-{place}", **self._wish()} for place in range(self._random.randint(1, 3))]
            return {"name": name, "firstAvailable": subs}
        wish = self._wish()
        if "DRAAdminAccess" in self._rich and self._is_plain() and self._chance(0.2):
            wish["adminAccess"] = True
        return {"name": name, "exactly": wish}

    def _is_plain(self) -> bool:
        """Whether nothing can be paid for: administrators pay upstream, and do not here (rules 2.15)."""
        return not any(
            entry["of"].get("consumesCounters") or entry["of"].get("allowMultipleAllocations")
            for entry in self._published
        )

    def _wish(self) -> Json:
        random = self._random
        wish: Json = {"deviceClassName": random.choice(["gpu", "nic", "any"])}
        if self._chance(0.12):
            wish["allocationMode"] = "All"
        else:
            wish |= {"allocationMode": "ExactCount", "count": random.choice([1, 1, 1, 1, 2, 2, 3])}
        if self._chance(0.25):
            known = list(SELECTORS)
            if "DRAConsumableCapacity" not in self._rich:
                known = known[:3]
            wish["selectors"] = [{"cel": {"expression": random.choice(known)}}]
        if self._chance(0.2):
            wish["tolerations"] = [self._toleration()]
        if "DRAConsumableCapacity" in self._rich and self._chance(0.25):
            amount = random.choice(["500Mi", "1Gi", "1500Mi", "2Gi", "3Gi", "0"])
            wish["capacity"] = {"requests": {"memory": amount}}
        return wish

    def _toleration(self) -> Json:
        toleration = self._random.choice(
            [
                {"operator": "Exists"},
                {"key": "broken", "operator": "Exists"},
                {"key": "broken", "value": "yes"},
            ]
        )
        if self._chance(0.3):
            toleration = {**toleration, "effect": self._random.choice(["NoSchedule", "NoExecute"])}
        return toleration

    def _constraints(self, requests: list[Json]) -> list[Json]:
        random = self._random
        constraints = []
        for _ in range(random.choice([0, 0, 1, 1, 2])):
            attribute = random.choice(
                ["resource.kubernetes.io/numaNode"] * 3
                + ["shared.example.com/rack", f"{GPU}/model", f"{GPU}/rack"]
            )
            kind = random.choice(["matchAttribute", "matchAttribute", "distinctAttribute"])
            constraints.append({kind: attribute, **self._scope(requests)})
        return constraints

    def _scope(self, requests: list[Json]) -> Json:
        if self._chance(0.6):
            return {}
        request = self._random.choice(requests)
        subs = request.get("firstAvailable")
        if subs and self._chance(0.5):
            return {"requests": [f"{request['name']}/{self._random.choice(subs)['name']}"]}
        return {"requests": [request["name"]]}

    def _derive(self, devices: Json) -> None:
        """Turn the attribute of a constraint into a derived one of every request."""
        if "DRADerivedAttributes" not in self._rich or not devices["constraints"] or self._chance(0.6):
            return
        constraint = devices["constraints"][0]
        kind = "matchAttribute" if "matchAttribute" in constraint else "distinctAttribute"
        constraint[kind] = "derived/value"
        for request in devices["requests"]:
            for wish in request.get("firstAvailable") or [request["exactly"]]:
                if self._chance(0.85):
                    expression = self._random.choice(list(DERIVED))
                    wish["derivedAttributes"] = [{"name": "derived/value", "expression": expression}]

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability


def _class(name: str, *expressions: str) -> Json:
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors}}


def _zone(zone: str) -> Json:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
    return {"nodeSelectorTerms": [term]}


def make_world(random: Random, *, size: int = 1) -> Json:
    """A world by chance; `size` adds pools and devices."""
    return WorldMaker(random, size=size).make()
