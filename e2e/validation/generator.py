"""Random objects around the borders of what the API server takes.

A valid object is made first; then a few mutations, most of them led by the fields that Kubernetes knows,
bring it to a limit, over it, or out of shape.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from e2e.schemas import FILE

Body = dict[str, Any]

LABELLED: Final = "admin"
"""The namespace whose claims may ask for admin access."""

NAMES: Final = ("a", "gpu", "nic", "a-1", "0", "x" * 63)
ODD_NAMES: Final = (*("", "A", "-a", "a-", "a.b", "a_b", "x" * 64, "a/b", "gpu/a", "gpu/a/b"), "ä", "a b")
DRIVERS: Final = ("gpu.example.com", "dra.net", "d", "GPU.example.com", "a" * 63)
ODD_DRIVERS: Final = ("", "a" * 64, "a..b", "-a.b", "a/b", "a_b")
ATTRIBUTES: Final = ("dovetail.dev/numaNode", "gpu.example.com/a", "d/b_1", "a.b/" + "x" * 32)
ODD_ATTRIBUTES: Final = (
    "",
    "numaNode",
    "/a",
    "a/",
    "a/b/c",
    "A.b/c",
    "a/b-c",
    "a/" + "x" * 33,
    "a" * 64 + "/b",
)
KEYS: Final = ("k", "example.com/k", "A_b.c", "k" * 63)
ODD_KEYS: Final = ("", "-k", "k-", "a/b/c", "/k", "k" * 64, "A.b/k", "ex ample/k")
QUANTITIES: Final = ("1", "2", "10", "1Gi", "2Gi", "500m", 4, "0", "3", "1.5", "8", "1e3")
ODD_QUANTITIES: Final = (
    "-1",
    "1n",
    "",
    "x",
    "1 Gi",
    "99999999999999999999",
    "18446744073709551616",
    "1.5Gi",
    True,
)
INTEGERS: Final = (0, 1, 2, -1, 31, 32, 33, 2**31, 2**63 - 1, 2**63, 1.5, 1.0, "1")
VERSIONS: Final = ("1.0.0", "0.1.2-rc.1", "1.0.0+b.5", "1.0", "01.0.0", "1.0.0-", "v1.0.0", "1.2.3-01", "")
EXPRESSIONS: Final = (
    "true",
    'device.driver == "gpu.example.com"',
    'device.attributes["gpu.example.com"].a == 1',
    'device.attributes["d"].?b.orValue(0) > 1',
    'device.capacity["d"].memory.compareTo(quantity("1Gi")) >= 0',
    "device.allowMultipleAllocations",
    'device.attributes["d"].b.includes("x")',
    'device.name == "a"',
    "1",
    '"a"',
    "device.driver",
    "device.attributes",
    "",
    "device.",
    "nothing",
    "[1, 2].all(x, x > 0)",
    'device.attributes["d"].b',
    'cel.bind(x, device.attributes["d"], has(x.b))',
    "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a + b + c > 0)))",
    "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, a == b || b == c)))",
    "device.attributes.all(d, device.attributes[d].all(a, device.attributes.all(e, d == e || a == e)))",
    "lists.range(1000).all(a, lists.range(1000).all(b, a < b))",
    "lists.range(100).all(a, lists.range(100).all(b, a < b))",
    'device.driver.matches("a*")',
    "true || " * 300 + "true",
    "x" * 10_241,
    '"' + "x" * 10_238 + '" == ""',
)
TIMES: Final = (
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.5+01:00",
    "2026-01-01",
    "",
    "2026-13-01T00:00:00Z",
)
EFFECTS: Final = ("NoSchedule", "NoExecute", "None", "PreferNoSchedule", "", "noSchedule")
STRINGS: Final = ("", "x", "x" * 64, "x" * 65, "ä" * 32, "ä" * 33)

_WORDS: Final[dict[str, tuple[Any, ...]]] = {
    "allocationMode": ("ExactCount", "All", "", "all"),
    "counterSet": (*NAMES, *ODD_NAMES),
    "deviceClassName": ("gpu.example.com", "a", "", "A", "a/b"),
    "distinctAttribute": (*ATTRIBUTES, *ODD_ATTRIBUTES),
    "driver": (*DRIVERS, *ODD_DRIVERS),
    "effect": EFFECTS,
    "expression": EXPRESSIONS,
    "extendedResourceName": (
        "example.com/gpu",
        "gpu",
        "kubernetes.io/gpu",
        "a/b/c",
        "requests.a/b",
        "a/" + "x" * 64,
    ),
    "key": (*KEYS, *ODD_KEYS, "metadata.name"),
    "matchAttribute": (*ATTRIBUTES, *ODD_ATTRIBUTES),
    "nodeName": ("n1", "n-1.example.com", "", "N1", "n" * 254),
    "operator": ("Exists", "Equal", "", "In", "NotIn", "DoesNotExist", "Gt", "equal"),
    "partitionTypeAttribute": (*ATTRIBUTES, *ODD_ATTRIBUTES),
    "pool": ("n1", "a/b", "", "a//b", "A", "n" * 254),
    "skipNodeOperations": ("*", "NodePrepareResources", "NodeUnprepareResources", "x"),
    "string": STRINGS,
    "strings": STRINGS,
    "version": VERSIONS,
    "versions": VERSIONS,
    "values": ("a", "", "-", "x" * 64, "1"),
    "value": ("a", "", "-", "x" * 64),
    "bindingConditions": (*KEYS, *ODD_KEYS),
    "bindingFailureConditions": ("f", *KEYS, *ODD_KEYS),
    "requests": ("gpu", "nic", "gpu/a", "gpu/b", *ODD_NAMES),
}
_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "attributes": ("a", "b", *ATTRIBUTES, *ODD_ATTRIBUTES),
    "capacity": ("memory", "cores", *ATTRIBUTES, *ODD_ATTRIBUTES),
    "requests": ("memory", "gpu.example.com/cores"),
    "counters": (*NAMES, *ODD_NAMES),
    "labels": (*KEYS, *ODD_KEYS),
    "annotations": (*KEYS, *ODD_KEYS),
    "nodeAllocatableResources": ("cpu", "memory", "hugepages-2Mi", "pods", "example.com/gpu"),
}
KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice", "DeviceTaintRule")

_found = json.loads(FILE.read_text())
_TYPES: Final[dict[str, dict[str, str]]] = _found["types"]


class Generator:
    """Objects from one source of chance."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._number = 0

    def object(self) -> tuple[Body, str]:
        """An object, valid as often as not, and the namespace where it is to be created."""
        kind = self._random.choice(KINDS)
        self._number += 1
        body = getattr(self, f"_{kind.lower()}")()
        namespace = body["metadata"].get("namespace", "")
        root = f"resource.v1.{kind}"
        for _ in range(self._random.choice((0, 0, 1, 1, 1, 2, 3))):
            self._mutate(body, root)
        if isinstance(metadata := body.get("metadata"), dict) and metadata.get("namespace", "") != namespace:
            metadata["namespace"] = namespace
        return {**body, "apiVersion": "resource.k8s.io/v1", "kind": kind}, namespace

    def _metadata(self) -> Body:
        return {"name": f"o-{self._number}"}

    def _resourceclaim(self) -> Body:
        namespace = self._random.choice(("default", LABELLED))
        return {"metadata": {**self._metadata(), "namespace": namespace}, "spec": self._claim_spec()}

    def _resourceclaimtemplate(self) -> Body:
        namespace = self._random.choice(("default", LABELLED))
        metadata = {"labels": {"a": "b"}} if self._random.random() < 0.2 else {}
        spec = {"spec": self._claim_spec(), **({"metadata": metadata} if metadata else {})}
        return {"metadata": {**self._metadata(), "namespace": namespace}, "spec": spec}

    def _claim_spec(self) -> Body:
        requests = [self._request(name) for name in ("gpu", "nic")[: self._random.randrange(1, 3)]]
        devices: Body = {"requests": requests}
        if self._random.random() < 0.5:
            devices["constraints"] = [{"matchAttribute": "dovetail.dev/numaNode", "requests": ["gpu"]}]
        if self._random.random() < 0.3:
            devices["config"] = [{"opaque": {"driver": "d", "parameters": {"a": 1}}}]
        return {"devices": devices}

    def _request(self, name: str) -> Body:
        exactly: Body = {"deviceClassName": "gpu.example.com"}
        for field, value in (
            ("count", 2),
            ("allocationMode", "ExactCount"),
            ("selectors", [{"cel": {"expression": 'device.driver == "d"'}}]),
            ("tolerations", [{"key": "k", "operator": "Exists"}]),
            ("capacity", {"requests": {"memory": "1Gi"}}),
            ("adminAccess", True),
        ):
            if self._random.random() < 0.2:
                exactly[field] = value
        if self._random.random() < 0.3:
            exactly.pop("adminAccess", None)
            return {"name": name, "firstAvailable": [{"name": "a", **exactly}, {"name": "b", **exactly}]}
        return {"name": name, "exactly": exactly}

    def _deviceclass(self) -> Body:
        spec: Body = {}
        if self._random.random() < 0.7:
            spec["selectors"] = [{"cel": {"expression": 'device.driver == "d"'}}]
        if self._random.random() < 0.3:
            spec["config"] = [{"opaque": {"driver": "d", "parameters": {"a": 1}}}]
        if self._random.random() < 0.3:
            spec["extendedResourceName"] = "example.com/gpu"
        return {"metadata": self._metadata(), "spec": spec}

    def _resourceslice(self) -> Body:
        spec: Body = {
            "driver": self._random.choice(DRIVERS),
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        }
        spec |= self._random.choice(
            ({"nodeName": "n1"}, {"allNodes": True}, {"perDeviceNodeSelection": True}, _selected())
        )
        if self._random.random() < 0.15:
            spec["sharedCounters"] = [{"name": "cs", "counters": {"c": {"value": "10"}}}]
        else:
            own = "perDeviceNodeSelection" in spec
            count = self._random.choice((1, 2, 3, 64))
            spec["devices"] = [self._device(f"d-{index}", own=own) for index in range(count)]
        return {"metadata": self._metadata(), "spec": spec}

    def _device(self, name: str, *, own: bool) -> Body:
        device: Body = {"name": name, "attributes": {"a": {"int": 1}, "b": {"string": "x"}}}
        if own:
            device["nodeName"] = "n1"
        if self._random.random() < 0.3:
            device["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        if self._random.random() < 0.2:
            device["consumesCounters"] = [{"counterSet": "cs", "counters": {"c": {"value": "5"}}}]
        if self._random.random() < 0.4:
            device |= {"allowMultipleAllocations": True, "capacity": {"memory": self._shared_capacity()}}
        elif self._random.random() < 0.3:
            device["capacity"] = {"memory": {"value": "80Gi"}}
        if self._random.random() < 0.1:
            device |= {"bindingConditions": ["a/b"], "bindingFailureConditions": ["a/c"]}
        return device

    def _shared_capacity(self) -> Body:
        amount = self._random.choice
        policies: tuple[Body, ...] = (
            {"default": "1", "validValues": ["1", "2", "4"]},
            {"default": "2", "validRange": {"min": "1", "max": "8", "step": "1"}},
            {"default": "500m", "validRange": {"min": "500m", "step": "500m"}},
            {
                "default": amount(QUANTITIES),
                "validRange": {field: amount(QUANTITIES) for field in ("min", "max", "step")},
            },
            {"default": amount(QUANTITIES), "validValues": [amount(QUANTITIES) for _ in range(3)]},
        )
        return {"value": amount(("10", "8", 16)), "requestPolicy": amount(policies)}

    def _devicetaintrule(self) -> Body:
        spec: Body = {"taint": {"key": "k", "value": "v", "effect": "NoSchedule"}}
        if self._random.random() < 0.7:
            spec["deviceSelector"] = {"driver": "d", "pool": "n1", "device": "d-0"}
        return {"metadata": self._metadata(), "spec": spec}

    def _mutate(self, body: Body, root: str) -> None:
        places = [place for place in _places(body, root, ()) if place[2] != ("metadata", "name")]
        holder, kind, _ = self._random.choice(places)
        change: Callable[[Body, str], None] = self._random.choice(
            (
                *(self._set_field,) * 6,
                *(self._grow,) * 3,
                self._remove,
                self._misspell,
                self._set_null,
                self._wrong_type,
                self._empty,
            )
        )
        change(holder, kind)

    def _set_field(self, holder: Body, kind: str) -> None:
        """Any field that the type has, with a value that may do."""
        if kind.startswith("{}"):
            return
        fields = {name: of for name, of in _TYPES[kind].items() if name not in _UNTOUCHED}
        if fields:
            name = self._random.choice(sorted(fields))
            holder[name] = self._value(fields[name], name)

    def _grow(self, holder: Body, kind: str) -> None:
        """A list or map up to a limit, or over it, with entries that repeat or differ."""
        lists = [name for name, part in holder.items() if isinstance(part, list | dict) and part]
        if not lists:
            return
        name = self._random.choice(sorted(lists))
        size = self._random.choice((2, 3, 4, 5, 8, 9, 10, 11, 16, 17, 31, 32, 33, 48, 49, 64, 65, 128, 129))
        part, differ = holder[name], self._random.random() < 0.9
        if isinstance(part, list):
            holder[name] = [self._variant(part[0], index, differ=differ) for index in range(size)]
        elif kind.startswith("{}") or _TYPES[kind].get(name, "").startswith("{}"):
            first = next(iter(part.values()))
            holder[name] = {f"k{index}": copy.deepcopy(first) for index in range(size)}

    def _variant(self, entry: Any, index: int, *, differ: bool) -> Any:
        if not differ:
            return copy.deepcopy(entry)
        if isinstance(entry, dict):
            name = next((field for field in ("name", "counterSet") if field in entry), None)
            return {**copy.deepcopy(entry), **({name: f"n-{index}"} if name else {})}
        return f"{entry}{index}" if isinstance(entry, str) else entry

    def _remove(self, holder: Body, _: str) -> None:
        if holder:
            del holder[self._random.choice(sorted(holder))]

    def _misspell(self, holder: Body, _: str) -> None:
        if holder:
            name = self._random.choice(sorted(holder))
            cut = self._random.randrange(max(1, len(name)))
            holder[self._random.choice((name.upper(), name[:cut] + name[cut + 1 :], f"{name}s", "zz"))] = (
                holder[name]
            )

    def _set_null(self, holder: Body, _: str) -> None:
        if holder:
            name = self._random.choice(sorted(holder))
            if isinstance(holder[name], list) and self._random.random() < 0.5:
                holder[name] = [*holder[name], None]
            else:
                holder[name] = None

    def _wrong_type(self, holder: Body, _: str) -> None:
        if holder:
            name = self._random.choice(sorted(holder))
            holder[name] = self._random.choice(("x", 1, 1.5, True, [], {}, ["x"], {"x": "y"}, [1]))

    def _empty(self, holder: Body, _: str) -> None:
        if holder:
            name = self._random.choice(sorted(holder))
            holder[name] = type(holder[name])() if holder[name] is not None else None

    def _value(self, kind: str, name: str, depth: int = 0) -> Any:
        choose = self._random.choice
        if kind.startswith("[]"):
            return [self._value(kind[2:], name, depth + 1) for _ in range(choose((0, 1, 1, 1, 2)))]
        if kind.startswith("{}"):
            keys = _KEYS.get(name, ("k",))
            return {choose(keys): self._value(kind[2:], name, depth + 1) for _ in range(choose((0, 1, 1, 2)))}
        if kind in _TYPES:
            fields = _TYPES[kind]
            count = min(len(fields), choose((0, 1, 1, 2, 2, 3)))
            chosen = [each for each in self._random.sample(sorted(fields), count) if each != "uid"]
            return {field: self._value(fields[field], field, depth + 1) for field in chosen}
        return choose(self._leaves(kind, name))

    def _leaves(self, kind: str, name: str) -> tuple[Any, ...]:
        match kind:
            case "Quantity":
                return QUANTITIES if self._random.random() < 0.7 else ODD_QUANTITIES
            case "boolean":
                return (True, False)
            case "int32" | "int64":
                return (1, 2, 0, -1) if self._random.random() < 0.6 else INTEGERS
            case "Time":
                return TIMES
            case "any":
                return ({"a": 1}, {}, "x", 1, [1], None, {"a": "x" * 10_232}, {"a": "x" * 10_233})
            case _:
                return _WORDS.get(name, (*NAMES, *ODD_NAMES))


_UNTOUCHED: Final = frozenset(
    {"apiVersion", "kind", "metadata", "status", "namespace", "creationTimestamp", "deletionTimestamp", "uid"}
    | {"deletionGracePeriodSeconds", "managedFields", "resourceVersion", "selfLink", "generateName"}
)
"""What the API server overwrites, or judges by other rules than those of the object."""


def _selected() -> Body:
    term = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["a"]}]}
    return {"nodeSelector": {"nodeSelectorTerms": [term]}}


def _places(body: Any, kind: str, path: tuple[str, ...]) -> Iterator[tuple[Body, str, tuple[str, ...]]]:
    """Every mapping of an object, with its type."""
    if kind.startswith("[]") and isinstance(body, list):
        for entry in body[:3]:
            yield from _places(entry, kind[2:], path)
    elif isinstance(body, dict) and kind.startswith("{}"):
        yield body, kind, path
        for entry in body.values():
            yield from _places(entry, kind[2:], path)
    elif isinstance(body, dict) and kind in _TYPES:
        yield body, kind, path
        for field, part in body.items():
            if field in _TYPES[kind]:
                yield from _places(part, _TYPES[kind][field], (*path, field))
