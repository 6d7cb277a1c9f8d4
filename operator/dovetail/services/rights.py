"""Which rights the operator needs, and what for. The chart's role is checked against this list."""

from collections.abc import Iterator
from dataclasses import dataclass

from typing_extensions import override

from dovetail.api.kinds import NODE, SURROUNDINGS
from dovetail.services.settings import Settings


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource; `purpose` completes the sentence "needed to …"."""

    group: str
    resource: str
    verb: str
    purpose: str
    namespace: str = ""
    """The only namespace where the right is needed; empty for the whole cluster."""

    @property
    def subresource(self) -> str:
        """What follows the slash of the resource, or nothing."""
        return self.resource.partition("/")[2]

    @override
    def __str__(self) -> str:
        group = f".{self.group}" if self.group else ""
        plural, slash, subresource = self.resource.partition("/")
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {plural}{group}{slash}{subresource}{where}"


def rights_needed(settings: Settings, *, lease_namespace: str, optional: frozenset[str]) -> tuple[Right, ...]:
    """The rights for these settings; `optional` names the plurals of optional kinds that are served."""
    return tuple(_rights(settings, lease_namespace, optional))


def _rights(settings: Settings, lease_namespace: str, optional: frozenset[str]) -> Iterator[Right]:
    yield from _reading("", "pods", "see which pods wait")
    yield Right("", "pods", "get", "see how a pod is just before something is taken from it")
    for kind in (NODE, *SURROUNDINGS):
        yield from _reading(kind.group, kind.plural, "judge where pods can run")
    for plural in ("resourceclaims", "resourceclaimtemplates", "deviceclasses", "resourceslices"):
        yield from _reading("resource.k8s.io", plural, "see devices and who wants them")
    yield Right("resource.k8s.io", "resourceclaims", "get", "see what became of a write without an answer")
    if "derivedattributes" in optional:
        yield from _reading("dovetail.dev", "derivedattributes", "read mappings")
        yield Right("dovetail.dev", "derivedattributes/status", "patch", "say which devices a mapping serves")
    if "devicetaintrules" in optional:
        yield from _reading("resource.k8s.io", "devicetaintrules", "respect tainted devices")
    if "deviceownerships" in optional:
        yield from _fencing(rules="devicetaintrules" in optional)
    yield Right("", "pods", "patch", "remove the scheduling gate")
    yield Right("", "pods/status", "patch", "say on the pod why it waits, and which claims were made for it")
    yield Right("resource.k8s.io", "resourceclaims", "update", "protect allocated claims by the finalizer")
    yield Right("resource.k8s.io", "resourceclaims/status", "update", "write allocations")
    yield Right("resource.k8s.io", "resourceclaims/status", "patch", "add a pod to a claim that others share")
    for verb in ("update", "patch"):
        yield Right(
            "resource.k8s.io",
            "resourceclaims/binding",
            verb,
            "change status.allocation and status.reservedFor from Kubernetes 1.36 on, at the cluster scope",
        )
    yield Right("", "events", "create", "tell owners of pods")
    yield Right("", "events", "patch", "count repeated events")
    if settings.claim_generation != "never":
        yield Right("resource.k8s.io", "resourceclaims", "create", "make claims from templates")
    if settings.release != "never":
        yield Right("resource.k8s.io", "resourceclaims", "delete", "delete claims of pods that are done")
    if settings.leader_election:
        for verb in ("get", "create", "update"):
            yield Right(
                "coordination.k8s.io", "leases", verb, "take turns with other replicas", lease_namespace
            )


def _fencing(*, rules: bool) -> Iterator[Right]:
    yield from _reading("dovetail.dev", "deviceownerships", "learn which devices are owned")
    yield Right("dovetail.dev", "deviceownerships/status", "update", "say how far owned devices are fenced")
    for verb in ("create", "update", "delete") if rules else ():
        yield Right("resource.k8s.io", "devicetaintrules", verb, "fence owned devices")


def _reading(group: str, plural: str, purpose: str) -> Iterator[Right]:
    for verb in ("list", "watch"):
        yield Right(group, plural, verb, purpose)
