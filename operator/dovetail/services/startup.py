"""Before the first decision: whether the cluster can be served, and whether we may do what has to be done."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from dovetail.api.kinds import ACCESS_REVIEW, CLAIM, OPTIONAL
from dovetail.cluster.pen import Pen
from dovetail.cluster.reader import Reader
from dovetail.cluster.retries import patiently
from dovetail.core.features import GATES, Features
from dovetail.errors import ClusterError, DovetailError, NotFound
from dovetail.services.rights import Right, rights_needed
from dovetail.services.settings import Settings

log = structlog.get_logger(__name__)

_ENABLED = re.compile(r'^kubernetes_feature_enabled\{name="([^"]+)"[^}]*\} ([01])', re.MULTILINE)

_SINCE: Mapping[str, int] = {
    "DRAAdminAccess": 34,
    "DRAPrioritizedList": 34,
    "DRAResourceClaimDeviceStatus": 33,
    "DRADeviceTaints": 36,
    "DRADeviceTaintRules": 37,
    "DRAPartitionableDevices": 36,
    "DRAConsumableCapacity": 36,
    "DRADeviceBindingConditions": 36,
    "DRAExtendedResource": 36,
    "DRAFractionalCapacityRange": 38,
}
"""The minor version from which on a gate is on by default; gates that are not named are off."""


FIRST_MINOR = 34
"""The first minor version that serves resource.k8s.io/v1, by default (KEP-4381)."""


class ClusterUnsuited(DovetailError):
    """The cluster cannot be served; the message is the sentence for the person who runs Dovetail."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What was found out about the cluster."""

    version: str
    """The server's version, and the one that it emulates where that is another."""
    features: Features
    optional: frozenset[str]
    """The plurals of the optional kinds that it serves."""
    tells_gates: bool = True
    """The API server itself said which gates are on; else they follow its version."""


async def examine(reader: Reader, settings: Settings) -> Cluster:
    """Find out what the cluster can do; raises `ClusterUnsuited` where it cannot be served at all."""
    version = await reader.read_json("/version")
    name = _name_of(version)
    if not await reader.is_served(CLAIM):
        remedy = (
            "upgrade to 1.34 or newer"
            if _minor(version) < FIRST_MINOR
            else "the API server's --runtime-config switches it off"
        )
        raise ClusterUnsuited(
            f"Kubernetes {name} does not serve {CLAIM.api_version} ResourceClaims, "
            f"which Dovetail needs: {remedy}"
        )
    served = [kind.plural for kind in OPTIONAL if await reader.is_served(kind)]
    told = await _gates_told(reader)
    gates = _gates_by(_minor(version)) | (told or {}) | dict(settings.gates)
    return Cluster(name, Features.none().with_gates(gates), frozenset(served), told is not None)


async def missing_rights(pen: Pen, settings: Settings, cluster: Cluster, namespace: str) -> tuple[Right, ...]:
    """Which rights are missing, by asking for each (A1-A6)."""
    needed = rights_needed(settings, lease_namespace=namespace, optional=cluster.optional)
    answers = await asyncio.gather(*(_may(pen, right) for right in needed))
    return tuple(right for right, allowed in zip(needed, answers, strict=True) if not allowed)


async def _may(pen: Pen, right: Right) -> bool:
    plural, _, subresource = right.resource.partition("/")
    attributes = {
        "group": right.group,
        "resource": plural,
        "subresource": subresource,
        "verb": right.verb,
        "namespace": right.namespace,
    }
    body = {
        "apiVersion": ACCESS_REVIEW.api_version,
        "kind": ACCESS_REVIEW.name,
        "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
    }
    try:
        # A review changes nothing, so that it may be asked again.
        answer = await patiently(lambda: pen.create(ACCESS_REVIEW, "", body))
    except NotFound:
        # A server without authorization lets everything through.
        return True
    return bool((answer.get("status") or {}).get("allowed"))


def _gates_by(minor: int) -> dict[str, bool]:
    """The defaults of a version."""
    return {gate: _SINCE.get(gate, 1 << 30) <= minor for gate in GATES}


async def _gates_told(reader: Reader) -> dict[str, bool] | None:
    """What the API server's metrics say; None where they cannot be had."""
    try:
        text = await reader.read_text("/metrics")
    except ClusterError as error:
        log.info("gates_by_version", reason=str(error))
        return None
    return {name: value == "1" for name, value in _ENABLED.findall(text) if name in GATES}


def _name_of(version: Mapping[str, object]) -> str:
    own, emulated = version.get("minor"), version.get("emulationMinor")
    name = str(version.get("gitVersion", "unknown"))
    return (
        f"{name} emulating {version.get('emulationMajor')}.{emulated}"
        if emulated not in (None, "", own)
        else name
    )


def _minor(version: Mapping[str, object]) -> int:
    """The minor version whose APIs and gates the server has: it may emulate an older one (KEP-4330)."""
    digits = re.match(r"\d+", str(version.get("emulationMinor") or version.get("minor", "")))
    return int(digits.group()) if digits else 37
