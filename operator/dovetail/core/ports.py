"""Whether the host ports of a pod are free on a node (kube-scheduler's NodePorts)."""

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from dovetail.core.footprints import Footprint, HostPort
from dovetail.core.node_refusals import NodeCause, NodeRefusal
from dovetail.core.nodes import NodeState, pods_beside, pods_expected

if TYPE_CHECKING:
    from dovetail.core.world import World


@dataclass(frozen=True, slots=True)
class PortsFilter:
    """The ports that the pod wants of its node."""

    footprint: Footprint

    def refuse(self, state: NodeState) -> NodeRefusal | None:
        """The first port that another pod on the node has."""
        others = chain(pods_beside(state, self.footprint), pods_expected(state, self.footprint))
        taken = [port for other in others for port in other.ports]
        for wanted in self.footprint.ports:
            if any(wanted.conflicts(port) for port in taken):
                return NodeRefusal(NodeCause.HOST_PORT, _name(wanted))
        return None


def ports_filter(_: "World", footprint: Footprint) -> PortsFilter | None:
    """None for a pod that wants no host port."""
    return PortsFilter(footprint) if footprint.ports else None


def _name(port: HostPort) -> str:
    return f"{port.port}/{port.protocol}"
