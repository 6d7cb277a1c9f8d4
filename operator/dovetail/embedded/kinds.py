"""Which kinds the embedded API server serves, and how each behaves.

A CustomResourceDefinition adds its kind at run time, and takes it away when it is deleted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.embedded.bodies import Body

CRD_GROUP = "apiextensions.k8s.io"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind in one version. `plural` is its name in URLs."""

    group: str
    version: str
    name: str
    plural: str
    namespaced: bool = True
    status: bool = False
    short: tuple[str, ...] = ()
    builtin: bool = True
    unconditional_update: bool = True
    stored: bool = True
    generation: bool = False

    @property
    def api_version(self) -> str:
        """The value of `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The plural with the group, as in error messages: `resourceclaims.resource.k8s.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def subresources(self) -> tuple[str, ...]:
        """What may follow the name of an object in a URL."""
        status = ("status",) if self.status else ()
        return (*status, "binding") if self.resource == "pods" else status


_DRA = ("resource.k8s.io", "v1")
_REVIEW = ("authorization.k8s.io", "v1")

EVENT = Kind("", "v1", "Event", "events", short=("ev",))
NEW_EVENT = Kind("events.k8s.io", "v1", "Event", "events", short=("ev",))
POD = Kind("", "v1", "Pod", "pods", status=True, short=("po",), generation=True)
NODE = Kind("", "v1", "Node", "nodes", namespaced=False, status=True, short=("no",))
NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False, status=True, short=("ns",))
CLAIM = Kind(*_DRA, "ResourceClaim", "resourceclaims", status=True)
TEMPLATE = Kind(*_DRA, "ResourceClaimTemplate", "resourceclaimtemplates")
SLICE = Kind(*_DRA, "ResourceSlice", "resourceslices", namespaced=False, generation=True)
TAINT_RULE = Kind(
    *_DRA, "DeviceTaintRule", "devicetaintrules", namespaced=False, status=True, generation=True
)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases", unconditional_update=False)
CRD = Kind(
    CRD_GROUP,
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
    status=True,
    short=("crd",),
    generation=True,
)
ACCESS_REVIEW = Kind(
    *_REVIEW, "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False, stored=False
)

BUILTIN: tuple[Kind, ...] = (
    POD,
    NODE,
    NAMESPACE,
    EVENT,
    NEW_EVENT,
    Kind("", "v1", "ServiceAccount", "serviceaccounts", short=("sa",)),
    Kind("", "v1", "ConfigMap", "configmaps", short=("cm",)),
    Kind("", "v1", "Secret", "secrets"),
    Kind("", "v1", "Service", "services", status=True, short=("svc",)),
    Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", status=True, short=("pvc",)),
    Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False, status=True, short=("pv",)),
    Kind("apps", "v1", "Deployment", "deployments", status=True, short=("deploy",), generation=True),
    Kind("apps", "v1", "StatefulSet", "statefulsets", status=True, short=("sts",), generation=True),
    Kind("batch", "v1", "Job", "jobs", status=True, generation=True),
    Kind("apps", "v1", "ReplicaSet", "replicasets", status=True, short=("rs",), generation=True),
    Kind("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False),
    Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False, short=("sc",)),
    CLAIM,
    TEMPLATE,
    SLICE,
    Kind(*_DRA, "DeviceClass", "deviceclasses", namespaced=False, generation=True),
    TAINT_RULE,
    LEASE,
    ACCESS_REVIEW,
    CRD,
)


class Kinds:
    """The kinds served now. Names of kinds are unique except Event, which core/v1 keeps."""

    def __init__(self) -> None:
        self._kinds: list[Kind] = list(BUILTIN)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds)

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind that a URL names."""
        wanted = (group, version, plural)
        return next((kind for kind in self if (kind.group, kind.version, kind.plural) == wanted), None)

    def named(self, name: str) -> Kind:
        """The kind of that name; `KeyError` where none is served."""
        found = next((kind for kind in self if kind.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def of(self, body: Body) -> Kind:
        """The kind that `apiVersion` and `kind` of an object name; `KeyError` where it is not served."""
        wanted = (body.get("apiVersion"), body.get("kind"))
        found = next((kind for kind in self if (kind.api_version, kind.name) == wanted), None)
        if found is None:
            raise KeyError(f"{wanted[1]} of {wanted[0]}")
        return found

    def leave_out(self, kind: Kind) -> None:
        """Serve a kind no longer, as an API server does that was started anew with a gate off."""
        self._kinds.remove(kind)

    def take_up(self, kind: Kind) -> None:
        """Serve it again."""
        self._kinds.append(kind)

    def register(self, definition: Body) -> None:
        """Serve every served version of a CustomResourceDefinition."""
        self.unregister(definition)
        self._kinds += kinds_of(definition)

    def unregister(self, definition: Body) -> tuple[Kind, ...]:
        """Serve it no longer; the answer is what was served."""
        group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        gone = tuple(kind for kind in self if (kind.group, kind.plural) == (group, plural))
        self._kinds = [kind for kind in self if kind not in gone]
        return gone


def kinds_of(definition: Body) -> list[Kind]:
    """The kinds that a CustomResourceDefinition defines, one per served version."""
    spec = definition["spec"]
    names = spec["names"]
    return [
        Kind(
            group=spec["group"],
            version=version["name"],
            name=names["kind"],
            plural=names["plural"],
            namespaced=spec["scope"] == "Namespaced",
            status="status" in (version.get("subresources") or {}),
            short=tuple(names.get("shortNames") or ()),
            builtin=False,
            generation=True,
            unconditional_update=False,
        )
        for version in spec["versions"]
        if version.get("served")
    ]
