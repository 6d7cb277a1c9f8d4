"""How much of a node's resources a pod takes, as kube-scheduler counts (component-helpers/resource)."""

from collections.abc import Iterable, Mapping

from dovetail.api.nodes import Node
from dovetail.api.pods import Container, Pod, ResourceRequirements
from dovetail.api.slices import Amount
from dovetail.core.quantity import Quantity

Amounts = dict[str, int]
"""Amounts by resource: cpu in thousandths, everything else in whole units, rounded up."""

CPU = "cpu"
PODS = "pods"


def requests_of(pod: Pod) -> Amounts:
    """What the pod takes: containers, the widest moment of its init containers, overhead; without zeros.

    A limit without a request counts as the request, as the API server would fill it in.
    Raises ValueError for an amount that is no quantity.
    """
    total = _of_containers(pod)
    if pod.spec.resources is not None:
        total |= _of_pod_level(pod.spec.resources, total)
    _add(total, read_amounts(pod.spec.overhead))
    return {resource: amount for resource, amount in total.items() if amount > 0}


def allocatable_of(node: Node) -> Amounts:
    """What the node offers to pods; its capacity, where it does not say. Raises ValueError."""
    return read_amounts(node.status.allocatable or node.status.capacity)


def read_amounts(amounts: Mapping[str, Amount]) -> Amounts:
    """Amounts as integers, rounded up. Raises ValueError for an amount that is no quantity."""
    return {resource: _whole(resource, amount) for resource, amount in amounts.items()}


def human(resource: str, amount: int) -> str:
    """An amount for people: `1500m` of cpu, `1Gi` of memory."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource == "memory" or resource.startswith("hugepages-") or resource == "ephemeral-storage":
        return str(Quantity.of(amount, "BinarySI"))
    return str(amount)


def _whole(resource: str, amount: Amount) -> int:
    quantity = Quantity.parse(amount)
    return quantity.milli_value if resource == CPU else quantity.value


def _of_containers(pod: Pod) -> Amounts:
    """The sum of what runs together, or the widest moment during initialisation, whichever is more.

    Sidecars (init containers that restart always) run beside everything that starts after them.
    """
    running = _sum(_of_container(container) for container in pod.spec.containers)
    sidecars: Amounts = {}
    widest: Amounts = {}
    for container in pod.spec.init_containers:
        moment = _of_container(container)
        if container.restart_policy == "Always":
            _add(running, moment)
            _add(sidecars, moment)
            moment = dict(sidecars)
        else:
            _add(moment, sidecars)
        _widen(widest, moment)
    _widen(running, widest)
    return running


def _of_container(container: Container) -> Amounts:
    resources = container.resources
    return read_amounts({**resources.limits, **resources.requests})


def _of_pod_level(resources: ResourceRequirements, containers: Amounts) -> Amounts:
    """Requests of the pod as a whole; a limit counts as one where no container asks (KEP-2837)."""
    limits = {
        resource: amount for resource, amount in resources.limits.items() if not containers.get(resource)
    }
    asked = {**limits, **resources.requests}
    return read_amounts({resource: asked[resource] for resource in asked if _is_pod_level(resource)})


def _is_pod_level(resource: str) -> bool:
    return resource in (CPU, "memory") or resource.startswith("hugepages-")


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        _add(total, part)
    return total


def _add(total: Amounts, part: Amounts) -> None:
    for resource, amount in part.items():
        total[resource] = total.get(resource, 0) + amount


def _widen(total: Amounts, part: Amounts) -> None:
    for resource, amount in part.items():
        total[resource] = max(total.get(resource, 0), amount)
