"""Nodes that offer devices by device plugin and by DRA: told to their administrators, once."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

import structlog

from dovetail.api.kinds import CLASS, NODE, SLICE
from dovetail.core.dual_mode import DualMode, describe
from dovetail.core.world import World
from dovetail.services.mind import Mind
from dovetail.services.notices import Notices
from dovetail.services.picture import Change, Json, Picture

log = structlog.get_logger(__name__)

DUAL_MODE = "DualMode"
"""The reason of the Event on the node."""

SETTLE_SECONDS = 1.0
"""Nodes and slices come in bursts: they are looked at once after each."""

BATCH = 500
"""So many nodes are asked about at a time, so that decisions about pods get in between."""

EXCLUDED = (
    "Dovetail gives none of them: remove the device plugin from the node, "
    "or set dual_mode_nodes=allow if the plugin keeps to other devices"
)
ALLOWED = "Dovetail gives them all the same (dual_mode_nodes=allow): the plugin has to keep to other devices"


class DualModes:
    """Looks at each node whose plugins, slices or classes changed, and says what is new about it.

    A node is told of again when it offers something else twice, and by each replica that becomes active.
    """

    def __init__(self, *, mind: Mind, picture: Picture, notices: Notices, excluded: bool) -> None:
        """`excluded`: what such nodes offer twice is not given."""
        self._mind = mind
        self._picture = picture
        self._notices = notices
        self._advice = EXCLUDED if excluded else ALLOWED
        self._open = asyncio.Event()
        self._due = asyncio.Event()
        self._changed: set[str] = set()
        self._told: dict[str, tuple[str, str]] = {}
        """By node, its UID and what was said of it."""

    def follow(self, change: Change) -> None:
        """Take in a change of the picture."""
        self._mark(self._concerned(change))

    def open(self, is_open: bool) -> None:
        """Whether to work: while this replica is the active one and sees all."""
        if not is_open:
            self._open.clear()
        elif not self._open.is_set():
            self._open.set()
            self._told.clear()
            self._mark(self._all())

    async def run(self) -> None:
        """Look and tell for ever, while it is open."""
        while True:
            await self._open.wait()
            await self._due.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            if self._open.is_set():
                try:
                    await self._look()
                except Exception:
                    # A word too few must not stop the work that it is about.
                    log.exception("dual_modes_not_told")

    async def _look(self) -> None:
        names = sorted(self._changed)[:BATCH]
        self._changed.difference_update(names)
        if not self._changed:
            self._due.clear()
        try:
            found = await self._mind.ask(partial(_dual_modes, names))
        except BaseException:
            self._mark(names)
            raise
        for name in names:
            self._tell(name, found.get(name, ()))

    def _tell(self, name: str, modes: Collection[DualMode]) -> None:
        node = self._picture.find(NODE, ("", name))
        before = self._told.pop(name, None)
        if node is None or not modes:
            if before is not None:
                log.info("node_no_longer_dual_mode", node=name)
            return
        said = (node["metadata"].get("uid", ""), describe(modes))
        self._told[name] = said
        if said != before:
            offers = {mode.driver: list(mode.resources) for mode in modes}
            log.warning("node_dual_mode", node=name, plugins=offers)
            self._notices.say(
                node, "Warning", DUAL_MODE, f"The node offers {describe(modes)}. {self._advice}."
            )

    def _mark(self, names: Collection[str]) -> None:
        if names:
            self._changed.update(names)
            self._due.set()

    def _concerned(self, change: Change) -> Collection[str]:
        """The nodes of which something else may hold after the change."""
        if change.kind is NODE:
            return (change.key[1],) if _offers(change.before) != _offers(change.after) else ()
        if change.kind is SLICE:
            return {*_nodes_in(change.before), *_nodes_in(change.after)}
        if change.kind is CLASS and (_is_named(change.before) or _is_named(change.after)):
            return self._all()
        return ()

    def _all(self) -> Collection[str]:
        return [node["metadata"]["name"] for node in self._picture.all(NODE)]


def _dual_modes(names: Collection[str], world: World) -> Mapping[str, tuple[DualMode, ...]]:
    return {name: world.inventory.dual_modes(name) for name in names}


def _offers(node: Json | None) -> object:
    """What can tell two versions of a node apart here."""
    if node is None:
        return None
    status = _map(node.get("status"))
    return (node["metadata"].get("uid"), status.get("allocatable"), status.get("capacity"))


def _nodes_in(published: Json | None) -> Iterator[str]:
    """The nodes that a slice, or a device in it, names."""
    spec = _map(published.get("spec")) if published is not None else {}
    listed = spec.get("devices")
    devices = [_map(device) for device in listed] if isinstance(listed, list) else []
    names = (part.get("nodeName") for part in (spec, *devices))
    return (name for name in names if name and isinstance(name, str))


def _is_named(device_class: Json | None) -> bool:
    """Whether the class is served under the name of an extended resource."""
    return device_class is not None and bool(_map(device_class.get("spec")).get("extendedResourceName"))


def _map(value: object) -> Mapping[str, Any]:
    """The same where it is a map: objects may be malformed, and are here before anybody has looked."""
    return value if isinstance(value, Mapping) else {}
