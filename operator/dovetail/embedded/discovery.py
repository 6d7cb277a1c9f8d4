"""What clients ask first: which groups, versions and resources there are."""

from collections.abc import Iterable, Mapping

from dovetail.embedded.answers import StatusError
from dovetail.embedded.bodies import Body
from dovetail.embedded.kinds import Kind, Kinds

VERSION: Mapping[str, str] = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.2+embedded",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def core_versions() -> Body:
    """`/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(kinds: Kinds) -> Body:
    """`/apis`."""
    names = sorted({kind.group for kind in kinds if kind.group})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(kinds, name) for name in names]}


def group(kinds: Kinds, name: str) -> Body:
    """`/apis/<group>`."""
    return {"kind": "APIGroup", "apiVersion": "v1"} | _group(kinds, name)


def resource_list(kinds: Kinds, group_name: str, version: str) -> Body:
    """`/api/v1` and `/apis/<group>/<version>`."""
    served = [kind for kind in kinds if (kind.group, kind.version) == (group_name, version)]
    if not served:
        raise StatusError(404, "the server could not find the requested resource")
    resources = [entry for kind in served for entry in _resources(kind)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": served[0].api_version,
        "resources": resources,
    }


def aggregated(kinds: Kinds, *, core: bool) -> Body:
    """All groups of `/api` or `/apis` in one document (`APIGroupDiscoveryList`)."""
    names = sorted({kind.group for kind in kinds if bool(kind.group) != core})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [_aggregated_group(kinds, name) for name in names],
    }


def _group(kinds: Kinds, name: str) -> Body:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version} for version in _versions(kinds, name)
    ]
    if not versions:
        raise StatusError(404, "the server could not find the requested resource")
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _versions(kinds: Iterable[Kind], group_name: str) -> list[str]:
    return list(dict.fromkeys(kind.version for kind in kinds if kind.group == group_name))


def _resources(kind: Kind) -> list[Body]:
    whole = {
        "name": kind.plural,
        "singularName": kind.name.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": VERBS if kind.stored else ["create"],
        "shortNames": list(kind.short),
    }
    return [whole] + [
        {
            "name": f"{kind.plural}/{subresource}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": "Binding" if subresource == "binding" else kind.name,
            "verbs": ["create"] if subresource == "binding" else ["get", "patch", "update"],
        }
        for subresource in kind.subresources
    ]


def _aggregated_group(kinds: Kinds, name: str) -> Body:
    return {
        "metadata": {"name": name},
        "versions": [
            {
                "version": version,
                "freshness": "Current",
                "resources": [
                    _aggregated_resource(kind)
                    for kind in kinds
                    if (kind.group, kind.version) == (name, version)
                ],
            }
            for version in _versions(kinds, name)
        ],
    }


def _aggregated_resource(kind: Kind) -> Body:
    return {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.name},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.name.lower(),
        "verbs": VERBS if kind.stored else ["create"],
        "shortNames": list(kind.short),
        "subresources": [
            {
                "subresource": subresource,
                "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.name},
                "verbs": ["create"] if subresource == "binding" else ["get", "patch", "update"],
            }
            for subresource in kind.subresources
        ],
    }
