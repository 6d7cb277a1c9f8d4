"""Node, as far as placing pods on it needs (core/v1)."""

from dovetail.api.meta import KubernetesObject, Listed, Mapped, Model
from dovetail.api.selection import Taint
from dovetail.api.slices import Amount


class NodeSpec(Model):
    """What is asked of the node."""

    taints: Listed[Taint] = ()
    unschedulable: bool = False


class NodeStatus(Model):
    """What the node offers."""

    capacity: Mapped[Amount] = {}
    allocatable: Mapped[Amount] = {}
    declared_features: Listed[str] = ()


class Node(KubernetesObject):
    """A node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
