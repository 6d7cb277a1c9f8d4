"""The conditions of a pod that depend on what else runs, or is stored, where: prepared once per decision."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from dovetail.core.affinity import affinity_filter
from dovetail.core.budget import Budget
from dovetail.core.footprints import Footprint
from dovetail.core.node_refusals import NodeRefusal
from dovetail.core.nodes import NodeState
from dovetail.core.ports import ports_filter
from dovetail.core.spread import spread_filter
from dovetail.core.volume_limits import volume_limits_filter
from dovetail.core.volumes import volumes_filter

if TYPE_CHECKING:
    from dovetail.core.world import World


class NodeFilter(Protocol):
    """One condition of one pod; asked about nodes of the world that it was made for, until that changes."""

    def refuse(self, state: NodeState) -> NodeRefusal | None:
        """Why the pod cannot use the node, or None."""
        ...


def filters_for(world: "World", footprint: Footprint, budget: Budget) -> Iterator[NodeFilter]:
    """The conditions that the pod has; for most pods, none. Raises `BudgetSpent`."""
    makers: tuple[Callable[[World, Footprint], NodeFilter | None], ...] = (
        ports_filter,
        lambda world, footprint: affinity_filter(world, footprint, budget),
        lambda world, footprint: spread_filter(world, footprint, budget),
        volumes_filter,
        volume_limits_filter,
    )
    for make in makers:
        made = make(world, footprint)
        if made is not None:
            yield made
