"""Pods that would fit only by classes that the API server refuses."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dovetail.cli.manifests import Manifest
from dovetail.core.decisions import Invalid, Place
from dovetail.core.forecast import Forecast, Served
from dovetail.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class Refused:
    """An object that the API server would refuse, and why."""

    manifest: Manifest
    reason: str


def without_refused(forecast: Forecast, refused: Iterable[Refused]) -> Forecast:
    """The forecast, or that the pod cannot be served where a claim of it names a refused class.

    What drivers publish counts as it is written.
    """
    if isinstance(forecast.decision, Place):
        for used in (each for served in forecast.served for each in _used(served, refused)):
            sentence = f"It would fit, but the API server refuses {used.manifest.title}: {used.reason}."
            return replace(forecast, decision=Invalid(Reason.INVALID_CLAIM, sentence), node=None, served=())
    return forecast


def _used(served: Served, refused: Iterable[Refused]) -> Iterator[Refused]:
    """The refused classes that a claim names."""
    classes = {
        devices.device_class_name
        for request in served.claim.spec.devices.requests
        for devices in (*request.first_available, *((request.exactly,) if request.exactly else ()))
    }
    for each in refused:
        if each.manifest.kind == "DeviceClass" and each.manifest.name in classes:
            yield each
