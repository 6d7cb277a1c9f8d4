"""The CustomResourceDefinitions of Dovetail's own API group, as far as serving needs them: no schema."""

from dovetail.api.mappings import GROUP, VERSION
from dovetail.embedded.bodies import Body

KINDS = ("DerivedAttribute", "DeviceOwnership")


def definitions() -> list[Body]:
    """The definitions of all kinds: cluster-scoped, with a status subresource."""
    return [_definition(kind) for kind in KINDS]


def _definition(kind: str) -> Body:
    singular = kind.lower()
    plural = singular.removesuffix("y") + "ies" if singular.endswith("y") else singular + "s"
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": singular}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }
