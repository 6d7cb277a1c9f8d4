"""Names of objects in other namespaces are for those who may read these, whatever else is told."""

import json
from random import Random

import pytest

from dovetail.api.claims import ResourceClaim
from dovetail.core.allocator import place
from dovetail.core.budget import Budget
from dovetail.core.explain import explain
from dovetail.core.outcome import DoesNotFit, RequestInvalid
from dovetail.core.refusals import Release
from dovetail.core.wording import objects
from tests.support.cases import AllocationCase, holders_of
from tests.support.worlds import make_world

WORLDS = 1_500
VIEWER = "tenant-b"
TENANTS = (VIEWER, "tenant-a", "tenant-c")


def test_no_refusal_names_a_holder_of_another_namespace() -> None:
    """On worlds by chance with three tenants; who may see all is told each holder that matters."""
    hidden = shown = 0
    for seed in range(WORLDS):
        random, world = Random(seed), make_world(Random(seed))
        holders = list(holders_of(world["allocated"]))
        case = AllocationCase(str(seed), {**world, "node": world["nodes"][0], "allocated": {}})
        inventory = case.inventory(world["nodes"])
        for number, holder in enumerate(holders):
            holder["metadata"] = {"name": f"secret-{number}", "namespace": random.choice(TENANTS)}
            inventory.put_claim(ResourceClaim.parse(holder))
        claims = [
            ResourceClaim.parse({**body, "metadata": {**body["metadata"], "namespace": VIEWER}})
            for body in world["claims"]
        ]
        nodes = tuple(node["metadata"]["name"] for node in world["nodes"])
        try:
            outcome = place(inventory, claims, nodes, budget=Budget.unlimited())
        except RequestInvalid:
            continue
        if not isinstance(outcome, DoesNotFit):
            continue
        told, full = explain(outcome, VIEWER), explain(outcome)
        assert "tenant-a" not in told, json.dumps(told)
        assert "tenant-c" not in told, json.dumps(told)
        for given in outcome.help:
            if isinstance(given, Release):
                others = [holder for holder in given.holders if holder[0] != VIEWER]
                assert all(name not in told for namespace, name in others)
                hidden += len(others)
                shown += sum("/".join(holder) in full for holder in given.holders)
    assert hidden > 10
    assert shown > hidden


@pytest.mark.parametrize(
    ("viewer", "told"),
    [
        (None, "claims a/x, a/y and b/z"),
        ("a", "claims a/x and a/y and 1 claim of another namespace"),
        ("b", "claim b/z and 2 claims of another namespace"),
        ("c", "3 claims of other namespaces"),
    ],
)
def test_objects_are_named_or_counted_by_who_reads(viewer: str | None, told: str) -> None:
    """One's own by name, those of others by number."""
    assert objects("claim", [("a", "x"), ("a", "y"), ("b", "z")], viewer) == told
