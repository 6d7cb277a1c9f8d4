"""The CustomResourceDefinition of Dovetail's own API group, as far as serving needs it: no schema."""

from dovetail.api.mappings import GROUP, VERSION
from dovetail.embedded.bodies import Body


def derived_attribute_definition() -> Body:
    """DerivedAttribute, cluster-scoped, with a status subresource."""
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {
        "kind": "DerivedAttribute",
        "listKind": "DerivedAttributeList",
        "plural": "derivedattributes",
        "singular": "derivedattribute",
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"derivedattributes.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }
