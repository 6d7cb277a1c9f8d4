"""Devices that pods are about to get for extended resources count as held before they have them (KEP-5004).

kube-scheduler makes such a claim only when it binds the pod.
Until then nothing in the cluster says that the devices are taken, and a second pod could be sent to a node
that has none left for it.
"""

from dovetail.api.claims import AllocationResult, ResourceClaim, ResourceClaimStatus
from dovetail.api.meta import ObjectMeta
from dovetail.core import outcome
from dovetail.core.allocator import place
from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.decisions import ObjectKey
from dovetail.core.extended import ExtendedHold, groups_of
from dovetail.core.nodes import Hold
from dovetail.core.world import World

STEPS = 20_000
"""How much work one pod's devices may cost; a pod for which that is too little holds nothing."""


def settle(world: World) -> None:
    """Hold, and let go, what pods with devices on a node ask for besides; quick where nobody asks.

    Each pod is tried once: one for which there is nothing left is tried again when it or its claims change.
    """
    for key in tuple(world.extended_holds):
        if _node_of(world, key) != world.extended_holds[key].node:
            let_go(world, key)
    due, world.extended_due = world.extended_due, {}
    for key in due:
        node = _node_of(world, key)
        if node and key not in world.extended_holds:
            _hold(world, key, node)


def let_go(world: World, key: ObjectKey) -> None:
    """Count the pod's devices as held no longer."""
    held = world.extended_holds.pop(key, None)
    if held is not None:
        world.inventory.drop_claim(*held.claim)


def _node_of(world: World, key: ObjectKey) -> str:
    """The node where the pod waits for such devices; empty where it has them, or is not expected anywhere."""
    pod, home = world.pods.get(key), world.nodes.home_of(key)
    if pod is None or home is None or home.hold is Hold.NOMINATED:
        return ""
    if pod.status.extended_resource_claim_status is not None or pod.status.phase == "Running":
        return ""
    return home.node


def _hold(world: World, key: ObjectKey, node: str) -> None:
    for claim, nodes in groups_of(world, world.footprints[key], (node,)):
        if claim is None:
            return
        try:
            answer = place(world.inventory, (claim,), nodes, budget=Budget(STEPS))
        except (BudgetSpent, outcome.RequestInvalid):
            return
        if isinstance(answer, outcome.Fits):
            name = (key[0], f"{key[1]}-extended-resources-*")
            world.inventory.put_claim(_held(claim, name, answer.allocations[0]))
            world.extended_holds[key] = ExtendedHold(node, name)


def _held(claim: ResourceClaim, name: ObjectKey, allocation: outcome.Allocation) -> ResourceClaim:
    return ResourceClaim(
        metadata=ObjectMeta(namespace=name[0], name=name[1]),
        spec=claim.spec,
        status=ResourceClaimStatus(allocation=AllocationResult.model_validate(allocation.body)),
    )
