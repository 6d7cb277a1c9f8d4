"""One pod with its claims as the planner sees them: whose each claim is, and what it has already."""

from collections.abc import Iterable
from dataclasses import dataclass

from dovetail.api.claims import ResourceClaim, ResourceClaimSpec
from dovetail.api.mappings import GATE
from dovetail.api.pods import Pod
from dovetail.core.labels import only_node
from dovetail.core.ours import Ours, judge_claim
from dovetail.core.references import Entry, State, is_owned_by
from dovetail.core.world import World

NOBODYS = Ours(ours=False)


@dataclass(frozen=True, slots=True)
class PodClaim:
    """One entry of the pod that needs a claim; `claim` is None where that is not there, or not readable."""

    entry: Entry
    claim: ResourceClaim | None
    whose: Ours

    @property
    def is_allocated(self) -> bool:
        """The claim has its devices."""
        return self.claim is not None and self.claim.status.allocation is not None

    @property
    def name(self) -> str:
        """The claim's name, or the entry's where there is no claim."""
        return self.entry.key[1] if self.entry.key else self.entry.name


@dataclass(frozen=True, slots=True)
class Case:
    """A pod and its claims; two entries for one claim are one."""

    pod: Pod
    claims: tuple[PodClaim, ...]

    @property
    def is_gated(self) -> bool:
        """The pod carries our gate."""
        return any(gate.name == GATE for gate in self.pod.spec.scheduling_gates)

    @property
    def other_gates(self) -> tuple[str, ...]:
        """The gates of others."""
        return tuple(gate.name for gate in self.pod.spec.scheduling_gates if gate.name != GATE)

    @property
    def is_ours(self) -> bool:
        """At least one claim is ours."""
        return any(claim.whose.ours for claim in self.claims)

    @property
    def unallocated(self) -> tuple[PodClaim, ...]:
        """The claims that still need devices, ours and others'."""
        return tuple(claim for claim in self.claims if not claim.is_allocated)

    @property
    def allocated(self) -> tuple[ResourceClaim, ...]:
        """The claims that have their devices, ours and others'."""
        return tuple(each.claim for each in self.claims if each.claim is not None and each.is_allocated)

    @property
    def tied_to(self) -> str | None:
        """The node that the allocated claims leave, where it is one."""
        allocations = [claim.status.allocation for claim in self.allocated]
        nodes = (only_node(allocation.node_selector) for allocation in allocations if allocation is not None)
        return next((node for node in nodes if node is not None), None)

    @property
    def reserves_itself(self) -> bool:
        """kube-scheduler makes the pod a consumer: it is a member of a PodGroup and has no node (T37-12)."""
        return self.pod.spec.scheduling_group is not None and not self.pod.spec.node_name

    @property
    def to_reserve(self) -> tuple[ResourceClaim, ...]:
        """The claims that Dovetail makes the pod a consumer of."""
        return () if self.reserves_itself else self.unreserved

    @property
    def unreserved(self) -> tuple[ResourceClaim, ...]:
        """Allocated claims of ours that do not count this pod as consumer yet.

        What was made for a pod that kube-scheduler reserves for is its own without that.
        """
        return tuple(
            each.claim
            for each in self.claims
            if each.whose.ours
            and each.claim is not None
            and each.is_allocated
            and not is_reserved(each.claim, self.pod)
            and not (self.reserves_itself and is_owned_by(each.claim, self.pod))
        )


def case_of(world: World, pod: Pod) -> Case:
    """The pod with its claims; entries that need no claim are left out."""
    return Case(pod, tuple(_claims(world, pod)))


def is_reserved(claim: ResourceClaim, pod: Pod) -> bool:
    """The claim counts this very pod as consumer."""
    return any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for)


def _claims(world: World, pod: Pod) -> Iterable[PodClaim]:
    seen = set()
    for entry in world.claims_of_pod(pod):
        if entry.state is State.NOT_NEEDED or (entry.key is not None and entry.key in seen):
            continue
        seen.add(entry.key)
        claim = world.claims.get(entry.key) if entry.key is not None and entry.state is State.FOUND else None
        spec = claim.spec if claim is not None else _expected(world, entry)
        yield PodClaim(entry, claim, judge_claim(spec, world) if spec is not None else NOBODYS)


def _expected(world: World, entry: Entry) -> ResourceClaimSpec | None:
    """What a claim that is not there yet will ask for."""
    template = world.templates.get(entry.template) if entry.template is not None else None
    return template.spec.spec if template is not None and entry.state is State.NOT_CREATED else None
