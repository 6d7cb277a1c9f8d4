"""A large claim that many entries, or many pods, name is written out once."""

from time import process_time
from typing import Any

import pytest

from dovetail.api.kinds import CLAIM, POD
from dovetail.core.features import Features
from dovetail.core.world import World
from dovetail.services.consumers import Consumers
from dovetail.services.costs import content_of_claims
from dovetail.services.digests import Digests
from dovetail.services.picture import Picture
from dovetail.services.suspects import Suspects
from tests.operator.worlds import Body, claim, plain, pod, template

MOST_SECONDS = 0.5
"""Written out for each entry or pod it takes twice as long, at least."""

ENTRIES, PODS = 1_000, 1_000


def identified(body: Body, version: int = 1) -> Body:
    """As the API server shows it."""
    body["metadata"] |= {"uid": f"uid-{body['metadata']['name']}", "resourceVersion": str(version)}
    return body


def large(name: str = "large") -> Body:
    """A claim with as much as a claim may carry."""
    spec = plain("gpu")
    spec["devices"]["config"] = [
        {"opaque": {"driver": f"{index}.example.com", "parameters": {"a": "x" * 10_000}}}
        for index in range(100)
    ]
    return identified(claim(name, spec))


def using(*names: str, **more: Any) -> Body:
    """A pod with an entry for each of the claims."""
    body = identified(pod(more.pop("name", "p"), claim="x", **more))
    body["spec"]["resourceClaims"] = [
        {"name": f"e{index}", "resourceClaimName": name} for index, name in enumerate(names)
    ]
    return body


def test_entries_that_name_one_large_claim_cost_no_more_than_one() -> None:
    """The content that a decision is remembered by is there at once."""
    world, asking = World(Features()), using(*["large"] * ENTRIES)
    for body in (large(), asking):
        world.put(body["kind"], body)
    began = process_time()
    content_of_claims(world, asking, Digests())
    assert process_time() - began < MOST_SECONDS


@pytest.mark.parametrize(("pods", "entries"), [(PODS, 1), (1, ENTRIES)])
def test_ungated_pods_with_one_large_claim_cost_no_more_than_one(pods: int, entries: int) -> None:
    """They are suspects of one kind, and stand in nobody's way."""
    picture = Picture()
    consumers = Consumers()
    suspects = Suspects(picture, consumers, lambda: 0.0)
    picture.follow(consumers.follow)
    picture.follow(suspects.follow)
    picture.rebuild(CLAIM, [large()], "1")
    began = process_time()
    waiting = [using(*["large"] * entries, name=f"p{index}", gates=()) for index in range(pods)]
    picture.rebuild(POD, waiting, "1")
    assert process_time() - began < MOST_SECONDS
    assert suspects.examples() == (("default", "p0"),)


def test_a_pod_of_many_claims_is_not_looked_through_as_each_of_them_comes() -> None:
    """With ten times the claims each one takes a few times as long, not ten times."""
    assert seconds_to_take_in_claims(2000) < 7 * seconds_to_take_in_claims(200)


def seconds_to_take_in_claims(entries: int) -> float:
    """CPU time for the first fifty claims of an ungated pod with so many entries."""
    picture, consumers = Picture(), Consumers()
    suspects = Suspects(picture, consumers, lambda: 0.0)
    picture.follow(consumers.follow)
    picture.follow(suspects.follow)
    names = [f"c{number}" for number in range(entries)]
    picture.rebuild(POD, [using(*names, gates=())], "1")
    bodies = [identified(claim(name, plain("gpu"))) for name in names[:50]]
    began = process_time()
    for body in bodies:
        picture.see(CLAIM, body)
    took = process_time() - began
    assert suspects.examples() == (("default", "p"),)
    return took


def test_a_new_version_is_told_apart_from_the_old_one() -> None:
    """What a claim or template asks for counts, whatever its name and kind."""
    digests = Digests(most=1)
    first = digests.of(CLAIM.name, identified(claim("one", plain("gpu"))))
    assert digests.of(CLAIM.name, identified(claim("two", plain("gpu")))) == first
    assert digests.of("ResourceClaimTemplate", identified(template("t", plain("gpu")))) == first
    assert digests.of(CLAIM.name, identified(claim("one", plain("nic")), version=2)) != first
    assert digests.of(CLAIM.name, None) != first
