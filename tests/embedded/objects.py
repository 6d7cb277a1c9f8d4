"""Objects of the tests, with only the relevant fact written out."""

from typing import Any

from tests.embedded.steps import Body, allocation, claim, consumer, pod, spec

__all__ = ["Body", "allocation", "claim", "config_map", "consumer", "node", "pod", "spec", "template"]


def config_map(name: str, **labels: str) -> Body:
    """The plainest object there is."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


def node(name: str, **spec_changes: Any) -> Body:
    """A node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec_changes,
    }


def template(name: str = "pair") -> Body:
    """A template of the claim for two devices."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"metadata": {"labels": {"team": "a"}}, "spec": spec()},
    }
