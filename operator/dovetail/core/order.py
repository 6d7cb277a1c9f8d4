"""Who is served first: by priority, then by age."""

from collections.abc import Iterable

from dovetail.api.pods import Pod


def order_of(pods: Iterable[Pod]) -> list[Pod]:
    """The pods in the order in which they are served: by priority, then by age; else as they come."""
    return sorted(pods, key=_rank)


def _rank(pod: Pod) -> tuple[int, bool, str]:
    created = pod.metadata.creation_timestamp
    return (-(pod.spec.priority or 0), created is None, created or "")
