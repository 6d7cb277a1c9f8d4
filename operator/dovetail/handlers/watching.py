"""What is watched: raw events, for which Kopf leaves no annotation and no finalizer on objects (A20)."""

import kopf

from dovetail.api.kinds import CLAIM, CLASS, MAPPING, NODE, OWNERSHIP, POD, SLICE, TAINT_RULE, TEMPLATE, Kind
from dovetail.handlers.context import context_in
from dovetail.services.picture import Json


def _selector(kind: Kind) -> tuple[str, str, str]:
    return (kind.group, kind.version, kind.plural)


def _observe(kind: Kind, event: kopf.RawEvent, memo: object) -> None:
    operation = context_in(memo).operation
    if operation is not None:
        body: Json = dict(event["object"])
        operation.observe(kind, event["type"], body)


@kopf.on.event(*_selector(POD))
async def pod_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A pod came, changed or went: it may need devices, or need them no longer."""
    _observe(POD, event, memo)


@kopf.on.event(*_selector(TEMPLATE))
async def template_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A template came, changed or went: pods may be waiting for claims from it."""
    _observe(TEMPLATE, event, memo)


@kopf.on.event(*_selector(CLAIM))
async def claim_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A claim came, changed or went: it may need devices, or have set some free."""
    _observe(CLAIM, event, memo)


@kopf.on.event(*_selector(SLICE))
async def slice_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A slice came, changed or went: there are other devices than before."""
    _observe(SLICE, event, memo)


@kopf.on.event(*_selector(CLASS))
async def class_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A class came, changed or went: requests may mean other devices."""
    _observe(CLASS, event, memo)


@kopf.on.event(*_selector(NODE))
async def node_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A node came, changed or went: pods can run elsewhere than before."""
    _observe(NODE, event, memo)


@kopf.on.event(*_selector(MAPPING))
async def mapping_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A mapping came, changed or went: devices may have other derived attributes."""
    _observe(MAPPING, event, memo)


@kopf.on.event(*_selector(TAINT_RULE))
async def taint_rule_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A taint rule came, changed or went: devices may be refused, or taken again."""
    _observe(TAINT_RULE, event, memo)


@kopf.on.event(*_selector(OWNERSHIP))
async def ownership_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """An ownership came, changed or went: other devices are fenced."""
    _observe(OWNERSHIP, event, memo)
