"""Why a pod cannot use a node: causes as data, words made once at the end."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from dovetail.core.resources import human


class NodeCause(enum.StrEnum):
    """Why kube-scheduler would refuse the node; the value is the phrase for one or more nodes."""

    UNSCHEDULABLE = "cordoned"
    TAINT = "tainted"
    SELECTOR = "without the labels of the pod's node selector"
    AFFINITY = "outside the pod's required node affinity"
    RESOURCES = "short of"
    PODS = "full of pods"
    DEVICE_RESOURCES = "with devices that stand for an amount which nobody can tell"
    POD_LEVEL = "unable to serve the pod within its own limits"
    CLAIM_ELSEWHERE = "out of reach of an allocated claim"
    POD_AFFINITY = "without the pods that the pod's required affinity asks for"
    POD_ANTI_AFFINITY = "with pods that the pod's required anti-affinity avoids"
    AVOIDED_BY_POD = "avoided by the required anti-affinity of a pod"
    SPREAD = "against the pod's topology spread"
    HOST_PORT = "with a host port in use"
    VOLUME = "out of reach of a volume"
    VOLUME_LIMIT = "at their limit of volumes"
    AVOIDED = "avoided after a failed attempt"
    GONE = "gone"
    APART = "needed at once"


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """One node's refusal; `detail` says what is in the way, in words that equal nodes share.

    For a resource that is short, `detail` is what the pod wants and `left` what the node has left.
    """

    cause: NodeCause
    detail: str = ""
    resource: str = ""
    left: int = field(default=0, compare=False)


def summarize(refusals: Iterable[NodeRefusal], *, most: int = 4) -> str:
    """The refusals as a phrase, the most frequent first: `3 nodes are cordoned, 1 node is short of cpu`.

    At most `most` groups are named; the same refusals in any order give the same words.
    """
    groups: dict[NodeRefusal, list[NodeRefusal]] = {}
    for refusal in refusals:
        groups.setdefault(refusal, []).append(refusal)
    ranked = sorted(groups.values(), key=lambda group: (-len(group), *_order(group[0])))
    phrases = [_phrase(group) for group in ranked[:most]]
    if rest := sum(len(group) for group in ranked[most:]):
        phrases.append(f"{rest} more for other reasons")
    return ", ".join(phrases)


def _order(refusal: NodeRefusal) -> tuple[str, str, str]:
    return (refusal.cause.value, refusal.resource, refusal.detail)


def _phrase(group: list[NodeRefusal]) -> str:
    refusal, count = group[0], len(group)
    nodes = f"{count} node is" if count == 1 else f"{count} nodes are"
    if refusal.cause is NodeCause.RESOURCES:
        left = human(refusal.resource, max(each.left for each in group))
        most = "at most " if count > 1 else ""
        return f"{nodes} short of {refusal.resource} ({refusal.detail} wanted, {most}{left} left)"
    detail = f" ({refusal.detail})" if refusal.detail else ""
    return f"{nodes} {refusal.cause.value}{detail}"
