"""Server-side apply: fields belong to the manager that applied them, and go when it applies no longer.

Differs from the real thing: ownership is remembered per manager and subresource as the last applied
object, outside of the object (no `metadata.managedFields`), and only managers that apply own anything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.embedded.answers import StatusError
from dovetail.embedded.bodies import Body
from dovetail.embedded.patching import LIST_KEYS, SETS

MAP_KEYS: Mapping[str, tuple[str, ...]] = dict(LIST_KEYS) | {
    "devices": ("driver", "device", "pool", "shareID"),
}
"""Lists that server-side apply merges by key (`x-kubernetes-list-type: map`)."""

IDENTITY = frozenset({"apiVersion", "kind"})
METADATA_IDENTITY = frozenset({"name", "namespace", "uid", "resourceVersion", "creationTimestamp"})

Path = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Applier:
    """Who applies, to what part of the object."""

    manager: str
    subresource: str = ""
    force: bool = False


class Ownership:
    """Who applied what, per object."""

    def __init__(self) -> None:
        self._applied: dict[tuple[str, str], dict[str, Body]] = {}

    def applied(self, live: Body, config: Body, applier: Applier) -> tuple[Body, dict[str, Body]]:
        """The configuration on the live object, and who then owns what; 409 where another holds a field."""
        known = self._applied.get((live["metadata"]["uid"], applier.subresource), {})
        others = {name: held for name, held in known.items() if name != applier.manager}
        wanted = dict(_leaves(config))
        if applier.force:
            taken = [path for path in wanted if path[-1] is not ITEM]
            others = {name: _without(held, taken) for name, held in others.items()}
        else:
            _check_conflicts(wanted, others)
        held = {path for other in others.values() for path, _ in _leaves(other)}
        dropped = [
            path
            for path, _ in _leaves(known.get(applier.manager, {}))
            if path not in wanted and path not in held
        ]
        return _merged(_without(live, dropped), config), others | {applier.manager: config}

    def keep(self, uid: str, applier: Applier, owners: dict[str, Body]) -> None:
        """Remember who owns what, after the write."""
        self._applied[uid, applier.subresource] = owners


def _check_conflicts(wanted: dict[Path, Any], others: dict[str, Body]) -> None:
    for other, held in others.items():
        fields = [_shown(path) for path, value in _leaves(held) if path in wanted and wanted[path] != value]
        if fields:
            causes = [{"field": field, "message": f'conflict with "{other}"'} for field in fields]
            message = (
                f'Apply failed with {len(fields)} conflicts: conflicts with "{other}": {", ".join(fields)}'
            )
            raise StatusError(409, message, details={"causes": causes})


def _shown(path: Path) -> str:
    """A path as conflicts name it: `.status.conditions[type="Ready"].status`."""
    shown = ""
    for step in path:
        if isinstance(step, str):
            shown += f".{step}"
        elif step is not ITEM:
            shown += "[" + ",".join(f'{key}="{value}"' for key, value in step) + "]"
    return shown


class _Item:
    """Marks the item of a list map itself, beside its fields."""


ITEM = _Item()


def _identified(entry: Any, keys: tuple[str, ...]) -> Path:
    return tuple((key, entry.get(key)) for key in keys)


def _mergeable(field: str, value: Any) -> bool:
    return field in MAP_KEYS and isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _leaves(value: Any, at: Path = (), field: str = "") -> Iterator[tuple[Path, Any]]:
    """Every field that a configuration sets, by its path; items of list maps by their keys."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if not (at == () and name in IDENTITY) and not (
                at == ("metadata",) and name in METADATA_IDENTITY
            ):
                yield from _leaves(inner, (*at, name), name)
    elif _mergeable(field, value):
        for entry in value:
            place = (*at, _identified(entry, MAP_KEYS[field]))
            yield (*place, ITEM), None
            for name, inner in entry.items():
                yield from _leaves(inner, (*place, name), name)
    elif field in SETS:
        for entry in value:
            yield (*at, (("", entry),)), entry
    else:
        yield at, value


def _without(value: Any, paths: list[Path], at: Path = (), field: str = "") -> Any:
    """The value without the fields at these paths."""
    gone = set(paths)
    if isinstance(value, dict):
        return {
            name: _without(inner, paths, (*at, name), name)
            for name, inner in value.items()
            if (*at, name) not in gone
        }
    if _mergeable(field, value):
        keys = MAP_KEYS[field]
        places = [((*at, _identified(entry, keys)), entry) for entry in value]
        return [
            {
                name: _without(inner, paths, (*place, name), name)
                for name, inner in entry.items()
                if name in keys or (*place, name) not in gone
            }
            for place, entry in places
            if (*place, ITEM) not in gone
        ]
    if field in SETS and isinstance(value, list):
        return [entry for entry in value if (*at, (("", entry),)) not in gone]
    return value


def _merged(live: Any, config: Any, field: str = "") -> Any:
    """The live value with every field of the configuration in it."""
    if isinstance(config, dict):
        known = live if isinstance(live, dict) else {}
        return dict(known) | {name: _merged(known.get(name), inner, name) for name, inner in config.items()}
    if _mergeable(field, config):
        return _merged_list(live if isinstance(live, list) else [], config, MAP_KEYS[field])
    if field in SETS:
        known_set = live if isinstance(live, list) else []
        return known_set + [entry for entry in config if entry not in known_set]
    return config


def _merged_list(live: list[Any], config: list[Any], keys: tuple[str, ...]) -> list[Any]:
    merged = list(live)
    for entry in config:
        mine = _identified(entry, keys)
        place = next((index for index, old in enumerate(merged) if _identified(old, keys) == mine), None)
        if place is None:
            merged.append(_merged({}, entry))
        else:
            merged[place] = _merged(merged[place], entry)
    return merged
