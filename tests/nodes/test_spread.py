"""Pods are spread over domains as kube-scheduler's PodTopologySpread says."""

from typing import Any

import pytest

from dovetail.core.node_refusals import NodeCause
from tests.nodes.asking import cause, usable
from tests.planner.worlds import Body, node, pod, world_of

ZONES = [node("a1", labels={"zone": "a"}), node("b1", labels={"zone": "b"}), node("c1", labels={"zone": "c"})]
WEB = {"matchLabels": {"app": "web"}}
MINE: Body = {"labels": {"app": "web"}}


def spread(**more: Any) -> Body:
    """A constraint over zones with skew 1."""
    return {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": WEB,
        **more,
    }


def wanted(*constraints: Body, **spec: Any) -> Body:
    """A pod of the app web that is to be spread."""
    return pod(metadata=MINE, topologySpreadConstraints=list(constraints or (spread(),)), **spec)


def running(*where: str, **metadata: Any) -> list[Body]:
    """Pods of the app web on nodes."""
    return [
        pod(f"w{index}", gated=False, nodeName=name, metadata={**MINE, **metadata})
        for index, name in enumerate(where)
    ]


def test_no_domain_may_have_more_than_its_skew_above_the_emptiest() -> None:
    """The pod itself counts."""
    world = world_of(*ZONES, *running("a1", "b1"), wanted())
    assert usable(world) == ("c1",)
    assert cause(world, "a1") is NodeCause.SPREAD
    assert usable(world_of(*ZONES, *running("a1", "b1"), wanted(spread(maxSkew=2)))) == ("a1", "b1", "c1")


def test_a_pod_that_the_selector_does_not_match_adds_nothing() -> None:
    """It may go where the skew is at its limit."""
    other = pod(topologySpreadConstraints=[spread()])
    assert usable(world_of(*ZONES, *running("a1"), other)) == ("a1", "b1", "c1")


def test_a_preference_to_spread_decides_nothing() -> None:
    """Only DoNotSchedule does."""
    world = world_of(*ZONES, *running("a1"), wanted(spread(whenUnsatisfiable="ScheduleAnyway")))
    assert usable(world) == ("a1", "b1", "c1")


def test_nodes_without_the_label_are_not_used_and_do_not_count() -> None:
    """They have no domain."""
    world = world_of(*ZONES, node("bare"), *running("a1", "b1", "c1"), wanted())
    assert usable(world) == ("a1", "b1", "c1")


@pytest.mark.parametrize(("least", "nodes"), [(None, ("a1", "b1", "c1")), (3, ("a1", "b1", "c1")), (4, ())])
def test_with_fewer_domains_than_wanted_the_emptiest_counts_as_empty(
    least: int | None, nodes: tuple[str, ...]
) -> None:
    """So that new domains get their share first (minDomains)."""
    constraint = spread(minDomains=least) if least else spread()
    assert usable(world_of(*ZONES, *running("a1", "b1", "c1"), wanted(constraint))) == nodes


def test_nodes_outside_the_pods_affinity_do_not_count_unless_told_to() -> None:
    """nodeAffinityPolicy: Honor is the default."""
    selector = {"nodeSelector": {"disk": "ssd"}}
    nodes = [node("a1", labels={"zone": "a", "disk": "ssd"}), node("b1", labels={"zone": "b"})]
    assert usable(world_of(*nodes, *running("a1"), wanted(**selector))) == ("a1",)
    ignoring = wanted(spread(nodeAffinityPolicy="Ignore"), **selector)
    assert usable(world_of(*nodes, *running("a1"), ignoring)) == ()


def test_tainted_nodes_count_unless_told_not_to() -> None:
    """nodeTaintsPolicy: Ignore is the default."""
    tainted = node("b1", labels={"zone": "b"}, taints=[{"key": "k", "effect": "NoSchedule"}])
    nodes = [ZONES[0], tainted]
    assert usable(world_of(*nodes, *running("a1"), wanted())) == ()
    assert usable(world_of(*nodes, *running("a1"), wanted(spread(nodeTaintsPolicy="Honor")))) == ("a1",)


def test_pods_on_their_way_out_and_of_other_namespaces_do_not_count() -> None:
    """Neither adds to a domain."""
    leaving = running("a1", deletionTimestamp="2026-01-01T00:00:00Z")
    assert usable(world_of(*ZONES, *leaving, wanted())) == ("a1", "b1", "c1")
    elsewhere = running("a1", namespace="other")
    assert usable(world_of(*ZONES, *elsewhere, wanted())) == ("a1", "b1", "c1")


def test_label_keys_separate_the_generations_of_a_workload() -> None:
    """Only pods with the pod's own value of the label are counted."""
    others = running("a1", labels={"app": "web", "hash": "old"})
    mine = pod(
        metadata={"labels": {"app": "web", "hash": "new"}},
        topologySpreadConstraints=[spread(matchLabelKeys=["hash"])],
    )
    assert usable(world_of(*ZONES, *others, mine)) == ("a1", "b1", "c1")


def test_every_constraint_has_to_hold() -> None:
    """A node that lacks the label of one of them counts for none."""
    racks = [
        node("a1", labels={"zone": "a", "rack": "1"}),
        node("b1", labels={"zone": "b", "rack": "1"}),
        node("b2", labels={"zone": "b", "rack": "2"}),
        node("c1", labels={"zone": "c"}),
    ]
    world = world_of(*racks, *running("a1"), wanted(spread(), spread(topologyKey="rack")))
    assert usable(world) == ("b2",)
