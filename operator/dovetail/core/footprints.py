"""What a pod takes of a node and asks of it, computed once when the pod is seen."""

from dataclasses import dataclass, replace

from dovetail.api.meta import Model
from dovetail.api.pods import Pod
from dovetail.api.selection import NodeSelector, Toleration
from dovetail.core.decisions import ObjectKey
from dovetail.core.resources import Amounts, requests_of


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node's own addresses; an empty address is every address."""

    address: str
    protocol: str
    port: int

    def conflicts(self, other: "HostPort") -> bool:
        """Two pods cannot both have them (kube-scheduler's HostPortInfo)."""
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.address == other.address or ANY_ADDRESS in (self.address, other.address)


ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - compared with, never bound to


class Shape(Model):
    """What decides which nodes a pod can use whatever runs there: equal shapes are judged once."""

    selector: tuple[tuple[str, str], ...] = ()
    affinity: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """A pod with what it takes; compared by identity."""

    key: ObjectKey
    pod: Pod
    requests: Amounts
    ports: tuple[HostPort, ...]
    shape: Shape
    demand: tuple[tuple[str, int], ...]
    """The requests as a value that can be compared and hashed."""

    @property
    def priority(self) -> int:
        """The pod's priority; 0 where it says nothing."""
        return self.pod.spec.priority or 0

    def with_requests(self, requests: Amounts) -> "Footprint":
        """The same pod with other requests."""
        return replace(self, requests=requests, demand=tuple(sorted(requests.items())))


def footprint_of(pod: Pod) -> Footprint:
    """Raises ValueError for an amount that is no quantity."""
    requests = requests_of(pod)
    return Footprint(pod.key, pod, requests, _host_ports(pod), _shape(pod), tuple(sorted(requests.items())))


def _shape(pod: Pod) -> Shape:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return Shape(
        selector=tuple(sorted(pod.spec.node_selector.items())),
        affinity=affinity.required if affinity else None,
        tolerations=pod.spec.tolerations,
    )


def _host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Ports of containers and sidecars; other init containers hold theirs only for a moment.

    On the host's network every port is the host's, as the API server would fill in.
    """
    sidecars = (container for container in pod.spec.init_containers if container.restart_policy == "Always")
    ports = [port for container in (*pod.spec.containers, *sidecars) for port in container.ports]
    numbers = [port.host_port or (port.container_port if pod.spec.host_network else None) for port in ports]
    return tuple(
        HostPort(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", number)
        for port, number in zip(ports, numbers, strict=True)
        if number and number > 0
    )
