"""The picture of the cluster: objects by kind, fed one at a time, with an inventory kept up to date."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from dovetail.api.claims import DeviceClass, ResourceClaim, ResourceClaimTemplate
from dovetail.api.mappings import DerivedAttribute
from dovetail.api.meta import KubernetesObject
from dovetail.api.nodes import Node
from dovetail.api.placement import (
    PersistentVolume,
    PersistentVolumeClaim,
)
from dovetail.api.pods import Pod
from dovetail.api.slices import DeviceTaintRule, ResourceSlice
from dovetail.core.affinity import Avoider, avoider_of, avoids_the_same
from dovetail.core.attributes import Mappings
from dovetail.core.changes import Change, Effect, Problem, key_in, parsed_as, same
from dovetail.core.decisions import ObjectKey
from dovetail.core.extended import ExtendedHold, asks_for_extended, classes_by_resource
from dovetail.core.features import Features
from dovetail.core.footprints import Footprint, footprint_of
from dovetail.core.homes import home_of, stays
from dovetail.core.inventory import Inventory
from dovetail.core.judging import Judge
from dovetail.core.models import KEPT_RAW, MODELS
from dovetail.core.node_resources import charged, granted_to, results_of
from dovetail.core.nodes import Hold, Home, NodeBook
from dovetail.core.references import Entry, References
from dovetail.core.resources import read_amounts
from dovetail.core.salvage import salvage
from dovetail.core.slice_names import AttributeNames, nodes_in
from dovetail.errors import ObjectInvalid

__all__ = ["KEPT_RAW", "MODELS", "Change", "Effect", "Problem", "World"]


class World:
    """Objects by kind, as of the last `put` and `drop`; decisions read it and never change it.

    Kinds are named as in manifests: those of `MODELS`; other kinds are ignored.
    The tables and `problems` are for reading.
    """

    def __init__(
        self,
        features: Features,
        *,
        shipped_mappings: bool = True,
        assume_nodes: bool = False,
        exclude_dual_mode: bool = True,
    ) -> None:
        """`assume_nodes`: nodes that only slices name exist, and what a mere manifest leaves out suffices.

        `exclude_dual_mode`: what a device plugin of its node offers too is not given.
        """
        self.features = features
        mappings = Mappings.of((), shipped=shipped_mappings)
        self.inventory = Inventory(features, mappings, withhold_plugged=exclude_dual_mode)
        self.pods: dict[ObjectKey, Pod] = {}
        self.claims: dict[ObjectKey, ResourceClaim] = {}
        self.templates: dict[ObjectKey, ResourceClaimTemplate] = {}
        self.others: dict[str, dict[ObjectKey, KubernetesObject]] = {kind: {} for kind in MODELS}
        self.problems: dict[tuple[str, ObjectKey], Problem] = {}
        self.nodes = NodeBook(assume=assume_nodes)
        self.judge = Judge(self.nodes)
        self.attribute_names = AttributeNames()
        self.class_of_resource: dict[str, str] = {}
        self.footprints: dict[ObjectKey, Footprint] = {}
        self.extended_due: dict[ObjectKey, None] = {}
        """The pods that have got devices on a node, and ask for resources that others there may serve."""
        self.extended_holds: dict[ObjectKey, ExtendedHold] = {}
        """Devices that kube-scheduler is about to give pods for such resources: see `extended_holds`."""
        self.avoiders: dict[ObjectKey, Avoider] = {}
        """The pods with required anti-affinity, which speaks against others wherever they are."""
        self._raw: dict[tuple[str, ObjectKey], Mapping[str, Any]] = {}
        self._unreadable_claims: dict[ObjectKey, ResourceClaim] = {}
        self._references = References(self.pods, self.claims, self.templates, self._unreadable_claims)

    @property
    def mappings(self) -> Mappings:
        """The mappings that count."""
        return self.inventory.mappings

    def put(self, kind: str, body: Mapping[str, Any]) -> Change | None:
        """Take in an object as read from the API server; None where no decision can depend on the change.

        A malformed object is recorded in `problems` and counts as absent, except that the devices of a claim
        that is allocated stay taken as far as its allocation can be read.
        Whether `body` is newer than what is known is the caller's concern.
        """
        model = MODELS.get(kind)
        if model is None:
            return None
        key = key_in(body)
        try:
            effect = self._put(parsed_as(model, body))
        except ObjectInvalid as error:
            return self.refuse(kind, body, error.reason)
        except ValueError as error:
            return self.refuse(kind, body, str(error))
        if self.problems.pop((kind, key), None) is not None:
            effect = effect or Effect.CONSUMERS
        if kind in KEPT_RAW:
            self._raw[kind, key] = body
        return Change(kind, key, effect) if effect else None

    def drop(self, kind: str, namespace: str, name: str) -> Change | None:
        """Forget an object; an unknown one is ignored."""
        key = (namespace, name)
        if kind not in MODELS:
            return None
        was_problem = self.problems.pop((kind, key), None) is not None
        effect = self._drop(kind, key)
        if effect is None and was_problem:
            effect = Effect.CONSUMERS
        return Change(kind, key, effect) if effect else None

    def raw(self, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """The JSON as read, for writing back: kept for claims, templates, pods and mappings."""
        return self._raw.get((kind, (namespace, name)))

    def claims_of_pod(self, pod: Pod) -> tuple[Entry, ...]:
        """The entries of `spec.resourceClaims`, in order, each with the claim that it stands for."""
        return self._references.entries_of(pod)

    def pods_of_claim(self, namespace: str, name: str) -> tuple[Pod, ...]:
        """The pods that use the claim and are not done, in the order in which they were first seen."""
        return self._references.consumers_of((namespace, name))

    def made_claims(self, pod: Pod, entry: str) -> tuple[ObjectKey, ...]:
        """The claims made for one entry of the pod, recorded in its status or not."""
        return self._references.made_claims(pod, entry)

    def set_features(self, features: Features) -> None:
        """Other gates from now on."""
        self.features = features
        self.inventory.set_features(features)
        self._set_class_resources()
        for pod in tuple(self.pods.values()):
            self._put_pod(pod)

    def _put(self, parsed: KubernetesObject) -> Effect | None:
        match parsed:
            case Pod():
                return self._put_pod(parsed)
            case ResourceClaim():
                return self._put_claim(parsed)
            case ResourceClaimTemplate():
                return self._put_template(parsed)
            case Node():
                return self._put_node(parsed)
            case ResourceSlice():
                return self._put_slice(parsed)
            case _:
                return self._put_other(parsed)

    def _put_pod(self, pod: Pod) -> Effect | None:
        footprint = footprint_of(pod)
        before = self.pods.get(pod.key)
        if before is not None:
            self._references.remove_pod(before)
        self.pods[pod.key] = pod
        self._references.add_pod(pod)
        footprint = self.footprints[pod.key] = self._charged(footprint)
        if before is None or not avoids_the_same(before, pod):
            self._note_avoider(pod)
        had = self.nodes.home_of(pod.key)
        self._settle_pod(footprint, home_of(pod, self._references.found_claims(pod)))
        if had is not None and had != self.nodes.home_of(pod.key):
            return Effect.EVERYONE
        if before is not None and same(before, pod):
            return None
        return Effect.CONSUMERS if _shares(pod) else Effect.POD

    def _note_avoider(self, pod: Pod) -> None:
        self.avoiders.pop(pod.key, None)
        if avoider := avoider_of(pod):
            self.avoiders[pod.key] = avoider

    def _put_claim(self, claim: ResourceClaim) -> Effect | None:
        before = self.claims.get(claim.key)
        unreadable = self._unreadable_claims.pop(claim.key, None)
        held = before or unreadable
        self.inventory.put_claim(claim)
        if before is not None:
            self._references.remove_claim(before)
        self.claims[claim.key] = claim
        self._references.add_claim(claim)
        self._settle_pods_of(held, claim, was_unreadable=unreadable is not None)
        if held is not None and held.status.allocation and not claim.status.allocation:
            return Effect.EVERYONE
        return None if before is not None and same(before, claim) else Effect.CONSUMERS

    def _put_template(self, template: ResourceClaimTemplate) -> Effect | None:
        before = self.templates.get(template.key)
        self.templates[template.key] = template
        return None if before is not None and before.spec == template.spec else Effect.CONSUMERS

    def _put_node(self, node: Node) -> Effect | None:
        state = self.nodes.find(node.metadata.name)
        before = state.node if state is not None else None
        if before is not None and same(before, node):
            return None
        self.nodes.put(node)
        self.inventory.put_node(node)
        return Effect.EVERYONE

    def _put_slice(self, published: ResourceSlice) -> Effect | None:
        before = self.others["ResourceSlice"].get(published.key)
        if isinstance(before, ResourceSlice) and before.spec == published.spec:
            return None
        self.inventory.put_slice(published)
        self.others["ResourceSlice"][published.key] = published
        self._count_names(published, 1)
        if isinstance(before, ResourceSlice):
            self._count_names(before, -1)
        return Effect.EVERYONE

    def _count_names(self, published: ResourceSlice, times: Literal[1, -1]) -> None:
        """Nodes and attributes exist as long as a slice names them."""
        for name in nodes_in(published):
            self.nodes.name_by_slice(name, times)
        if times == 1:
            self.attribute_names.add(published)
        else:
            self.attribute_names.remove(published)

    def _put_other(self, parsed: KubernetesObject) -> Effect | None:
        kind = type(parsed).__name__
        before = self.others[kind].get(parsed.key)
        if before is not None and same(before, parsed):
            return None
        match parsed:
            case DeviceClass():
                self.inventory.put_class(parsed)
            case DerivedAttribute():
                self.inventory.set_mappings(self.mappings.with_object(parsed))
            case DeviceTaintRule():
                self.inventory.put_taint_rule(parsed)
            case PersistentVolumeClaim():
                read_amounts(parsed.spec.resources.requests)
            case PersistentVolume():
                read_amounts(parsed.spec.capacity)
            case _:
                pass
        self.others[kind][parsed.key] = parsed
        if isinstance(parsed, DeviceClass):
            self._set_class_resources()
        return Effect.EVERYONE

    def _drop(self, kind: str, key: ObjectKey) -> Effect | None:
        self._raw.pop((kind, key), None)
        match kind:
            case "Pod":
                return self._drop_pod(key)
            case "ResourceClaim":
                return self._drop_claim(key)
            case "ResourceClaimTemplate":
                return Effect.CONSUMERS if self.templates.pop(key, None) else None
            case "Node":
                return self._drop_node(key[1])
            case _:
                return self._drop_other(kind, key)

    def _drop_pod(self, key: ObjectKey) -> Effect | None:
        pod = self.pods.pop(key, None)
        self.footprints.pop(key, None)
        self.extended_due.pop(key, None)
        self.avoiders.pop(key, None)
        if pod is None:
            return None
        self._references.remove_pod(pod)
        if self.nodes.drop_pod(key):
            return Effect.EVERYONE
        return Effect.CONSUMERS if _shares(pod) else Effect.POD

    def _drop_claim(self, key: ObjectKey) -> Effect | None:
        claim = self.claims.pop(key, None)
        held = claim or self._unreadable_claims.pop(key, None)
        if held is None:
            return None
        self.inventory.drop_claim(*key)
        if claim is not None:
            self._references.remove_claim(claim)
        self._settle_pods_of(held, None, was_unreadable=claim is None)
        return Effect.EVERYONE if held.status.allocation else Effect.CONSUMERS

    def _drop_node(self, name: str) -> Effect | None:
        state = self.nodes.find(name)
        if state is None or state.node is None:
            return None
        self.nodes.drop(name)
        self.inventory.drop_node(name)
        return Effect.EVERYONE

    def _drop_other(self, kind: str, key: ObjectKey) -> Effect | None:
        before = self.others[kind].pop(key, None)
        match before:
            case None:
                return None
            case ResourceSlice():
                self.inventory.drop_slice(key[1])
                self._count_names(before, -1)
            case DeviceClass():
                self.inventory.drop_class(key[1])
                self._set_class_resources()
            case DerivedAttribute():
                self.inventory.set_mappings(self.mappings.without_object(key[1]))
            case DeviceTaintRule():
                self.inventory.drop_taint_rule(key[1])
            case _:
                pass
        return Effect.EVERYONE

    def refuse(self, kind: str, body: Mapping[str, Any], reason: str) -> Change:
        """Record a wrong object; what it was before no longer counts, save the devices that it holds."""
        key = key_in(body)
        if kind == "ResourceClaim":
            effect = self._keep_held(key, body)
        else:
            effect = self._drop(kind, key) or Effect.CONSUMERS
        self.problems[kind, key] = Problem(kind, key, reason)
        if kind in KEPT_RAW:
            self._raw[kind, key] = body
        return Change(kind, key, effect)

    def _keep_held(self, key: ObjectKey, body: Mapping[str, Any]) -> Effect:
        before = self.claims.pop(key, None)
        if before is not None:
            self._references.remove_claim(before)
        held = salvage(key, body, before or self._unreadable_claims.get(key))
        self._unreadable_claims[key] = held
        self.inventory.put_claim(held)
        self._settle_all(self._references.naming(*filter(None, (before, held))))
        return Effect.CONSUMERS

    def _settle_pods_of(
        self, before: ResourceClaim | None, after: ResourceClaim | None, *, was_unreadable: bool
    ) -> None:
        """A claim changed: its pods may count on other nodes now."""
        if was_unreadable:
            self._settle_all(self._references.naming(*filter(None, (before, after))))
            return
        concerned = self._references.concerned_by(before, after)
        if not self.features.node_allocatable_resources:
            had = self.nodes.home_of
            concerned = tuple(pod for pod in concerned if not stays(pod, had(pod.key), before, after))
        self._settle_all(concerned)

    def _settle_all(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if self.features.node_allocatable_resources:
                self.footprints[pod.key] = self._charged(footprint_of(pod))
            self._settle_pod(self.footprints[pod.key], home_of(pod, self._references.found_claims(pod)))

    def _settle_pod(self, footprint: Footprint, home: Home | None) -> None:
        self.nodes.put_pod(footprint, home)
        if home is not None and home.hold is Hold.DEVICES and asks_for_extended(footprint):
            self.extended_due[footprint.key] = None
        else:
            self.extended_due.pop(footprint.key, None)

    def _charged(self, footprint: Footprint) -> Footprint:
        """The footprint with what the devices that the pod has take of its node."""
        if not self.features.node_allocatable_resources:
            return footprint
        entries = self.claims_of_pod(footprint.pod)
        return charged(self.inventory, footprint, granted_to(entries, results_of(self.claims, entries)))

    def _set_class_resources(self) -> None:
        backed = classes_by_resource(self.others["DeviceClass"]) if self.features.extended_resource else {}
        self.class_of_resource = backed
        self.judge.set_class_resources(frozenset(backed))


def _shares(pod: Pod) -> bool:
    return any(entry.resource_claim_name for entry in pod.spec.resource_claims)
