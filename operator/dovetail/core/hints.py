"""What a refusal should say besides what stands in the way first."""

from collections.abc import Mapping

from dovetail.api.claims import ResourceClaim
from dovetail.core import outcome
from dovetail.core.cases import Case
from dovetail.core.decisions import ObjectKey
from dovetail.core.explain import explain
from dovetail.core.world import World

SHARING = "sharing"
"""The field by which drivers are told how several users take turns on a device."""


def told(world: World, case: Case, refused: outcome.DoesNotFit, others: str, viewer: str | None) -> str:
    """A refusal for readers of one namespace, or of all (None), with all hints; `others` are more causes."""
    sentence = explain(refused, viewer)
    return f"{sentence}{constraint_hint(case, sentence)}{others}{sharing_hint(world, case)}"


def constraint_hint(case: Case, sentence: str) -> str:
    """The attributes of constraints that the sentence leaves out: something else is in the way first."""
    constraints = [
        constraint
        for each in case.unallocated
        if each.claim is not None and each.whose.ours
        for constraint in each.claim.spec.devices.constraints
    ]
    same = {constraint.match_attribute for constraint in constraints}
    different = {constraint.distinct_attribute for constraint in constraints}
    hints = [
        f" The devices also have to {verb} {', '.join(unnamed)}."
        for verb, attributes in (("agree on", same), ("differ in", different))
        if (unnamed := sorted(name for name in attributes if name and name not in sentence))
    ]
    return "".join(hints)


def sharing_hint(world: World, case: Case) -> str:
    """What to tell people who expect the claims of one template to share devices (R-G1, T-17).

    Such a claim shares with nobody: each pod gets one of its own.
    """
    for each in case.unallocated:
        template = each.entry.template
        if template is None or each.claim is None or not _asks_for_sharing(each.claim):
            continue
        if _serves_another(world, case, template):
            return (
                f" Each pod gets a claim of its own from template {template[1]!r}; "
                "to share devices, let the pods name one ResourceClaim."
            )
    return ""


def _asks_for_sharing(claim: ResourceClaim) -> bool:
    configs = (config.opaque.parameters for config in claim.spec.devices.config if config.opaque)
    return any(isinstance(parameters, Mapping) and SHARING in parameters for parameters in configs)


def _serves_another(world: World, case: Case, template: ObjectKey) -> bool:
    for key, pod in world.pods.items():
        if key == case.pod.key or key[0] != template[0] or pod.is_done:
            continue
        for entry in world.claims_of_pod(pod):
            claim = world.claims.get(entry.key) if entry.template == template and entry.key else None
            if claim is not None and claim.status.allocation is not None:
                return True
    return False
