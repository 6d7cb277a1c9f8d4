"""How much of a node's resources a pod takes, as kube-scheduler counts (component-helpers/resource)."""

from collections.abc import Callable, Iterable, Mapping

from dovetail.api.nodes import Node
from dovetail.api.pods import Container, Pod, ResourceRequirements
from dovetail.api.slices import Amount
from dovetail.core.quantity import Quantity

Amounts = dict[str, int]
"""Amounts by resource: cpu in thousandths, everything else in whole units, rounded up."""

Reading = Callable[[Container], Amounts]
"""One way to say what a container takes."""

RESIZE_PENDING = "PodResizePending"
INFEASIBLE = "Infeasible"

CPU = "cpu"
PODS = "pods"


def requests_of(pod: Pod) -> Amounts:
    """What the pod takes: containers, the widest moment of its init containers, overhead; without zeros.

    A limit without a request counts as the request, as the API server would fill it in.
    A pod that runs, and is being resized, takes the most of what it wants, has and was promised.
    Raises ValueError for an amount that is no quantity.
    """
    total = _running(pod) if pod.spec.node_name else _of_containers(pod, _wanted)
    if pod.spec.resources is not None:
        total |= _of_pod_level(pod.spec.resources, total)
    _add(total, read_amounts(pod.spec.overhead))
    return {resource: amount for resource, amount in total.items() if amount > 0}


def requests_of_containers(pod: Pod) -> Amounts:
    """What the containers take together, without overhead and without requests of the pod as a whole."""
    return _of_containers(pod, _wanted)


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


def _running(pod: Pod) -> Amounts:
    """As kube-scheduler counts pods on nodes; a resize that the node cannot do does not count (KEP-1287)."""
    known = {
        each.name: each for each in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    }
    if not any(status.resources or status.allocated_resources for status in known.values()):
        return _of_containers(pod, _wanted)
    infeasible = any(
        condition.type == RESIZE_PENDING and condition.reason == INFEASIBLE
        for condition in pod.status.conditions
    )
    otherwise: Reading = _nothing if infeasible else _wanted

    def promised(container: Container) -> Amounts:
        status = known.get(container.name)
        if status is None or status.allocated_resources is None:
            return otherwise(container)
        return read_amounts(status.allocated_resources)

    def held(container: Container) -> Amounts:
        status = known.get(container.name)
        if status is None or status.resources is None or not status.resources.requests:
            return promised(container)
        return read_amounts(status.resources.requests)

    total = _of_containers(pod, held)
    _widen(total, _of_containers(pod, promised))
    if not infeasible:
        _widen(total, _of_containers(pod, _wanted))
    return total


def _of_containers(pod: Pod, reading: Reading) -> Amounts:
    """The sum of what runs together, or the widest moment during initialisation, whichever is more.

    Sidecars (init containers that restart always) run beside everything that starts after them.
    """
    running = total_of(reading(container) for container in pod.spec.containers)
    sidecars: Amounts = {}
    widest: Amounts = {}
    for container in pod.spec.init_containers:
        moment = reading(container)
        if container.restart_policy == "Always":
            _add(running, moment)
            _add(sidecars, moment)
            moment = dict(sidecars)
        else:
            _add(moment, sidecars)
        _widen(widest, moment)
    _widen(running, widest)
    return running


def _nothing(_: Container) -> Amounts:
    return {}


def _wanted(container: Container) -> Amounts:
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


def total_of(parts: Iterable[Amounts]) -> Amounts:
    """The sum, resource by resource."""
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
