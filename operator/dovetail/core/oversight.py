"""The audit and the fence as questions to the picture: operator and command line ask alike."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dovetail.api.claims import DeviceClass, ResourceClaim
from dovetail.api.ownership import DeviceOwnership
from dovetail.api.pods import Pod
from dovetail.api.slices import DeviceTaintRule, ResourceSlice
from dovetail.core.audit import Evidence, audit, passes_unnamed
from dovetail.core.cel import Memory
from dovetail.core.devices import DeviceView
from dovetail.core.fence_effects import Waiting, stopped_by
from dovetail.core.findings import Finding
from dovetail.core.ours import judge_claim
from dovetail.core.world import World


def audit_world(world: World) -> tuple[Finding, ...]:
    """Everything that is wrong in the picture, sorted."""
    return audit(evidence_in(world))


def evidence_in(world: World) -> Evidence:
    """The picture as the audit takes it; what could not be read is said."""
    return Evidence(
        claims=tuple(world.claims.values()),
        slices=slices_in(world),
        pods=tuple(world.pods.values()),
        nodes=tuple(node for node in (state.node for state in world.nodes) if node is not None),
        rules=tuple(
            rule for rule in world.others["DeviceTaintRule"].values() if isinstance(rule, DeviceTaintRule)
        ),
        ours=frozenset(claim.key for claim in world.claims.values() if _is_ours_and_passes(claim, world)),
        classes=tuple(world.inventory.classes.values()),
        allows_dual_mode=not world.inventory.withholds_plugged,
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


def slices_in(world: World) -> tuple[ResourceSlice, ...]:
    """Every slice."""
    slices = world.others["ResourceSlice"].values()
    return tuple(entry for entry in slices if isinstance(entry, ResourceSlice))


@dataclass(frozen=True, slots=True)
class Bystanders:
    """Who may wait because of fences, and for what: `owned` are distinct devices by the object's name."""

    owned: Mapping[str, tuple[DeviceView, ...]]
    classes: Mapping[str, DeviceClass]
    claims: tuple[ResourceClaim, ...]
    pods: tuple[Pod, ...]

    def stopped(self, memory: Memory) -> Mapping[str, tuple[Waiting, ...]]:
        """Whom each object's fence keeps waiting."""
        return {
            name: stopped_by(owned, classes=self.classes, claims=self.claims, pods=self.pods, memory=memory)
            for name, owned in self.owned.items()
        }


def bystanders_in(world: World) -> Bystanders:
    """The claims and pods of others that wait, and the owned devices that they may wait for."""
    ownerships = ownerships_in(world)
    if not ownerships:
        return Bystanders({}, {}, (), ())
    waiting = (claim for claim in world.claims.values() if claim.status.allocation is None)
    return Bystanders(
        owned={owner.metadata.name: tuple(_owned(world, owner)) for owner in ownerships},
        classes=dict(world.inventory.classes),
        claims=tuple(claim for claim in waiting if not judge_claim(claim.spec, world).ours),
        pods=tuple(pod for pod in world.pods.values() if not pod.spec.node_name),
    )


def _owned(world: World, ownership: DeviceOwnership) -> Iterator[DeviceView]:
    """Devices of the object as selectors see them; slices of equal content are looked at once."""
    seen: set[int] = set()
    for pool in world.inventory.offers.pools.values():
        entries = [
            entry
            for entry in ownership.spec.devices
            if entry.driver == pool.key.driver and entry.pool in (None, pool.key.pool)
        ]
        for published in pool.newest() if entries else ():
            if id(published.content) in seen:
                continue
            if any(entry.device is None for entry in entries):
                seen.add(id(published.content))
            for device in published.content.devices:
                if any(entry.device in (None, device.name) for entry in entries):
                    yield device.view


def _is_ours_and_passes(claim: ResourceClaim, world: World) -> bool:
    # To judge every claim of a cluster takes long, and only these matter.
    return any(passes_unnamed(claim)) and judge_claim(claim.spec, world).ours
