"""On which node a pod counts before it has one: by its claims, kept up to date as these change."""

from collections.abc import Callable, Iterator
from random import Random
from time import process_time

import pytest

from dovetail.core.features import Features
from dovetail.core.world import World
from tests.planner.worlds import Body, allocated, claim, named, node, pod, world_of

NODES = ("n1", "n2")
PODS = ("a", "b", "c")
FEATURES = (Features(), Features(node_allocatable_resources=True))
CLAIMS = ("shared", "other", "made-1", "made-2")


def some_claim(chance: Random) -> Body:
    """Made for a pod or nobody's, allocated or not, reserved for some."""
    name = chance.choice(CLAIMS)
    owner = chance.choice(PODS) if name.startswith("made") and chance.random() < 0.9 else None
    reserved = [each for each in PODS if chance.random() < 0.3]
    status = allocated(chance.choice(NODES), "gpu-0", reserved=reserved) if chance.random() < 0.7 else {}
    return claim(name, owner=owner, status=status)


def some_pod(chance: Random) -> Body:
    """It names a claim, or one is made for it; its status may record one; it may be done or bound."""
    recorded = chance.choice((*CLAIMS, None))
    statuses = [{"name": "devices", "resourceClaimName": recorded}] if recorded else []
    entries = [named(chance.choice(CLAIMS[:2]), f"entry-{number}") for number in range(chance.randrange(3))]
    bound: Body = {"nodeName": "n2"} if chance.random() < 0.1 else {}
    return pod(
        chance.choice(PODS),
        template="template" if chance.random() < 0.7 else None,
        claims=entries,
        status={"resourceClaimStatuses": statuses, "phase": chance.choice(("Pending", "Pending", "Failed"))},
        **bound,
    )


def changes(chance: Random) -> Iterator[tuple[str, str, Body | None]]:
    """Objects that come, change, go, or turn unreadable, one at a time: kind, name, body."""
    while True:
        body = some_pod(chance) if chance.random() < 0.3 else some_claim(chance)
        if body["kind"] == "ResourceClaim" and chance.random() < 0.1:
            body["spec"] = "no spec"
        yield body["kind"], body["metadata"]["name"], body if chance.random() < 0.85 else None


@pytest.mark.parametrize("features", FEATURES, ids=["usual", "charged"])
@pytest.mark.parametrize("seed", range(40))
def test_pods_count_as_in_a_world_built_afresh(seed: int, features: Features) -> None:
    """Whatever came and went before, and in whichever order."""
    chance = Random(seed)
    world, bodies = world_of(*map(node, NODES), features=features), dict[tuple[str, str], Body]()
    for (kind, name, body), _ in zip(changes(chance), range(60), strict=False):
        if body is None:
            world.drop(kind, "default", name)
            bodies.pop((kind, name), None)
        else:
            world.put(kind, body)
            bodies[kind, name] = body
        afresh = world_of(*map(node, NODES), *bodies.values(), features=features)
        assert homes(world) == homes(afresh)


def homes(world: World) -> dict[str, object]:
    """Where each pod counts, and with what."""
    return {key[1]: (world.nodes.home_of(key), world.footprints[key].requests) for key in sorted(world.pods)}


def reservations(pods: int) -> Iterator[tuple[World, Body]]:
    """One pod after another joins a claim that so many name."""
    body = claim("shared", status=allocated("n1", "gpu-0"))
    names = [f"p{number}" for number in range(pods)]
    world = world_of(node("n1"), body, *(pod(name, claims=[named("shared")]) for name in names))
    for number in range(20):
        yield world, body | {"status": allocated("n1", "gpu-0", reserved=names[:number])}


def own_claims(entries: int) -> Iterator[tuple[World, Body]]:
    """The claims of a pod of so many entries are made, and get devices of one node."""
    names = [f"e{number}" for number in range(entries)]
    recorded = [{"name": name, "resourceClaimName": f"claim-{name}"} for name in names]
    wanted = [{"name": name, "resourceClaimTemplateName": "template"} for name in names]
    world = world_of(node("n1"), pod(claims=wanted, status={"resourceClaimStatuses": recorded}))
    for name in names[:20]:
        yield world, made(name, {})
    # The first one tells where the pod counts.
    world.put("ResourceClaim", made(names[0], allocated("n1", "gpu-0")))
    for name in names[1:20]:
        yield world, made(name, allocated("n1", "gpu-0"))


def made(entry: str, status: Body) -> Body:
    """The claim for an entry of the pod."""
    body = claim(f"claim-{entry}", owner="pod", status=status)
    body["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": entry}
    return body


@pytest.mark.parametrize("takes", [reservations, own_claims])
def test_what_a_change_costs_does_not_grow_with_those_who_name_the_claim(
    takes: Callable[[int], Iterator[tuple[World, Body]]],
) -> None:
    """Nor with the entries of the pod: only whoever is concerned is gone through."""
    assert seconds_of(takes(2000)) < 4 * seconds_of(takes(100))


def seconds_of(steps: Iterator[tuple[World, Body]]) -> float:
    """CPU time of taking the claims in, without what is prepared for them; three of the slowest left out."""
    took = []
    for world, body in steps:
        began = process_time()
        world.put("ResourceClaim", body)
        took.append(process_time() - began)
    return sum(sorted(took)[:-3])
