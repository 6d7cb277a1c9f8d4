"""The drawing of a node: its NUMA nodes as boxes, the devices in them, and who holds what."""

from collections.abc import Iterator, Mapping

from rich import box
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dovetail.demo.proof import Body, Device, Evidence, device_of, results_of
from dovetail.demo.world import CPU_CAPACITY, NODES

WIDTH = 80
BOX_WIDTH = 38
FREE = "free"


def draw(evidence: Evidence) -> Iterator[RenderableType]:
    """One panel per node."""
    holders = holders_of(evidence)
    for node in sorted({body["spec"]["pool"]["name"] for body in evidence.slices}):
        inside: dict[int | None, list[Device]] = {}
        for device in sorted(_devices(evidence, node)):
            inside.setdefault(evidence.numa_nodes.get(device), []).append(device)
        nowhere = ", ".join(device[2] for device in inside.pop(None, []))
        places = sorted(place for place in inside if place is not None)
        boxes = [_numa_box(place, inside[place], holders) for place in places]
        rest = [Text(f"on no NUMA node: {nowhere}", style="dim")] if nowhere else []
        machine = NODES[node][0] if node in NODES else ""
        title = Text.assemble((node, "bold"), f" ({machine})" if machine else "")
        yield Panel(Group(Columns(boxes, padding=0), *rest), title=title, title_align="left", width=WIDTH)


def holders_of(evidence: Evidence) -> Mapping[Device, list[str]]:
    """Who holds each device, by the claims' results; with the number of CPUs, where it holds some of them."""
    names = {body["metadata"]["uid"]: body["metadata"]["name"] for body in evidence.pods}
    holders: dict[Device, list[str]] = {}
    for claim in evidence.claims:
        consumers = claim.get("status", {}).get("reservedFor") or []
        who = ", ".join(names.get(consumer["uid"], consumer["name"]) for consumer in consumers)
        for result in results_of(claim):
            holders.setdefault(device_of(result), []).append(who + _share(result))
    return holders


def _share(result: Body) -> str:
    amount = (result.get("consumedCapacity") or {}).get(CPU_CAPACITY)
    return f" ({amount})" if amount else ""


def _devices(evidence: Evidence, node: str) -> Iterator[Device]:
    for body in evidence.slices:
        spec = body["spec"]
        if spec["pool"]["name"] == node:
            yield from ((spec["driver"], node, device["name"]) for device in spec.get("devices") or [])


def _numa_box(place: int, devices: list[Device], holders: Mapping[Device, list[str]]) -> Panel:
    rows = Table.grid(padding=(0, 1))
    rows.add_column(no_wrap=True)
    rows.add_column()
    driver = ""
    for device in devices:
        if device[0] != driver:
            driver = device[0]
            rows.add_row(Text(driver, style="dim"))
        held = holders.get(device)
        style = "bold green" if held else "dim"
        rows.add_row(Text(f" {device[2]}", style=style), Text(", ".join(held or [FREE]), style=style))
    title = f"NUMA node {place}"
    return Panel(rows, title=title, title_align="left", box=box.SQUARE, width=BOX_WIDTH, padding=0)
