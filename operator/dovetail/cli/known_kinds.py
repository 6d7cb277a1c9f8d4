"""Which kinds of objects mean something here, and what a kind that nobody knows may have been meant to be."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

CLOSE = 0.7
"""How alike two names have to be for one to be a misspelling of the other."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where objects of a kind live: group, versions that are read, and whether they have a namespace.

    `workload` says that the objects ask for pods.
    """

    group: str
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = False
    workload: bool = False


def _workload(group: str, *versions: str) -> Home:
    return Home(group, versions or ("v1",), namespaced=True, workload=True)


_DRA = ("v1", "v1beta2", "v1beta1")
HOMES: Mapping[str, Home] = {
    "Pod": Home("", namespaced=True),
    "Node": Home(""),
    "Namespace": Home(""),
    "PersistentVolume": Home(""),
    "PersistentVolumeClaim": Home("", namespaced=True),
    "ResourceClaim": Home("resource.k8s.io", _DRA, namespaced=True),
    "ResourceClaimTemplate": Home("resource.k8s.io", _DRA, namespaced=True),
    "DeviceClass": Home("resource.k8s.io", _DRA),
    "ResourceSlice": Home("resource.k8s.io", _DRA),
    "DeviceTaintRule": Home("resource.k8s.io", ("v1", "v1beta2", "v1alpha3")),
    "DerivedAttribute": Home("dovetail.dev", ("v1alpha1",)),
    "DeviceOwnership": Home("dovetail.dev", ("v1alpha1",)),
    "PriorityClass": Home("scheduling.k8s.io"),
    "StorageClass": Home("storage.k8s.io"),
    "CSINode": Home("storage.k8s.io"),
    "Deployment": _workload("apps"),
    "ReplicaSet": _workload("apps"),
    "StatefulSet": _workload("apps"),
    "DaemonSet": _workload("apps"),
    "Job": _workload("batch"),
    "CronJob": _workload("batch"),
    "ReplicationController": _workload(""),
    "JobSet": _workload("jobset.x-k8s.io", "v1alpha2", "v1"),
    "LeaderWorkerSet": _workload("leaderworkerset.x-k8s.io"),
}
"""The kinds that are read."""

WORKLOADS = frozenset(kind for kind, home in HOMES.items() if home.workload)
"""The kinds whose objects ask for pods."""

_WITHOUT_MEANING: Mapping[str, tuple[str, ...]] = {
    "": (
        "Binding",
        "ComponentStatus",
        "ConfigMap",
        "Endpoints",
        "Event",
        "LimitRange",
        "PodTemplate",
        "ResourceQuota",
        "Secret",
        "Service",
        "ServiceAccount",
    ),
    "apps": ("ControllerRevision",),
    "batch": (),
    "resource.k8s.io": ("ResourcePoolStatusRequest",),
    "dovetail.dev": (),
    "scheduling.k8s.io": ("Workload", "PodGroup"),
    "storage.k8s.io": ("CSIDriver", "CSIStorageCapacity", "VolumeAttachment", "VolumeAttributesClass"),
    "jobset.x-k8s.io": (),
    "leaderworkerset.x-k8s.io": (),
}
"""By group whose kinds are all known, those that mean nothing: nothing of them decides about devices."""


def home_of(kind: str, group: str) -> Home | None:
    """Where a kind that is read lives; None for every other one, also of the same name in another group."""
    home = HOMES.get(kind)
    return home if home is not None and home.group == group else None


def unknown(kind: str, api_version: str) -> str:
    """What is wrong with a kind that no cluster has; empty for one that merely means nothing here.

    Of a group whose kinds are not all known, only what looks like a misspelling of the group is one.
    """
    group = api_version.rpartition("/")[0]
    home = HOMES.get(kind)
    if group not in _WITHOUT_MEANING:
        if home is not None and group != home.group and _looks_like(group, home.group):
            return f"kind {kind} of {api_version} is not known; it is in {preferred(home)}"
        return ""
    others = _WITHOUT_MEANING[group]
    if kind in others:
        return ""
    if home is not None:
        return f"kind {kind} is not known in {api_version}; it is in {preferred(home)}"
    own = [name for name, each in HOMES.items() if each.group == group]
    nearest = _nearest(kind, [*own, *others]) or _nearest(kind, HOMES)
    return f"kind {kind} is not known in {api_version}" + (f"; did you mean {nearest}?" if nearest else "")


def _looks_like(group: str, other: str) -> bool:
    return group == "extensions" or bool(get_close_matches(group, [other], cutoff=CLOSE))


def preferred(home: Home) -> str:
    """The apiVersion to write."""
    return "/".join(filter(None, (home.group, home.versions[0])))


def _nearest(kind: str, known: Iterable[str]) -> str:
    """The known kind that is spelt most alike, upper and lower case aside."""
    folded = {name.casefold(): name for name in known}
    found = get_close_matches(kind.casefold()[:100], folded, n=1, cutoff=CLOSE)
    return folded[found[0]] if found else ""
