"""CEL cases: an expression, the device that it sees, and what cel-go says of it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dovetail.api.slices import ResourceSlice
from dovetail.core.cel import Environment, Failure, Program, compile_attribute, compile_selector
from dovetail.core.devices import DeviceView
from dovetail.core.published import Reader
from dovetail.core.values import AttributeValue, DeviceKey, Kind
from dovetail.errors import ExpressionInvalid

Json = Mapping[str, Any]

_FIELDS = {
    (Kind.INT, False): "int",
    (Kind.BOOL, False): "bool",
    (Kind.STRING, False): "string",
    (Kind.VERSION, False): "version",
    (Kind.INT, True): "ints",
    (Kind.BOOL, True): "bools",
    (Kind.STRING, True): "strings",
    (Kind.VERSION, True): "versions",
}


@dataclass(frozen=True, slots=True)
class CelCase:
    """One case, in the form of `tests/data/cases/README.md`; `own` adds what only our mappings may read."""

    name: str
    body: Json

    @property
    def environment(self) -> Environment:
        """The gates of the case."""
        return Environment(
            consumable_capacity="DRAConsumableCapacity" in self.body["features"],
            list_type_attributes="DRAListTypeAttributes" in self.body["features"],
            own=bool(self.body.get("own")),
            stored=bool(self.body.get("stored")),
        )

    def device(self) -> DeviceView:
        """The device that the expression sees."""
        return device_of(self.body)

    def compile(self) -> Program:
        """The compiled expression; raises ExpressionInvalid."""
        compiler = compile_attribute if self.body.get("derived") else compile_selector
        return compiler(self.body["expression"], self.environment)

    def answer(self) -> dict[str, Any]:
        """Our answer: the outcome, and the value in the form of the file."""
        try:
            program = self.compile()
        except ExpressionInvalid:
            return {"outcome": "compileError"}
        device = self.device()
        if not self.body.get("derived"):
            match = program.matches(device)
            return _failed() if isinstance(match, Failure) else {"outcome": "value", "match": match}
        derived = program.derive(device)
        if isinstance(derived, Failure):
            return _failed()
        return {"outcome": "value", "attribute": attribute_of(derived)}

    @property
    def expected(self) -> dict[str, Any]:
        """The part of the reference's answer that counts."""
        return normal(self.body["expect"], derived=bool(self.body.get("derived")))


def _failed() -> dict[str, Any]:
    return {"outcome": "runtimeError"}


def normal(answer: Json, *, derived: bool) -> dict[str, Any]:
    """Outcome and value of an answer of cel-go; an empty list is no attribute at all."""
    if answer["outcome"] != "value":
        return {"outcome": answer["outcome"]}
    if not derived:
        return {"outcome": "value", "match": bool(answer.get("match"))}
    given = {name: value for name, value in (answer.get("attribute") or {}).items() if value != []}
    return {"outcome": "value", "attribute": given}


def attribute_of(value: AttributeValue | None) -> dict[str, Any]:
    """An attribute as a ResourceSlice has it."""
    return {} if value is None else {_FIELDS[value.kind, value.is_list]: value.plain}


def device_of(body: Json) -> DeviceView:
    """The device of a case, read as the operator reads it; `name` and `pool` where the case gives them."""
    device = {
        "name": body.get("name", "device"),
        "attributes": body.get("attributes") or {},
        "capacity": body.get("capacity") or {},
        "allowMultipleAllocations": body.get("allowMultipleAllocations"),
    }
    spec = {"driver": body["driver"], "pool": {"name": "pool", "resourceSliceCount": 1}, "devices": [device]}
    published = ResourceSlice.parse({"metadata": {"name": "slice"}, "spec": spec})
    view = Reader().read(published).content.devices[0].view
    key = DeviceKey(body["driver"], body.get("pool", "pool"), body.get("device", "device"))
    return DeviceView(key, view.attributes, view.capacity, view.allow_multiple_allocations)


def read_cel_cases(folder: Path) -> Iterator[CelCase]:
    """Every CEL case in a folder and its subfolders: lists of cases, or one case a file."""
    for path in sorted(folder.rglob("*.json")):
        body = json.loads(path.read_text())
        for index, case in enumerate(body if isinstance(body, list) else [body]):
            if isinstance(case, dict) and {"expression", "expect"} <= case.keys():
                yield CelCase(f"{case.get('name', path.stem)}-{index}", case)
