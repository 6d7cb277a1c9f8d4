"""What Kopf watches: raw events, for which it leaves no annotation and no finalizer on objects (A20).

Pods, claims and what a cluster may lack are not among it: see `dovetail.services.streams`.
"""

import kopf

from dovetail.api.kinds import (
    CLASS,
    NAMESPACE,
    NODE,
    SLICE,
    STORAGE_CLASS,
    TEMPLATE,
    VOLUME,
    VOLUME_CLAIM,
    Kind,
)
from dovetail.handlers.context import context_in
from dovetail.services.picture import Json


def _selector(kind: Kind) -> tuple[str, str, str]:
    return (kind.group, kind.version, kind.plural)


def _observe(kind: Kind, event: kopf.RawEvent, memo: object) -> None:
    operation = context_in(memo).operation
    if operation is not None:
        body: Json = dict(event["object"])
        operation.observe(kind, event["type"], body)


@kopf.on.event(*_selector(TEMPLATE))
async def template_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A template came, changed or went: pods may be waiting for claims from it."""
    _observe(TEMPLATE, event, memo)


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


@kopf.on.event(*_selector(NAMESPACE))
async def namespace_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A namespace came, changed or went: affinity may mean other pods."""
    _observe(NAMESPACE, event, memo)


@kopf.on.event(*_selector(VOLUME_CLAIM))
async def volume_claim_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A claim for a volume came, changed or went: pods may be tied to other nodes."""
    _observe(VOLUME_CLAIM, event, memo)


@kopf.on.event(*_selector(VOLUME))
async def volume_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A volume came, changed or went: pods may be tied to other nodes."""
    _observe(VOLUME, event, memo)


@kopf.on.event(*_selector(STORAGE_CLASS))
async def storage_class_seen(event: kopf.RawEvent, memo: object, **_: object) -> None:
    """A storage class came, changed or went: volumes may be made elsewhere."""
    _observe(STORAGE_CLASS, event, memo)
