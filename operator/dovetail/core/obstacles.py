"""What keeps a pod from being planned at all: somebody has to act first, or something is wrong."""

from collections.abc import Collection, Iterator

from dovetail.api.mappings import GATE, GROUP
from dovetail.api.pods import Pod
from dovetail.core.cases import Case, PodClaim, is_reserved
from dovetail.core.decisions import Invalid, Waits
from dovetail.core.ours import Unsupplied
from dovetail.core.reasons import Reason
from dovetail.core.references import State, is_of_pod_group
from dovetail.core.world import World

MOST_CONSUMERS = 256
"""The length of `reservedFor` (allocation-rules 2.4)."""


def obstacle(world: World, case: Case, schedulers: Collection[str]) -> Waits | Invalid | None:
    """The first thing that stands in the way of a pod with a claim of ours."""
    return next(_obstacles(world, case, schedulers), None)


def missing_claim(world: World, case: Case) -> Waits | None:
    """The first claim of the pod that is not there, so that nobody can tell whose it is."""
    unresolved = (claim for claim in case.claims if claim.claim is None)
    return next((_not_there(world, claim) for claim in unresolved), None)


def missing_mapping(case: Case, domains: Collection[str] = ()) -> Waits | None:
    """The first constraint on an attribute that nothing supplies.

    With `domains`, only attributes of these domains count.
    """
    for claim in case.unallocated:
        for unsupplied in claim.whose.unsupplied:
            if not domains or unsupplied.attribute.partition("/")[0] in domains:
                return Waits(Reason.NO_MAPPING, _no_mapping(claim, unsupplied))
    return None


def own_domains(world: World) -> frozenset[str]:
    """The domains of attributes that are meant for us, even where the name is wrong."""
    return frozenset({GROUP, *(name.partition("/")[0] for name in world.mappings.attributes)})


def _obstacles(world: World, case: Case, schedulers: Collection[str]) -> Iterator[Waits | Invalid]:
    spec = case.pod.spec
    if unknown := _unknown_reference(case.pod):
        yield Invalid(Reason.INVALID_POD, unknown)
    if not spec.node_name and spec.scheduler_name not in schedulers:
        yield Waits(
            Reason.SCHEDULER_NOT_SUPPORTED,
            f"The pod asks for scheduler {spec.scheduler_name!r}; "
            f"Dovetail works with {_and(repr(name) for name in sorted(schedulers))}.",
        )
    if case.other_gates:
        yield Waits(
            Reason.OTHER_GATES, f"Scheduling gates of others are left: {', '.join(case.other_gates)}."
        )
    for claim in case.claims:
        yield from _claim_obstacles(world, case.pod, claim)
    if (missing := missing_mapping(case)) is not None:
        yield missing
    yield from _rivals(world, case)


def _claim_obstacles(world: World, pod: Pod, claim: PodClaim) -> Iterator[Waits]:
    if claim.claim is None:
        yield _not_there(world, claim)
        return
    if is_of_pod_group(claim.claim):
        yield Waits(
            Reason.POD_GROUP_UNSUPPORTED,
            f"Claim {claim.name!r} belongs to a PodGroup, which Dovetail does not serve.",
        )
    if claim.claim.metadata.deletion_timestamp is not None:
        yield Waits(Reason.CLAIM_BEING_DELETED, f"Claim {claim.name!r} is being deleted.")
    full = len(claim.claim.status.reserved_for) >= MOST_CONSUMERS
    if claim.is_allocated and full and not is_reserved(claim.claim, pod):
        yield Waits(
            Reason.CONSUMER_LIMIT,
            f"Claim {claim.name!r} has {MOST_CONSUMERS} consumers, the most that a claim can have.",
        )


def _rivals(world: World, case: Case) -> Iterator[Waits]:
    """Pods that could make kube-scheduler allocate a claim that we are about to allocate (V-22)."""
    for claim in case.unallocated:
        if not claim.whose.shared or claim.entry.key is None:
            continue
        for pod in world.pods_of_claim(*claim.entry.key):
            if not pod.spec.node_name and not pod.spec.scheduling_gates:
                yield Waits(
                    Reason.SHARED_CLAIM_NOT_GATED,
                    f"kube-scheduler could allocate claim {claim.name!r} as well, and pod "
                    f"{pod.metadata.name!r} that uses it is not gated: give it the scheduling gate {GATE}.",
                )


def _not_there(world: World, claim: PodClaim) -> Waits:
    entry = claim.entry
    match entry.state:
        case State.UNREADABLE:
            problem = world.problems.get(("ResourceClaim", entry.key)) if entry.key else None
            reason = problem.reason if problem else "unknown"
            return Waits(Reason.CLAIM_MALFORMED, f"ResourceClaim {claim.name!r} is malformed: {reason}.")
        case State.NO_CLAIM:
            what = f"ResourceClaim {claim.name!r} does not exist"
        case State.NO_TEMPLATE:
            template = entry.template[1] if entry.template else "?"
            what = f"ResourceClaimTemplate {template!r} does not exist"
        case State.UNSUPPORTED:
            what = f"Entry {entry.name!r} names neither a claim nor a template"
        case _:
            what = f"The claim for entry {entry.name!r} is not created yet"
    return Waits(Reason.CLAIMS_NOT_CREATED, f"{what}.")


def _no_mapping(claim: PodClaim, unsupplied: Unsupplied) -> str:
    nearest = f" Did you mean {unsupplied.nearest}?" if unsupplied.nearest else ""
    return (
        f"Claim {claim.name!r} has a constraint on {unsupplied.attribute}, "
        f"which no mapping, native entry or published attribute supplies.{nearest}"
    )


def _unknown_reference(pod: Pod) -> str:
    """A container that uses a claim which the pod does not have, in words, or nothing."""
    known = {entry.name for entry in pod.spec.resource_claims}
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for reference in container.resources.claims:
            if reference.name not in known:
                return (
                    f"Container {container.name!r} uses claim {reference.name!r}, "
                    "which spec.resourceClaims does not name."
                )
    return ""


def _and(names: Iterator[str]) -> str:
    return " and ".join(names)
