"""What to do with one pod: the claims it needs together, on one node that it can use (design, section 2)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from dovetail.api.claims import AllocationResult, ResourceClaim
from dovetail.api.pods import Pod
from dovetail.core import outcome
from dovetail.core.allocator import place, suppose
from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.candidates import (
    Candidates,
    Party,
    candidates_for,
    preemption_candidates,
    selectors_of,
)
from dovetail.core.cases import Case, PodClaim, case_of
from dovetail.core.decisions import (
    Cut,
    Decision,
    DoesNotFit,
    Grant,
    Invalid,
    Nothing,
    NotOurs,
    Place,
    Reserve,
    Ungate,
)
from dovetail.core.extended import groups_of, served_on
from dovetail.core.footprints import Footprint, footprint_of
from dovetail.core.hints import told
from dovetail.core.holdings import Hold
from dovetail.core.labels import only_node
from dovetail.core.node_refusals import NodeRefusal, summarize
from dovetail.core.node_resources import demand_of, granted_to, refuse_pod, results_of, taken_whole
from dovetail.core.obstacles import missing_claim, missing_mapping, obstacle, own_domains
from dovetail.core.reasons import Reason
from dovetail.core.resources import human, total_of
from dovetail.core.world import World

NO_CLAIM_OF_OURS = "None of the pod's claims is Dovetail's: its gate is removed."
CUT = "The search for devices ran out of time and is tried again."


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What the person who runs Dovetail decides about planning."""

    schedulers: frozenset[str] = frozenset({"default-scheduler"})
    """The schedulers whose pods are served: they must bind as kube-scheduler does."""


@dataclass(frozen=True, slots=True)
class _Search:
    """Everything that placing one pod needs."""

    world: World
    case: Case
    budget: Budget
    avoid: Collection[str]
    short: dict[str, NodeRefusal] = field(default_factory=dict)
    """Nodes that lack what the devices chosen there would take of them besides."""


def plan_pod(
    world: World, pod: Pod, *, settings: PlanSettings, budget: Budget, avoid: Collection[str] = ()
) -> Decision:
    """Decide about one pod, without changing the world.

    `avoid` names nodes that must not be chosen now.
    Everything that is wrong with the pod, its claims or their classes is a value, never an exception;
    a spent budget is the value `Cut`.
    """
    if pod.is_done or pod.metadata.deletion_timestamp is not None:
        return Nothing()
    if (problem := world.problems.get(("Pod", pod.key))) is not None:
        return Invalid(Reason.INVALID_POD, f"The pod is malformed: {problem.reason}.")
    try:
        return _decide(_Search(world, case_of(world, pod), budget, avoid), settings)
    except outcome.RequestInvalid as error:
        return Invalid(Reason.INVALID_CLAIM, f"Claim {error.claim!r} cannot be served: {error.reason}.")
    except BudgetSpent:
        return Cut(Reason.SEARCH_CUT, CUT)


def plan_on(
    world: World,
    pod: Pod,
    node: str,
    *,
    budget: Budget,
    taken: Sequence[Hold] = (),
    released: Sequence[Hold] = (),
) -> Place | None:
    """What a pod of which `plan_pod` knows the claims would get on a node that it can use.

    It is supposed that some holdings were given back, then others taken. Raises `BudgetSpent`.
    """
    search = _Search(world, case_of(world, pod), budget, ())
    alone, together = _parties(search)
    own = _claims(search.case.unallocated)
    claims = (*own, *_claims_of_others(world, together or alone, own))
    extended = next((made for made, _ in groups_of(world, _footprint(search, pod), (node,))), None)
    asked = claims if extended is None else (*claims, extended)
    answer = suppose(world.inventory, asked, node, taken=taken, released=released, budget=budget)
    if answer is None or _refuse_devices(search, asked, answer, may_evict=False) is not None:
        return None
    return _placed(search, own, answer)


def _decide(search: _Search, settings: PlanSettings) -> Decision:
    if not search.case.is_ours:
        return _leave(search.world, search.case)
    return obstacle(search.world, search.case, settings.schedulers) or _serve(search)


def _leave(world: World, case: Case) -> Decision:
    """A pod without a claim of ours: its gate goes, unless a claim may have been meant for us."""
    if (missing := missing_mapping(case, () if case.is_gated else own_domains(world))) is not None:
        return missing
    absent = missing_claim(world, case)
    if not case.is_gated:
        return NotOurs(absent.sentence if absent else "")
    return absent or Ungate(NO_CLAIM_OF_OURS)


def _serve(search: _Search) -> Decision:
    case = search.case
    if any(claim.whose.ours for claim in case.unallocated):
        return _place(search)
    if not case.is_gated:
        return _join_ungated(search)
    if not case.unreserved:
        return Reserve((), case.tied_to)
    return _join(search)


def _join_ungated(search: _Search) -> Decision:
    """kube-scheduler adds the pod to its claims by itself, unless they leave no node that the pod can use."""
    case = search.case
    if case.pod.spec.node_name or not case.unreserved:
        return Nothing()
    if (taken := taken_whole(search.world.inventory, case.unreserved)) is not None:
        return taken
    party = Party((_footprint(search, case.pod),), selectors_of(case.allocated), budget=search.budget)
    candidates = candidates_for(search.world, party)
    lacks = _lacks_more(search, candidates.usable)
    if (candidates.usable and lacks is None) or preemption_candidates(
        search.world, party, candidates.refused
    ):
        return Nothing()
    return _no_node(search, candidates) if lacks is None else _refusal(search, lacks, candidates)


def _join(search: _Search) -> Decision:
    """All claims of ours have their devices: the pod joins them, if it can use a node that they leave."""
    case = search.case
    if (taken := taken_whole(search.world.inventory, case.unreserved)) is not None:
        return taken
    party = Party((_footprint(search, case.pod),), selectors_of(case.allocated), budget=search.budget)
    candidates = candidates_for(search.world, party, search.avoid)
    if not candidates.usable:
        return _no_node(search, candidates)
    if (lacks := _lacks_more(search, candidates.usable)) is not None:
        return _refusal(search, lacks, candidates)
    node = candidates.usable[0] if len(candidates.usable) == 1 else case.tied_to
    return Reserve(tuple(claim.key for claim in case.to_reserve), node)


def _lacks_more(search: _Search, nodes: tuple[str, ...]) -> outcome.DoesNotFit | outcome.Cut | None:
    """Why kube-scheduler finds no devices on these nodes for what the pod asks for besides."""
    others = _claims(search.case.unallocated)
    extended = [made for made, _ in groups_of(search.world, _footprint(search, search.case.pod), nodes)]
    if not nodes or not (others or all(extended)):
        return None
    answer = _best_of(search, others, nodes)
    return None if isinstance(answer, outcome.Fits) else answer


def _place(search: _Search) -> Decision:
    """One node for the pod and all known pods that share its claims; for the pod alone, where none does."""
    alone, together = _parties(search)
    if together is not None:
        decision = _place_party(search, together)
        if isinstance(decision, Place | Cut):
            return decision
    return _place_party(search, alone)


def _place_party(search: _Search, party: Party) -> Decision:
    """The best of the candidates; where none serves, one on which kube-scheduler can make room."""
    candidates = candidates_for(search.world, party, search.avoid)
    own = _claims(search.case.unallocated)
    claims = (*own, *_claims_of_others(search.world, party, own))
    answer = _place_claims(search, claims, candidates.usable) if candidates.usable else None
    if isinstance(answer, outcome.Fits):
        return _placed(search, own, answer)
    if not isinstance(answer, outcome.Cut) and (
        nodes := preemption_candidates(search.world, party, candidates.refused)
    ):
        by_force = _best_of(search, claims, nodes, may_evict=True)
        if isinstance(by_force, outcome.Fits):
            return replace(_placed(search, own, by_force), preempts=True)
    return _refusal(search, answer, candidates) if answer is not None else _no_node(search, candidates)


def _placed(search: _Search, own: tuple[ResourceClaim, ...], answer: outcome.Fits) -> Place:
    case = search.case
    return Place(
        node=answer.node,
        grants=tuple(
            Grant(claim.key, each.entry.name, allocation, each.whose.ours)
            for each, claim, allocation in zip(case.unallocated, own, answer.allocations, strict=False)
        ),
        reserve=tuple(claim.key for claim in case.to_reserve) if case.is_gated else (),
        ungate=case.is_gated,
        score=answer.score,
        extended=served_on(search.world, _footprint(search, case.pod), answer.node),
    )


def _place_claims(
    search: _Search, claims: tuple[ResourceClaim, ...], nodes: tuple[str, ...]
) -> outcome.Fits | outcome.DoesNotFit | outcome.Cut:
    """The nominated node comes first: kube-scheduler made room for the pod there."""
    nominated = search.case.pod.status.nominated_node_name
    if nominated in nodes and len(nodes) > 1:
        answer = _best_of(search, claims, (nominated,))
        if isinstance(answer, outcome.Fits):
            return answer
    return _best_of(search, claims, nodes)


def _best_of(
    search: _Search, claims: tuple[ResourceClaim, ...], nodes: tuple[str, ...], *, may_evict: bool = False
) -> outcome.Fits | outcome.DoesNotFit | outcome.Cut:
    """The best node by score, then by name, with what kube-scheduler will take for extended resources."""
    answers = [
        _best_within(search, claims if extended is None else (*claims, extended), names, may_evict=may_evict)
        for extended, names in groups_of(search.world, _footprint(search, search.case.pod), nodes)
    ]
    fitting = [answer for answer in answers if isinstance(answer, outcome.Fits)]
    if fitting:
        return min(fitting, key=lambda fits: (-fits.score, fits.node))
    return next((answer for answer in answers if isinstance(answer, outcome.Cut)), answers[0])


def _best_within(
    search: _Search, claims: tuple[ResourceClaim, ...], nodes: tuple[str, ...], *, may_evict: bool
) -> outcome.Fits | outcome.DoesNotFit | outcome.Cut:
    """The best of the nodes that have what the devices chosen there take of them besides.

    Other devices of a node are not tried then: kube-scheduler does not either.
    """
    while nodes:
        answer = place(search.world.inventory, claims, nodes, budget=search.budget)
        if not isinstance(answer, outcome.Fits):
            return answer
        refusal = _refuse_devices(search, claims, answer, may_evict=may_evict)
        if refusal is None:
            return answer
        search.short[answer.node] = refusal
        search.budget.spend(len(nodes))
        nodes = tuple(node for node in nodes if node != answer.node)
    return outcome.DoesNotFit(())


def _refuse_devices(
    search: _Search, claims: tuple[ResourceClaim, ...], answer: outcome.Fits, *, may_evict: bool
) -> NodeRefusal | None:
    """Why the node cannot carry the pod with these devices."""
    world, pod = search.world, search.case.pod
    if not world.features.node_allocatable_resources:
        return None
    entries = world.claims_of_pod(pod)
    chosen = {
        claim.key: AllocationResult.model_validate(allocation.body).devices.results
        for claim, allocation in zip(claims, answer.allocations, strict=True)
    }
    granted = granted_to(entries, chosen)
    allocated = granted_to(entries, results_of(world.claims, entries))
    if (refusal := refuse_pod(world.inventory, pod, (*granted, *allocated))) is not None:
        return refusal
    demand, state = demand_of(world.inventory, pod, granted), world.nodes.find(answer.node)
    if not demand or state is None or may_evict:
        return None
    footprint = _footprint(search, pod)
    wanted = total_of((footprint.requests, demand))
    refusal = world.judge.refuse_amounts(state, wanted, without=(footprint,))
    if refusal is None or refusal.resource not in demand:
        return refusal
    resource, part = refusal.resource, demand[refusal.resource]
    detail = f"{human(resource, wanted[resource] - part)} + {human(resource, part)} for its devices"
    return replace(refusal, detail=detail)


def _parties(search: _Search) -> tuple[Party, Party | None]:
    """The pod alone, and with all known pods that share a claim which is to be allocated now."""
    world, case = search.world, search.case
    node = case.pod.spec.node_name
    sharing = [] if node else _sharing(world, case)
    alone = Party(
        (_footprint(search, case.pod),),
        selectors_of(case.allocated),
        frozenset([node] if node else (pod.spec.node_name for pod in sharing if pod.spec.node_name)),
        search.budget,
    )
    waiting = [case_of(world, pod) for pod in sharing if not pod.spec.node_name]
    if not waiting:
        return alone, None
    allocated = {claim.key: claim for other in (case, *waiting) for claim in other.allocated}
    pods = (case.pod, *(other.pod for other in waiting))
    together = replace(
        alone,
        pods=tuple(_footprint(search, pod) for pod in pods),
        selectors=selectors_of(allocated.values()),
    )
    return alone, together


def _sharing(world: World, case: Case) -> list[Pod]:
    """The other pods that use an unallocated claim of this one, each once."""
    pods = {
        pod.key: pod
        for claim in case.unallocated
        if claim.claim is not None
        for pod in world.pods_of_claim(*claim.claim.key)
    }
    return [pod for key, pod in pods.items() if key != case.pod.key]


def _claims_of_others(
    world: World, party: Party, own: Collection[ResourceClaim]
) -> tuple[ResourceClaim, ...]:
    """What the rest of the party needs: planned so that the node serves it, written in its own turn."""
    known = {claim.key for claim in own}
    wanted: dict[tuple[str, str], ResourceClaim] = {}
    for other in party.pods[1:]:
        for claim in _claims(case_of(world, other.pod).unallocated):
            if claim.key not in known:
                wanted[claim.key] = claim
    return tuple(wanted.values())


def _claims(claims: Iterable[PodClaim]) -> tuple[ResourceClaim, ...]:
    return tuple(each.claim for each in claims if each.claim is not None)


def _footprint(search: _Search, pod: Pod) -> Footprint:
    known = search.world.footprints.get(pod.key)
    return known if known is not None and _is_same(known.pod, pod) else footprint_of(pod)


def _is_same(known: Pod, pod: Pod) -> bool:
    """The same reading, or another one of the same version."""
    version = pod.metadata.resource_version
    return known is pod or (bool(version) and version == known.metadata.resource_version)


def _no_node(search: _Search, candidates: Candidates) -> DoesNotFit:
    why = summarize({**candidates.refused, **search.short}.values())
    sentence = f"The pod can use no node: {why}." if why else "There is no node that the pod could use."
    return DoesNotFit(Reason.NO_NODE_USABLE, sentence + _elsewhere(search.case, candidates))


def _elsewhere(case: Case, candidates: Candidates) -> str:
    """The allocated claims that leave the pod no node but those that it cannot use."""
    if case.pod.spec.node_name:
        return ""
    return "".join(
        f" Claim {name!r} is allocated on node {node}."
        for name, selector in selectors_of(case.allocated)
        if (node := only_node(selector)) in candidates.refused
    )


def _refusal(
    search: _Search, answer: outcome.DoesNotFit | outcome.Cut, candidates: Candidates
) -> DoesNotFit | Cut:
    if isinstance(answer, outcome.Cut):
        return Cut(Reason.SEARCH_CUT, CUT)
    if not answer.stories:
        return _no_node(search, candidates)
    why = summarize({**candidates.refused, **search.short}.values())
    others = f" Besides, {why}." if why else ""
    sentence, full = (
        told(search.world, search.case, answer, others, viewer)
        for viewer in (search.case.pod.metadata.namespace, None)
    )
    return DoesNotFit(Reason.NOTHING_FITS, sentence, full)
