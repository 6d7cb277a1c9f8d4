"""Whether anything is wrong, at any moment of a run: the audit on consistent snapshots of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from time import monotonic

import aiohttp

from dovetail.core.features import Features
from dovetail.core.findings import TRANSIENT, Fault, Finding
from dovetail.core.oversight import audit_world
from dovetail.core.world import World
from e2e.harness import ApiError, Kube, Object, allocated, running

KINDS = (
    "ResourceClaim",
    "Pod",
    "ResourceSlice",
    "Node",
    "DeviceClass",
    "DerivedAttribute",
    "DeviceOwnership",
)
AUDIT_PAUSE_SECONDS = 3.0

LASTING_SECONDS = 30.0
"""What controllers repair may show for so long: one of them may have been killed meanwhile."""

Snapshot = Mapping[str, tuple[Object, ...]]
Absences = Mapping[tuple[str, str], float]
"""When a pool that was wiped came back; infinity while it is away."""


async def snapshot(kube: Kube) -> Snapshot:
    """All objects that the audit reads, of one moment: every list is of the same resourceVersion."""
    first, *rest = KINDS
    claims = await kube.listing(first)
    exact = {"resourceVersion": claims.resource_version, "resourceVersionMatch": "Exact"}
    return {first: claims.items} | {kind: (await kube.listing(kind, **exact)).items for kind in rest}


def audit(found: Snapshot) -> tuple[Finding, ...]:
    """What `dovetail audit` says of a snapshot."""
    world = World(Features())
    for kind, items in found.items():
        for item in items:
            world.put(kind, {"kind": kind, **item})
    return audit_world(world)


def was_made_twice(finding: Finding, found: Snapshot) -> bool:
    """Whether the pod holds its devices by another claim that was made for the same entry (G22).

    kube-controller-manager makes a second claim when the answer to the first one is lost with the API server,
    and may name that one in the status of a pod that has its node already.
    """
    if finding.fault is not Fault.BOUND_WITHOUT_DEVICES:
        return False
    claims = {_key(claim): claim for claim in found["ResourceClaim"]}
    named = claims.get(finding.claims[0])
    made_for = _made_for(named) if named else None
    return made_for is not None and any(
        _made_for(other) == made_for and allocated(other)
        for key, other in claims.items()
        if key != finding.claims[0]
    )


def _key(claim: Object) -> tuple[str, str]:
    return claim["metadata"]["namespace"], claim["metadata"]["name"]


def _made_for(claim: Object) -> tuple[str, str] | None:
    """The uid of the pod that the claim was made for, and the entry; None where a person made it."""
    metadata = claim["metadata"]
    entry = (metadata.get("annotations") or {}).get("resource.kubernetes.io/pod-claim-name")
    owners = metadata.get("ownerReferences") or ()
    return (owners[0]["uid"], entry) if entry and owners else None


class Judge:
    """Audits again and again; `wrong` has a sentence for everything that was found and may not be.

    `ran` names the pods that it saw running.
    """

    def __init__(self, kube: Kube, absent: Absences) -> None:
        self._kube = kube
        self._absent = absent
        self._since: dict[Finding, float] = {}
        self.audits = 0
        self.ran: set[str] = set()
        self.wrong: dict[str, float] = {}

    async def run(self) -> None:
        """Audit for ever; an API server that is away is asked again."""
        while True:
            try:
                await self.look()
            except (ApiError, aiohttp.ClientError, ConnectionError):
                # Away, or its history was compacted between two lists.
                await asyncio.sleep(0.5)
                continue
            await asyncio.sleep(AUDIT_PAUSE_SECONDS)

    async def look(self) -> Snapshot:
        """Audit once; returns what was seen."""
        found = await snapshot(self._kube)
        now = monotonic()
        findings = [
            finding
            for finding in audit(found)
            if not self._is_expected(finding, now) and not was_made_twice(finding, found)
        ]
        self._since = {finding: self._since.get(finding, now) for finding in findings}
        for finding, since in self._since.items():
            if finding.fault not in TRANSIENT or now - since > LASTING_SECONDS:
                self.wrong.setdefault(f"{finding.fault}: {finding.sentence}", now)
        self.audits += 1
        self.ran |= {pod["metadata"]["name"] for pod in found["Pod"] if running(pod)}
        return found

    @property
    def is_clean(self) -> bool:
        """The last audit found nothing at all, not even what would pass."""
        return not self._since

    def _is_expected(self, finding: Finding, now: float) -> bool:
        """The device's driver has just been taken away, by the script."""
        if finding.fault is not Fault.NO_SUCH_DEVICE or finding.device is None:
            return False
        back = self._absent.get((finding.device.driver, finding.device.pool))
        return back is not None and now < back + LASTING_SECONDS
