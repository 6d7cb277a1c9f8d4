"""Asking which nodes a pod can use."""

from dovetail.core.candidates import Candidates, Party, candidates_for
from dovetail.core.node_refusals import NodeCause
from dovetail.core.world import World


def candidates(world: World, name: str = "pod") -> Candidates:
    """What is said of every node to a pod of the world."""
    return candidates_for(world, Party((world.footprints["default", name],)))


def usable(world: World, name: str = "pod") -> tuple[str, ...]:
    """The nodes that a pod of the world can use."""
    return candidates(world, name).usable


def cause(world: World, node: str, name: str = "pod") -> NodeCause:
    """Why a pod of the world cannot use a node."""
    return candidates(world, name).refused[node].cause
