"""The three patches that need no ownership: JSON merge patch, strategic merge patch, JSON patch.

None changes its arguments.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dovetail.embedded.answers import StatusError, bad_request
from dovetail.embedded.bodies import Body

LIST_KEYS: Mapping[str, tuple[str, ...]] = {
    "schedulingGates": ("name",),
    "resourceClaims": ("name",),
    "resourceClaimStatuses": ("name",),
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "conditions": ("type",),
    "addresses": ("type",),
    "reservedFor": ("uid",),
    "ownerReferences": ("uid",),
}
"""Lists whose items are told apart by a key, by the name of the field (`patchStrategy: merge`)."""

SETS = frozenset({"finalizers"})
"""Lists of strings that are sets."""


def merge_patch(value: Any, patch: Any) -> Any:
    """RFC 7386: maps are merged, null deletes, everything else (lists too) is replaced."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for name, change in patch.items():
        if change is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), change)
    return merged


def strategic_merge(value: Any, patch: Any, field: str = "") -> Any:
    """As merge patch, but lists with keys are merged item by item; `$patch` directives work."""
    if isinstance(patch, dict):
        return _strategic_map(value if isinstance(value, dict) else {}, patch)
    if isinstance(patch, list) and field in LIST_KEYS:
        return _strategic_list(value if isinstance(value, list) else [], patch, LIST_KEYS[field][0])
    if isinstance(patch, list) and field in SETS:
        known = value if isinstance(value, list) else []
        return [entry for entry in patch if entry not in known] + known
    return patch


def _strategic_map(value: Body, patch: Body) -> Body:
    directive = patch.get("$patch")
    if directive == "replace":
        return {name: change for name, change in patch.items() if name != "$patch"}
    if directive == "delete":
        return {}
    merged = dict(value)
    for name, change in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            target = name.partition("/")[2]
            merged[target] = [entry for entry in merged.get(target) or [] if entry not in change]
        elif name.startswith("$"):
            continue  # $setElementOrder and $retainKeys only order and prune what kubectl itself wrote
        elif change is None:
            merged.pop(name, None)
        else:
            merged[name] = strategic_merge(merged.get(name), change, name)
            if merged[name] == [] and name in LIST_KEYS:
                del merged[name]
    return merged


def _strategic_list(value: list[Any], patch: list[Any], key: str) -> list[Any]:
    if any(entry.get("$patch") == "replace" for entry in patch):
        return [entry for entry in patch if "$patch" not in entry]
    merged, added = list(value), []
    for entry in patch:
        if key not in entry:
            raise bad_request(f"map: {entry} does not contain declared merge key: {key}")
        place = next((index for index, old in enumerate(merged) if old.get(key) == entry[key]), None)
        if entry.get("$patch") == "delete":
            merged = [old for old in merged if old.get(key) != entry[key]]
        elif place is None:
            added.append(_strategic_map({}, entry))
        else:
            merged[place] = _strategic_map(merged[place], entry)
    # What a patch adds comes first: without a wished order, Kubernetes sorts its items before the others.
    return added + merged


def json_patch(value: Body, operations: Any) -> Body:
    """RFC 6902; an operation that does not apply is answered with 422, a failed test as well."""
    if not isinstance(operations, list):
        raise bad_request("a JSON patch is a list of operations")
    document: Any = value
    for operation in operations:
        document = _operated(document, operation)
    patched: Body = document
    return patched


def _operated(document: Any, operation: Body) -> Any:
    path = _pointer(operation.get("path", ""))
    match operation.get("op"):
        case "add":
            return _placed(document, path, operation.get("value"), insert=True)
        case "replace":
            _found(document, path)
            return _placed(document, path, operation.get("value"))
        case "remove":
            _found(document, path)
            return _removed(document, path)
        case "test":
            wanted = operation.get("value")
            # As in Kubernetes, what is not there equals null.
            is_absent = wanted is None and path and path[-1] not in _found(document, path[:-1])
            if not is_absent and _found(document, path) != wanted:
                raise StatusError(422, f"the server rejected our request: test of {operation['path']} failed")
            return document
        case "copy":
            return _placed(document, path, _found(document, _pointer(operation["from"])), insert=True)
        case "move":
            source = _pointer(operation["from"])
            moved = _found(document, source)
            return _placed(_removed(document, source), path, moved, insert=True)
        case _:
            pass
    raise bad_request(f"unknown operation in JSON patch: {operation.get('op')!r}")


def _pointer(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _found(document: Any, path: Sequence[str]) -> Any:
    for step in path:
        try:
            document = document[int(step)] if isinstance(document, list) else document[step]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            message = f"the server rejected our request: no value at /{'/'.join(path)}"
            raise StatusError(422, message) from error
    return document


def _placed(document: Any, path: Sequence[str], value: Any, *, insert: bool = False) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(document, list):
        index = len(document) if step == "-" else int(step)
        if rest:
            return [
                *document[:index],
                _placed(document[index], rest, value, insert=insert),
                *document[index + 1 :],
            ]
        return [*document[:index], value, *document[index if insert else index + 1 :]]
    if rest:
        return dict(document) | {step: _placed(_found(document, [step]), rest, value, insert=insert)}
    return dict(document) | {step: value}


def _removed(document: Any, path: Sequence[str]) -> Any:
    step, rest = path[0], path[1:]
    if isinstance(document, list):
        index = int(step)
        kept = [_removed(document[index], rest)] if rest else []
        return [*document[:index], *kept, *document[index + 1 :]]
    if rest:
        return dict(document) | {step: _removed(document[step], rest)}
    return {name: value for name, value in document.items() if name != step}
