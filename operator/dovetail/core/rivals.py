"""Whether kube-scheduler could give away a device that a claim of ours has just got (R2, V-21).

Two writers who choose at the same moment can choose the same device, and the API server takes both.
A pod that kube-scheduler may be working on, and whose claims could take the device, is a rival:
while one is about, the pod that got the device is better kept behind its gate.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from dovetail.api.claims import DeviceSelector, ExactDeviceRequest, ResourceClaimSpec
from dovetail.api.pods import Pod
from dovetail.api.selection import Taint
from dovetail.core.asking import Part, parts_of, selectors_for
from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.cases import PodClaim, case_of
from dovetail.core.decisions import ObjectKey
from dovetail.core.extended import groups_of
from dovetail.core.judging import refuse_labels, weight_of
from dovetail.core.labels import only_node
from dovetail.core.pools import Pool
from dovetail.core.published import OfferedDevice
from dovetail.core.sources import Expressions
from dovetail.core.taints import blocking_taint
from dovetail.core.values import DeviceKey
from dovetail.core.world import World

MOST_STEPS = 100_000
"""Steps that looking at all suspects together may take, their expressions included."""

_LOOK = 4
"""What looking at a claim of a pod, or at a request, costs beside a step of an expression."""


@dataclass(frozen=True, slots=True)
class _Stake:
    """A device of ours, or one that draws from the same counters, with the taints that fence it."""

    key: DeviceKey
    device: OfferedDevice
    node: str | None


def first_rival(
    world: World,
    claims: Iterable[ObjectKey],
    suspects: Iterable[ObjectKey],
    *,
    young_rules: Collection[str] = (),
) -> ObjectKey | None:
    """The first of the suspects, which are pods, that could be given a device of the claims; None without.

    A claim that only Dovetail can allocate is no rival's: decisions are made one after another.
    `young_rules` are DeviceTaintRules so new that kube-scheduler may have chosen without them.
    """
    stakes = _stakes(world, claims)
    if not stakes:
        return None
    judge = _Judge(world, stakes, frozenset(young_rules))
    return next((key for key in suspects if judge.is_rival(key)), None)


class _Judge:
    """Asks one suspect after another about the same devices."""

    def __init__(self, world: World, stakes: tuple[_Stake, ...], young_rules: frozenset[str]) -> None:
        self._world = world
        self._stakes = stakes
        self._budget = Budget(MOST_STEPS)
        self._expressions = Expressions(world.features, world.mappings, self._budget)
        self._taints = {stake.key: tuple(_taints(world, stake, young_rules)) for stake in stakes}

    def is_rival(self, key: ObjectKey) -> bool:
        """Whether a claim of the pod could take one of the devices on a node that the pod can use.

        It may, where there is too much to look at.
        """
        pod = self._world.pods.get(key)
        if pod is None or pod.is_done:
            return False
        try:
            return any(
                self._takes(part, stake)
                for stake in self._stakes
                if self._may_use(pod, stake.node)
                for spec in self._wanted(pod, stake.node)
                for part in parts_of(spec)
            )
        except BudgetSpent:
            return True

    def _may_use(self, pod: Pod, node: str | None) -> bool:
        state = self._world.nodes.find(node) if node is not None else None
        footprint = self._world.footprints.get(pod.key)
        if state is None or footprint is None:
            return True
        self._budget.spend(weight_of(footprint))
        return refuse_labels(state, footprint.shape) is None

    def _wanted(self, pod: Pod, node: str | None) -> Iterator[ResourceClaimSpec]:
        """What kube-scheduler would allocate for the pod: claims, made or not, and extended resources."""
        self._budget.spend(_LOOK * (1 + len(pod.spec.resource_claims)))
        for each in case_of(self._world, pod).claims:
            spec = _spec_of(self._world, each)
            if not each.is_allocated and spec is not None and (each.whose.shared or not each.whose.ours):
                yield spec
        footprint = self._world.footprints.get(pod.key)
        if footprint is None or pod.status.extended_resource_claim_status is not None:
            return
        for made, _ in groups_of(self._world, footprint, (node or "",)):
            if made is not None:
                yield made.spec

    def _takes(self, part: Part, stake: _Stake) -> bool:
        """Class, selectors and tolerations let the device through; an expression that fails does not."""
        self._budget.spend(_LOOK + len(part.tolerations))
        if isinstance(part, ExactDeviceRequest) and part.admin_access:
            return False
        device_class = self._world.inventory.classes.get(part.device_class_name)
        if device_class is None or blocking_taint(self._taints[stake.key], part.tolerations) is not None:
            return False
        return all(self._selected(selector, stake) for selector in selectors_for(device_class, part))

    def _selected(self, selector: DeviceSelector, stake: _Stake) -> bool:
        """A selector of a kind that is not known may take anything."""
        if selector.cel is None:
            return True
        program = self._expressions.selector(selector.cel.expression)
        if isinstance(program, str):
            return False
        return self._world.inventory.memory.matches(program, stake.device.view, self._budget) is True


def _spec_of(world: World, claim: PodClaim) -> ResourceClaimSpec | None:
    """What the claim asks for, or will ask for once it is made."""
    if claim.claim is not None:
        return claim.claim.spec
    template = world.templates.get(claim.entry.template) if claim.entry.template is not None else None
    return template.spec.spec if template is not None else None


def _stakes(world: World, claims: Iterable[ObjectKey]) -> tuple[_Stake, ...]:
    found: dict[DeviceKey, _Stake] = {}
    for key in claims:
        claim = world.claims.get(key)
        if claim is None or claim.status.allocation is None:
            continue
        node = only_node(claim.status.allocation.node_selector)
        for hold in world.inventory.holds(*key):
            pool = world.inventory.offers.pools.get(hold.device.pool_key)
            for device in _neighbours(pool, hold.device.device) if pool is not None else ():
                at_stake = DeviceKey(hold.device.driver, hold.device.pool, device.name)
                found[at_stake] = _Stake(at_stake, device, node)
    return tuple(found.values())


def _neighbours(pool: Pool, name: str) -> list[OfferedDevice]:
    """The device, and those that draw from the same counter sets."""
    devices = {device.name: device for device in pool.newest_devices()}
    chosen = devices.get(name)
    if chosen is None:
        return []
    sets = {part.counter_set for part in chosen.consumes}
    return [
        device
        for device in devices.values()
        if device is chosen or any(part.counter_set in sets for part in device.consumes)
    ]


def _taints(world: World, stake: _Stake, young_rules: frozenset[str]) -> Iterator[Taint]:
    if world.features.device_taints:
        yield from stake.device.taints
        yield from world.inventory.offers.rules.on(stake.key, without=young_rules)
