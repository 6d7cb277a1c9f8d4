"""Refusals in words: one sentence that names what stands in the way and what would help."""

from collections.abc import Iterator, Mapping, Sequence

from dovetail.core.dual_mode import DualMode
from dovetail.core.lacks import phrase_of
from dovetail.core.outcome import DoesNotFit
from dovetail.core.refusals import (
    Cause,
    ConstraintStory,
    Crowd,
    DropConstraint,
    NodeStory,
    PoolCause,
    PoolStory,
    Release,
    RequestStory,
    Share,
    ShareClaim,
    WithoutPlugin,
)
from dovetail.core.wording import MOST_NAMES, claims_of, count, names

MOST_STORIES = 3
"""So many kinds of nodes are described; the rest is counted."""

_CAUSES: Mapping[Cause, str] = {
    Cause.DEVICE_PLUGIN: "offered by device plugin too",
    Cause.IN_USE: "in use",
    Cause.NOT_SELECTED: "not selected",
    Cause.TOO_SMALL: "unable to give the capacity that is asked for",
    Cause.NO_CAPACITY: "short of capacity",
    Cause.NOT_SUPPORTED: "not supported by the node",
    Cause.NO_COUNTERS: "short of shared counters",
    Cause.INCOMPATIBLE: "incompatible with partitions in use",
    Cause.TAINTED: "tainted",
    Cause.NO_ATTRIBUTE: "without the attribute of a constraint",
}


def explain(refused: DoesNotFit, viewer: str | None = None) -> str:
    """One sentence, the same for the same causes: what is in the way, by name and number, and what helps.

    `viewer` is the namespace of those who will read it: objects of others are counted, not named.
    None stands for readers who may see all namespaces.
    """
    if not refused.stories:
        return "There is no node to allocate on."
    sentence = "; ".join(_nodes_told(refused.stories))
    would = [_help(given, viewer) for given in refused.help if not isinstance(given, ShareClaim)]
    if would:
        sentence += f"; it would fit {' or '.join(would[:2])}"
    if any(isinstance(given, ShareClaim) for given in refused.help):
        sentence += (
            "; a template gives each pod a claim of its own, so pods that are to share a device "
            "must name one ResourceClaim"
        )
    return f"Nothing fits: {sentence}."


def _nodes_told(stories: Sequence[NodeStory]) -> Iterator[str]:
    """Nodes of which the same is said together; those that are left are counted."""
    told: dict[str, list[NodeStory]] = {}
    for story in stories:
        told.setdefault(_story(story), []).append(story)
    groups = list(told.items())
    shown: set[object] = set()
    for sentence, group in groups[:MOST_STORIES]:
        shown.update(map(_kind, group))
        yield f"{_nodes([node for story in group for node in story.nodes])}: {sentence}"
    alike = others = 0
    for story in (story for _, group in groups[MOST_STORIES:] for story in group):
        if _kind(story) in shown:
            alike += len(story.nodes)
        else:
            others += len(story.nodes)
    if alike:
        yield f"{count(alike, 'more node')} for the same reason with other numbers"
    if others:
        yield f"{count(others, 'more node')} for other reasons"


def _kind(story: NodeStory) -> object:
    """The reason without its numbers."""
    lacks = story.blame.lacks if story.blame else ()
    return (
        story.error,
        tuple((r.claim, r.request, frozenset(r.causes) - {Cause.NOT_SELECTED}) for r in story.short),
        tuple(crowd.requests for crowd in story.crowds),
        tuple(map(type, lacks)),
        tuple(story.constraints[number].attribute for number in story.blame.constraints)
        if story.blame
        else (),
    )


def _story(story: NodeStory) -> str:
    if story.error:
        return story.error
    phrases = list(dict.fromkeys(_phrases(story)))
    return ", and ".join(phrases[:MOST_NAMES]) or "its requests cannot all be satisfied together"


def _phrases(story: NodeStory) -> Iterator[str]:
    """What stands in the way: requests that find too little, alone or together; else what is to blame."""
    if short := story.short:
        # By identity: comparing goes through all devices that are refused.
        ids = set(map(id, short))
        places = {place for place, request in enumerate(story.requests) if id(request) in ids}
        pools = [pool for pool in story.pools if places.intersection(pool.requests)]
        hidden = {place for pool in pools for place in pool.requests}
        # A pool that cannot be used explains why a request selects nothing.
        empty = [place for place in sorted(places & hidden) if not story.requests[place].selected]
        first = [pool for pool in pools if set(empty).intersection(pool.requests)]
        yield from map(_pool, first)
        for place in sorted(places.difference(empty)):
            yield _short(story.requests[place], story.plugins)
        yield from (_pool(pool) for pool in pools if pool not in first)
        return
    yield from (_crowd(crowd, story.requests) for crowd in story.crowds)
    yield from _blamed(story)
    yield from map(_plugin, story.plugins)
    yield from map(_pool, story.pools)


def _blamed(story: NodeStory) -> Iterator[str]:
    if (blame := story.blame) is None:
        return
    yield from map(phrase_of, blame.lacks)
    if blame.beyond:
        attributes = sorted({constraint.attribute for constraint in story.constraints})
        yield f"even then {_constraints(attributes)} would not be met"
    constraints = [story.constraints[number] for number in blame.constraints]
    if constraints and story.left_out:
        yield story.left_out
        return
    told = [phrase for one in constraints for phrase in (list(_missing(one)) or _best(one))]
    yield from told
    if constraints and not told:
        attributes = sorted({constraint.attribute for constraint in constraints})
        yield f"no choice of devices satisfies all constraints on {names(attributes)} together"
    if blame.claims:
        several = list(dict.fromkeys(request.claim for request in story.requests))
        yield f"{_claims_together(story, several)} fit each alone, and not together"


def _constraints(attributes: Sequence[str]) -> str:
    return f"{'the constraint' if len(attributes) == 1 else 'all constraints'} on {names(attributes)}"


def _claims_together(story: NodeStory, several: Sequence[str]) -> str:
    resources = [request.request for request in story.requests if request.is_extended]
    own = [claim for claim in several if not any(r.is_extended for r in story.requests if r.claim == claim)]
    parts = [f"{'claim' if len(own) == 1 else 'claims'} {names(own)}"] if own else []
    if resources:
        parts.append(f"{_resources_named(resources)}")
    return " and ".join(parts)


def _missing(constraint: ConstraintStory) -> Iterator[str]:
    for driver, reason in constraint.missing.items():
        yield f"{constraint.attribute} is missing on all devices of {driver} ({reason})"


def _short(request: RequestStory, plugins: Sequence[DualMode]) -> str:
    if not request.selected:
        return f"no device is selected by {_request(request)}"
    resources = names(_resources(plugins, request.drivers))
    causes = [
        f"{number} {_CAUSES[cause]}{_detail(request, cause, resources)}"
        for cause, number in sorted(request.causes.items())
        if cause is not Cause.NOT_SELECTED
    ]
    why = f": {', '.join(causes)}" if causes else ""
    return (
        f"{_request(request)} needs {count(request.wanted, 'device')} of {names(request.drivers)}, and "
        f"{request.usable} of {request.selected} can be taken{why}"
    )


def _detail(request: RequestStory, cause: Cause, resources: str) -> str:
    if cause is Cause.DEVICE_PLUGIN and resources:
        return f" ({resources})"
    if cause is Cause.TOO_SMALL:
        first = next((refused.detail for refused in request.refusals if refused.cause is cause), "")
        return f" ({first})" if first else ""
    return ""


def _request(request: RequestStory) -> str:
    return f"extended resource {request.request}" if request.is_extended else f"request {request.request}"


def _resources_named(resources: Sequence[str]) -> str:
    return f"{'extended resource' if len(resources) == 1 else 'extended resources'} {names(resources)}"


def _plugin(plugin: DualMode) -> str:
    devices = count(plugin.devices, "device")
    are = "is" if plugin.devices == 1 else "are"
    return (
        f"{devices} of {plugin.driver} {are} offered by device plugin too "
        f"({names(_resources([plugin], [plugin.driver]))})"
    )


def _resources(plugins: Sequence[DualMode], drivers: Sequence[str]) -> list[str]:
    found = {resource for plugin in plugins if plugin.driver in drivers for resource in plugin.resources}
    return sorted(found)


def _pool(story: PoolStory) -> str:
    pool = story.refused
    name = f"pool {pool.pool.driver}/{pool.pool.pool}"
    if pool.cause is PoolCause.INCOMPLETE:
        return f"{name} is incomplete ({pool.detail})"
    return f"{name} contradicts itself: {pool.detail}"


def _best(constraint: ConstraintStory) -> Iterator[str]:
    if constraint.distinct:
        if constraint.values < constraint.wanted:
            values = count(constraint.values, "distinct value")
            yield f"{constraint.attribute} has {values}, {constraint.wanted} needed"
    elif any(share.usable < share.wanted for share in constraint.shares) and constraint.value is not None:
        shares = " and ".join(map(_share, constraint.shares))
        yield f"at best {shares} on {constraint.attribute} {_value(constraint.value)}"


def _share(share: Share) -> str:
    """What is there of what is wanted; more than that is of no interest here."""
    there = min(share.usable, share.wanted)
    of_driver = f" of {share.driver}" if share.driver else ""
    return f"{there} of {count(share.wanted, 'device')}{of_driver} ({share.request})"


def _crowd(crowd: Crowd, requests: Sequence[RequestStory]) -> str:
    """Requests for the same devices that want more of them together than there are."""
    group = [requests[place] for place in crowd.requests]
    several = len({request.claim for request in group if not request.is_extended}) > 1
    own = [
        f"{request.request} of claim {request.claim}" if several else request.request
        for request in group
        if not request.is_extended
    ]
    resources = [request.request for request in group if request.is_extended]
    who = [*([names(own)] if own else []), *([_resources_named(resources)] if resources else [])]
    return (
        f"{' and '.join(who)} together need {crowd.wanted} devices of {names(crowd.drivers)}, "
        f"and {crowd.usable} can be taken"
    )


def _help(given: DropConstraint | Release | WithoutPlugin, viewer: str | None) -> str:
    match given:
        case WithoutPlugin(resources, node):
            return (
                f"on node {node} if no device plugin offered {names(resources)} there "
                "(or with dual_mode_nodes=allow, if the plugin keeps to other devices)"
            )
        case DropConstraint(claim, attribute, node):
            return f"on node {node} without the constraint of claim {claim} on {attribute}"
        case Release(holders, devices, node):
            taken = names([device.device for device in devices])
            return f"on node {node} if {claims_of(holders, viewer)} gave back {taken}"


def _nodes(nodes: Sequence[str]) -> str:
    return f"node {nodes[0]}" if len(nodes) == 1 else f"{len(nodes)} nodes ({names(nodes)})"


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
