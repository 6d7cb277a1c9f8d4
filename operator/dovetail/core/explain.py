"""Refusals in words: one sentence that names what stands in the way and what would help."""

from collections.abc import Iterator, Mapping, Sequence

from dovetail.core.dual_mode import DualMode
from dovetail.core.outcome import DoesNotFit
from dovetail.core.refusals import (
    Cause,
    ConstraintStory,
    DropConstraint,
    NodeStory,
    PoolCause,
    PoolRefusal,
    Release,
    RequestStory,
    Share,
    ShareClaim,
    WithoutPlugin,
)

MOST_STORIES = 3
"""So many kinds of nodes are described; the rest is counted."""

MOST_NAMES = 3
"""So many names are written out in one list."""

_CAUSES: Mapping[Cause, str] = {
    Cause.DEVICE_PLUGIN: "offered by device plugin too",
    Cause.IN_USE: "in use",
    Cause.NOT_SELECTED: "not selected",
    Cause.NO_CAPACITY: "short of capacity",
    Cause.NOT_SUPPORTED: "not supported by the node",
    Cause.NO_COUNTERS: "short of shared counters",
    Cause.INCOMPATIBLE: "incompatible with partitions in use",
    Cause.TAINTED: "tainted",
    Cause.NO_ATTRIBUTE: "without the attribute of a constraint",
}


def explain(refused: DoesNotFit) -> str:
    """One sentence, the same for the same causes: what is in the way, by name and number, and what helps."""
    if not refused.stories:
        return "There is no node to allocate on."
    stories = refused.stories[:MOST_STORIES]
    parts = [f"{_nodes(story.nodes)}: {_story(story)}" for story in stories]
    rest = sum(len(story.nodes) for story in refused.stories[MOST_STORIES:])
    if rest:
        parts.append(f"{_count(rest, 'more node')} for other reasons")
    sentence = "; ".join(parts)
    would = [_help(given) for given in refused.help if not isinstance(given, ShareClaim)]
    if would:
        sentence += f"; it would fit {' or '.join(would[:2])}"
    if any(isinstance(given, ShareClaim) for given in refused.help):
        sentence += (
            "; a template gives each pod a claim of its own, so pods that are to share a device "
            "must name one ResourceClaim"
        )
    return f"Nothing fits: {sentence}."


def _story(story: NodeStory) -> str:
    if story.error:
        return story.error
    phrases = list(dict.fromkeys(_phrases(story)))
    return (
        ", and ".join(phrases[:MOST_NAMES]) or "its requests and constraints cannot all be satisfied together"
    )


def _phrases(story: NodeStory) -> Iterator[str]:
    """What stands in the way: what is missing, else what is short, else what is too much together."""
    missing = [phrase for constraint in story.constraints for phrase in _missing(constraint)]
    if missing:
        yield from missing
        return
    short = [request for request in story.requests if request.usable < request.wanted]
    if short:
        yield from (_short(request, story.plugins) for request in short)
        yield from map(_pool, story.pools)
        return
    best = [phrase for constraint in story.constraints for phrase in _best(constraint)]
    crowded = list(_crowded(story.requests))
    yield from best
    yield from crowded
    yield from map(_plugin, story.plugins)
    if not best and not crowded:
        yield from _together(story.constraints)


def _missing(constraint: ConstraintStory) -> Iterator[str]:
    for driver, reason in constraint.missing.items():
        yield f"{constraint.attribute} is missing on all devices of {driver} ({reason})"


def _short(request: RequestStory, plugins: Sequence[DualMode]) -> str:
    if not request.selected:
        return f"no device is selected by request {request.request}"
    names = _names(_resources(plugins, request.drivers))
    causes = [
        f"{count} {_CAUSES[cause]}{f' ({names})' if cause is Cause.DEVICE_PLUGIN else ''}"
        for cause, count in sorted(request.causes.items())
        if cause is not Cause.NOT_SELECTED
    ]
    why = f": {', '.join(causes)}" if causes else ""
    drivers = _names(request.drivers)
    return (
        f"request {request.request} needs {_count(request.wanted, 'device')} of {drivers}, and "
        f"{request.usable} of {request.selected} can be taken{why}"
    )


def _plugin(plugin: DualMode) -> str:
    devices = _count(plugin.devices, "device")
    are = "is" if plugin.devices == 1 else "are"
    return (
        f"{devices} of {plugin.driver} {are} offered by device plugin too "
        f"({_names(_resources([plugin], [plugin.driver]))})"
    )


def _resources(plugins: Sequence[DualMode], drivers: Sequence[str]) -> list[str]:
    found = {resource for plugin in plugins if plugin.driver in drivers for resource in plugin.resources}
    return sorted(found)


def _pool(pool: PoolRefusal) -> str:
    state = "incomplete" if pool.cause is PoolCause.INCOMPLETE else "contradictory"
    return f"pool {pool.pool.driver}/{pool.pool.pool} is {state} ({pool.detail})"


def _best(constraint: ConstraintStory) -> Iterator[str]:
    if constraint.distinct:
        if constraint.values < constraint.wanted:
            values = _count(constraint.values, "distinct value")
            yield f"{constraint.attribute} has {values}, {constraint.wanted} needed"
    elif any(share.usable < share.wanted for share in constraint.shares) and constraint.value is not None:
        shares = " and ".join(map(_share, constraint.shares))
        yield f"at best {shares} on {constraint.attribute} {_value(constraint.value)}"


def _share(share: Share) -> str:
    """What is there of what is wanted; more than that is of no interest here."""
    there = min(share.usable, share.wanted)
    return f"{there} of {_count(share.wanted, 'device')} of {share.driver} ({share.request})"


def _crowded(requests: Sequence[RequestStory]) -> Iterator[str]:
    """Requests for the same devices that want more of them together than there are."""
    groups: dict[tuple[str, tuple[str, ...], int], list[RequestStory]] = {}
    for request in requests:
        if "/" not in request.request:
            groups.setdefault((request.claim, request.drivers, request.usable), []).append(request)
    for (_, drivers, usable), group in groups.items():
        wanted = sum(request.wanted for request in group)
        if wanted > usable:
            names = _names([request.request for request in group])
            yield f"{names} together need {wanted} devices of {_names(drivers)}, and {usable} can be taken"


def _together(constraints: Sequence[ConstraintStory]) -> Iterator[str]:
    attributes = sorted({constraint.attribute for constraint in constraints})
    if attributes:
        yield f"no choice of devices satisfies all constraints on {_names(attributes)} together"


def _help(given: DropConstraint | Release | WithoutPlugin) -> str:
    match given:
        case WithoutPlugin(resources, node):
            return (
                f"on node {node} if no device plugin offered {_names(resources)} there "
                "(or with dual_mode_nodes=allow, if the plugin keeps to other devices)"
            )
        case DropConstraint(claim, attribute, node):
            return f"on node {node} without the constraint of claim {claim} on {attribute}"
        case Release(holders, devices, node):
            names = _names([f"{namespace}/{name}" if namespace else name for namespace, name in holders])
            claims = "claim" if len(holders) == 1 else "claims"
            taken = _names([device.device for device in devices])
            return f"on node {node} if {claims} {names} gave back {taken}"


def _nodes(nodes: Sequence[str]) -> str:
    return f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes ({_names(nodes)})"


def _names(names: Sequence[str]) -> str:
    shown = list(names[:MOST_NAMES])
    rest = len(names) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
