"""Worlds with all that goes wrong in clusters as well, to be compared with kube-scheduler's answers."""

from random import Random
from typing import Any

from typing_extensions import override

from tests.support.worlds import GPU, NIC, WorldMaker

Json = dict[str, Any]

_FAILING = (
    f'device.attributes["{GPU}"].model == "a"',
    f'device.attributes["{NIC}"].speed > 3',
    f'device.capacity["{GPU}"].memory.compareTo(quantity("3Gi")) >= 0',
    'device.attributes["resource.kubernetes.io"].numaNode == 0',
    "device.nonsense",
    "noSuchVariable",
    '"text"',
)


class WildWorldMaker(WorldMaker):
    """Makes one world, with broken objects among sound ones."""

    @override
    def make(self) -> Json:
        """A world in the form of a case, with a list of nodes instead of one."""
        world = super().make()
        for one in world["slices"]:
            self._spoil(one["spec"])
        for one in world["claims"]:
            self._configure(one["spec"]["devices"])
        for one in world["classes"]:
            if self._chance(0.3):
                one["spec"]["config"] = [_opaque(GPU, {"of": one["metadata"]["name"]})]
        if self._chance(0.05):
            world["classes"][0]["spec"]["selectors"].append({"cel": {"expression": self._failing()}})
        return world

    def _failing(self) -> str:
        return self._random.choice(_FAILING)

    def _spoil(self, spec: Json) -> None:
        devices = spec.get("devices", [])
        if len(devices) > 1 and self._chance(0.03):
            devices[-1]["name"] = devices[0]["name"]
        for device in devices:
            if self._chance(0.02):
                device["attributes"]["rack"] = {}
            if self._chance(0.1):
                device["attributes"]["mode"] = self._list_value()
            if self._chance(0.02) and device.get("consumesCounters"):
                device["consumesCounters"][0]["counterSet"] = "missing"
            if self._chance(0.1):
                self._make_fractional(device)

    def _list_value(self) -> Json:
        random = self._random
        return random.choice(
            [
                {"strings": random.sample(["a", "b", "c"], 2)},
                {"string": "a"},
                {"bools": [random.random() < 0.5]},
                {"bool": True},
                {"versions": random.sample(["1.0.0", "1.1.0", "2.0.0"], 2)},
                {"version": "1.1.0"},
            ]
        )

    def _make_fractional(self, device: Json) -> None:
        device["capacity"] = {
            "memory": {
                "value": "2",
                "requestPolicy": {
                    "default": "200m",
                    "validRange": {
                        "min": "200m",
                        "max": "2",
                        "step": self._random.choice(["100m", "300m", "1"]),
                    },
                },
            },
            "lanes": {"value": self._random.choice(["0", "4"])},
        }

    @override
    def _wish(self) -> Json:
        wish = super()._wish()
        random = self._random
        if self._chance(0.05):
            wish["selectors"] = [{"cel": {"expression": self._failing()}}]
        if self._chance(0.03) and wish["allocationMode"] == "ExactCount":
            wish["count"] = random.choice([12, 20, 31, 33])
        if self._chance(0.02):
            wish["deviceClassName"] = random.choice(["missing", ""])
        if self._chance(0.02):
            wish["allocationMode"] = "Future"
        if "capacity" in wish and self._chance(0.5):
            amount = random.choice(
                ["250m", "1500m", "1", "7", "9223372036854775807", "18446744073709551616", "1u"]
            )
            wish["capacity"] = {"requests": {random.choice(["memory", "lanes", "none"]): amount}}
        return wish

    @override
    def _constraints(self, requests: list[Json]) -> list[Json]:
        constraints = super()._constraints(requests)
        if self._chance(0.2):
            kind = self._random.choice(["matchAttribute", "distinctAttribute"])
            constraints.append({kind: f"{self._random.choice([GPU, NIC])}/mode", **self._scope(requests)})
        if self._chance(0.01):
            constraints.append({"requests": [requests[0]["name"]]})
        return constraints

    @override
    def _derive(self, devices: Json) -> None:
        super()._derive(devices)
        for request in devices["requests"]:
            for wish in request.get("firstAvailable") or [request["exactly"]]:
                for derived in wish.get("derivedAttributes", ()):
                    if self._chance(0.3):
                        derived["expression"] = self._random.choice(
                            [
                                f'device.attributes["{GPU}"].model',
                                'device.attributes["resource.kubernetes.io"].numaNode',
                                f'device.driver == "{GPU}" ? ["x", "y"] : ["y", "z"]',
                                "[]",
                                'semver("1.0.0")',
                                "1.5",
                            ]
                        )

    def _configure(self, devices: Json) -> None:
        """Configuration for all requests, for one, for an alternative, and for one that is not there."""
        names = [request["name"] for request in devices["requests"]]
        names += [
            f"{request['name']}/{sub['name']}"
            for request in devices["requests"]
            for sub in request.get("firstAvailable", ())
        ]
        config = []
        for number in range(self._random.randint(0, 3)):
            scope = self._random.sample(names, self._random.randint(0, min(2, len(names))))
            config.append({**_opaque(NIC, {"number": number}), **({"requests": scope} if scope else {})})
        if config:
            devices["config"] = config


def _opaque(driver: str, parameters: Json) -> Json:
    return {"opaque": {"driver": driver, "parameters": parameters}}


def make_wild_world(random: Random, *, size: int = 1) -> Json:
    """A world by chance in which anything may be broken; `size` adds pools and devices."""
    return WildWorldMaker(random, size=size).make()
