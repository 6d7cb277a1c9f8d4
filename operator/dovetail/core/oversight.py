"""The audit and the fence as questions to the picture: operator and command line ask alike."""

from collections.abc import Iterator

from dovetail.api.claims import ResourceClaim
from dovetail.api.ownership import DeviceOwnership
from dovetail.api.slices import ResourceSlice
from dovetail.core.audit import Evidence, audit, passes_unnamed
from dovetail.core.cel import Memory
from dovetail.core.devices import DeviceView
from dovetail.core.fence_effects import Waiting, stopped_by
from dovetail.core.findings import Finding
from dovetail.core.ours import judge_claim
from dovetail.core.ownership import Fence, fence_of
from dovetail.core.pool_records import read_pools
from dovetail.core.world import World


def audit_world(world: World) -> tuple[Finding, ...]:
    """Everything that is wrong in the picture, sorted."""
    return audit(evidence_in(world))


def evidence_in(world: World) -> Evidence:
    """The picture as the audit takes it; what could not be read is said."""
    return Evidence(
        claims=tuple(world.claims.values()),
        slices=_slices(world),
        pods=tuple(world.pods.values()),
        nodes=tuple(node for node in (state.node for state in world.nodes) if node is not None),
        ownerships=ownerships_in(world),
        ours=frozenset(claim.key for claim in world.claims.values() if _is_ours_and_passes(claim, world)),
        malformed=tuple(
            f"{problem.kind} {'/'.join(filter(None, problem.key))} is malformed: {problem.reason}"
            for problem in world.problems.values()
        ),
    )


def ownerships_in(world: World) -> tuple[DeviceOwnership, ...]:
    """Every DeviceOwnership."""
    return tuple(
        owner for owner in world.others["DeviceOwnership"].values() if isinstance(owner, DeviceOwnership)
    )


def fence_in(world: World, ownership: DeviceOwnership) -> Fence:
    """The rules that the object wants, given what drivers publish now."""
    return fence_of(ownership, read_pools(_slices(world)))


def stopped_in(world: World, ownership: DeviceOwnership, memory: Memory) -> tuple[Waiting, ...]:
    """Whom the object's fence keeps waiting."""
    claims = tuple(
        claim
        for claim in world.claims.values()
        if claim.status.allocation is None and not judge_claim(claim.spec, world).ours
    )
    return stopped_by(
        _owned(world, ownership),
        classes=world.inventory.classes,
        claims=claims,
        pods=world.pods.values(),
        memory=memory,
    )


def _owned(world: World, ownership: DeviceOwnership) -> Iterator[DeviceView]:
    for device in world.inventory.devices():
        key = device.key
        if any(entry.covers(key.driver, key.pool, key.device) for entry in ownership.spec.devices):
            yield device


def _slices(world: World) -> tuple[ResourceSlice, ...]:
    return tuple(
        entry for entry in world.others["ResourceSlice"].values() if isinstance(entry, ResourceSlice)
    )


def _is_ours_and_passes(claim: ResourceClaim, world: World) -> bool:
    # To judge every claim of a cluster takes long, and only these matter.
    return any(passes_unnamed(claim)) and judge_claim(claim.spec, world).ours
