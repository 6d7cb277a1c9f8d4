"""What would become of all waiting pods, one after the other, each seeing what the earlier ones got."""

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from dovetail.api.claims import ResourceClaim
from dovetail.api.mappings import ALIGNMENT_ANNOTATION
from dovetail.api.pods import Pod
from dovetail.core.budget import Budget
from dovetail.core.cases import case_of
from dovetail.core.decisions import Decision, Grant, Nothing, ObjectKey, Place, Reserve
from dovetail.core.extended_holds import settle
from dovetail.core.generation import Create, Impossible, steps_for
from dovetail.core.order import order_of
from dovetail.core.outcome import Allocation
from dovetail.core.planner import PlanSettings, plan_pod
from dovetail.core.world import World


@dataclass(frozen=True, slots=True)
class Served:
    """One entry of a pod that has its devices; `claim` is None where the claim exists only in the forecast.

    `planned` is None where the claim was allocated before.
    """

    entry: str
    claim: ResourceClaim
    exists: bool
    planned: Allocation | None
    ours: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would become of one pod.

    `node` is where it would run, None where that is open.
    `served` is empty unless all its claims of ours get, or have, their devices.
    """

    pod: Pod
    decision: Decision
    node: str | None = None
    served: tuple[Served, ...] = ()
    generation: Impossible | None = None


def forecast(
    world: World,
    *,
    settings: PlanSettings,
    budget: Callable[[], Budget],
    ending: Collection[str] = frozenset(),
) -> Iterator[Forecast]:
    """Every pod that has no node and is not done, in the order in which the operator would serve it.

    The world is changed along the way: claims are made, allocated and reserved, and pods get nodes.
    Pods need a UID: claims are made for it.
    `budget` makes a new budget for each pod; `ending` are namespaces that are being deleted.
    """
    waiting = [pod for pod in world.pods.values() if _is_waiting(pod)]
    made: set[ObjectKey] = set()
    failed = {
        pod.key: failure for pod in waiting if (failure := _generate(world, pod, made, ending)) is not None
    }
    for pod in order_of(waiting):
        settle(world)
        decision = plan_pod(world, pod, settings=settings, budget=budget())
        node = _node(world, pod, decision)
        served = _served(world, pod, decision, made)
        _apply(world, pod, decision)
        settle(world)
        if node is not None:
            _bind(world, pod, node)
        yield Forecast(pod, decision, node, served, failed.get(pod.key))


def _is_waiting(pod: Pod) -> bool:
    return not (pod.spec.node_name or pod.is_done or pod.metadata.deletion_timestamp)


def _generate(world: World, pod: Pod, made: set[ObjectKey], ending: Collection[str]) -> Impossible | None:
    """Make the pod's missing claims; what cannot be made is told."""
    namespace = pod.metadata.namespace
    for step in steps_for(world, pod):
        if isinstance(step, Impossible):
            return step
        if isinstance(step, Create):
            if namespace in ending:
                message = f"namespace {namespace!r} is being deleted: no claim can be created in it"
                return Impossible(step.entry, message)
            world.put("ResourceClaim", step.body)
            made.add((pod.metadata.namespace, step.body["metadata"]["name"]))
    return None


def _served(world: World, pod: Pod, decision: Decision, made: set[ObjectKey]) -> tuple[Served, ...]:
    if not isinstance(decision, Place | Reserve | Nothing):
        return ()
    grants = {grant.claim: grant for grant in decision.grants} if isinstance(decision, Place) else {}
    served = []
    for entry in world.claims_of_pod(pod):
        claim = world.claims.get(entry.key) if entry.key is not None else None
        if claim is None:
            continue
        grant = grants.get(claim.key)
        if grant is None and claim.status.allocation is None:
            continue
        served.append(
            Served(
                entry=entry.name,
                claim=claim,
                exists=claim.key not in made,
                planned=grant.allocation if grant else None,
                ours=grant.ours if grant else ALIGNMENT_ANNOTATION in claim.metadata.annotations,
            )
        )
    return tuple(served)


def _node(world: World, pod: Pod, decision: Decision) -> str | None:
    """The node that kube-scheduler would bind the pod to, as far as its devices tell."""
    match decision:
        case Place() | Reserve():
            return decision.node
        case Nothing():
            return case_of(world, pod).tied_to
        case _:
            return None


def _apply(world: World, pod: Pod, decision: Decision) -> None:
    """Let the world be as after the writes of the operator."""
    match decision:
        case Place():
            for grant in decision.grants:
                _reserve(world, grant.claim, pod, grant)
            for key in decision.reserve:
                _reserve(world, key, pod, None)
        case Reserve():
            for key in decision.claims:
                _reserve(world, key, pod, None)
        case _:
            pass


def _reserve(world: World, key: ObjectKey, pod: Pod, grant: Grant | None) -> None:
    raw = world.raw("ResourceClaim", *key)
    if raw is None:
        return
    status = dict(raw.get("status") or {})
    consumer = {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
    status["reservedFor"] = [*(status.get("reservedFor") or ()), consumer]
    metadata = dict(raw["metadata"])
    if grant is not None:
        status["allocation"] = grant.allocation.body
    if grant is not None and grant.ours:
        told = json.dumps([entry.as_json() for entry in grant.allocation.alignment])
        metadata["annotations"] = {**(metadata.get("annotations") or {}), ALIGNMENT_ANNOTATION: told}
    world.put("ResourceClaim", {**raw, "metadata": metadata, "status": status})


def _bind(world: World, pod: Pod, node: str) -> None:
    raw = world.raw("Pod", *pod.key)
    if raw is not None:
        world.put("Pod", {**raw, "spec": {**raw["spec"], "nodeName": node}})
