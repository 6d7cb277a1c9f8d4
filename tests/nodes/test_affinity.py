"""Pods that need, avoid or are avoided by other pods are placed as kube-scheduler's InterPodAffinity says."""

from itertools import count
from typing import Any

import pytest

from dovetail.core.budget import Budget, BudgetSpent
from dovetail.core.candidates import Party, candidates_for
from dovetail.core.node_refusals import NodeCause
from dovetail.core.world import World
from tests.nodes.asking import cause, usable
from tests.planner.worlds import HOSTNAME, Body, node, pod, world_of

ZONES = [node("a1", labels={"zone": "a"}), node("a2", labels={"zone": "a"}), node("b1", labels={"zone": "b"})]
WEB = {"matchLabels": {"app": "web"}}


def term(selector: Body | None = None, key: str = "zone", **more: Any) -> Body:
    """A term over zones about pods of the app web."""
    return {"topologyKey": key, "labelSelector": WEB if selector is None else selector, **more}


def affinity(direction: str, *terms: Body) -> Body:
    """A pod's affinity: `podAffinity` or `podAntiAffinity`."""
    return {direction: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def near(*terms: Body) -> Body:
    """Affinity to others."""
    return affinity("podAffinity", *(terms or (term(),)))


def away(*terms: Body) -> Body:
    """Anti-affinity to others."""
    return affinity("podAntiAffinity", *(terms or (term(),)))


def running(
    name: str, where: str, *, labels: Body | None = None, namespace: str = "default", **spec: Any
) -> Body:
    """A pod of the app web on a node."""
    metadata = {"labels": labels if labels is not None else {"app": "web"}, "namespace": namespace}
    return pod(name, gated=False, nodeName=where, metadata=metadata, **spec)


def test_affinity_wants_a_domain_with_a_matching_pod() -> None:
    """Any node of the domain will do."""
    world = world_of(*ZONES, running("w", "a1"), pod(affinity=near()))
    assert usable(world) == ("a1", "a2")
    assert cause(world, "b1") is NodeCause.POD_AFFINITY


def test_affinity_is_met_by_nobody_where_nobody_matches() -> None:
    """Pods of another namespace, or with other labels, do not count."""
    others = [running("w", "a1", namespace="other"), running("x", "a1", labels={"app": "db"})]
    assert usable(world_of(*ZONES, *others, pod(affinity=near()))) == ()


def test_the_first_of_a_group_may_open_a_domain() -> None:
    """A pod that matches its own terms needs no company where no pod matches them at all."""
    wanted = pod(affinity=near(), metadata={"labels": {"app": "web"}})
    assert usable(world_of(*ZONES, wanted)) == ("a1", "a2", "b1")
    assert usable(world_of(*ZONES, wanted, running("w", "b1"))) == ("b1",)


def test_a_node_without_the_label_is_in_no_domain() -> None:
    """Affinity never holds there, not even for the first of a group; anti-affinity always does."""
    first = pod(affinity=near(), metadata={"labels": {"app": "web"}})
    assert usable(world_of(node("bare"), first)) == ()
    assert usable(world_of(*ZONES, node("bare"), running("w", "a1"), pod(affinity=away()))) == ("b1", "bare")


def test_affinity_with_several_terms_wants_a_pod_that_matches_them_all() -> None:
    """Two pods that match one term each do not add up."""
    both = near(term(), term({"matchLabels": {"tier": "1"}}))
    halves = [running("w", "a1"), running("x", "a1", labels={"tier": "1"})]
    assert usable(world_of(*ZONES, *halves, pod(affinity=both))) == ()
    whole = running("y", "b1", labels={"app": "web", "tier": "1"})
    assert usable(world_of(*ZONES, *halves, whole, pod(affinity=both))) == ("b1",)


def test_anti_affinity_avoids_a_domain_with_any_matching_pod() -> None:
    """Each term for itself."""
    terms = away(term(key=HOSTNAME), term({"matchLabels": {"tier": "1"}}))
    others = [running("w", "a1"), running("x", "b1", labels={"tier": "1"})]
    world = world_of(*ZONES, *others, pod(affinity=terms))
    assert usable(world) == ("a2",)
    assert cause(world, "a1") is NodeCause.POD_ANTI_AFFINITY


def test_a_pod_is_kept_away_by_the_anti_affinity_of_others() -> None:
    """Though it has no term itself; a pod that no node holds keeps nobody away."""
    loner = running("loner", "a1", labels={}, affinity=away())
    world = world_of(*ZONES, loner, pod(metadata={"labels": {"app": "web"}}), pod("db"))
    assert usable(world) == ("b1",)
    assert cause(world, "a1") is NodeCause.AVOIDED_BY_POD
    assert usable(world, "db") == ("a1", "a2", "b1")
    world.put("Pod", pod("loner", affinity=away()))
    assert usable(world) == ("a1", "a2", "b1")
    world.put("Pod", loner)
    world.drop("Pod", "default", "loner")
    assert usable(world) == ("a1", "a2", "b1")


@pytest.mark.parametrize(
    ("where", "matches"),
    [
        ({"namespaces": ["other"]}, True),
        ({"namespaces": ["third"]}, False),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "red"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "blue"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, True),
        ({"namespaces": ["third"], "namespaceSelector": {"matchLabels": {"team": "red"}}}, True),
        ({}, False),
    ],
)
def test_namespaces_are_named_or_selected(where: Body, matches: bool) -> None:
    """Both add up; without either, the pod's own namespace is meant."""
    namespace = {"kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "red"}}}
    world = world_of(
        *ZONES, namespace, running("w", "a1", namespace="other"), pod(affinity=near(term(**where)))
    )
    assert (usable(world) == ("a1", "a2")) is matches


def test_label_keys_stand_for_the_pods_own_values() -> None:
    """`matchLabelKeys` wants the same value, `mismatchLabelKeys` another one; absent labels add nothing."""
    others = [
        running("w", "a1", labels={"app": "web", "v": "1"}),
        running("x", "b1", labels={"app": "web", "v": "2"}),
    ]
    mine = {"labels": {"v": "1"}}
    same = pod("same", affinity=near(term(matchLabelKeys=["v", "absent"])), metadata=mine)
    other = pod("other", affinity=near(term(mismatchLabelKeys=["v"])), metadata=mine)
    world = world_of(*ZONES, *others, same, other)
    assert usable(world, "same") == ("a1", "a2")
    assert usable(world, "other") == ("b1",)


def test_a_term_without_a_selector_is_about_no_pod() -> None:
    """An empty selector is about all of them."""
    nobody = {"topologyKey": "zone"}
    world = world_of(
        *ZONES, running("w", "a1"), pod(affinity=away(nobody)), pod("any", affinity=away(term({})))
    )
    assert usable(world) == ("a1", "a2", "b1")
    assert usable(world, "any") == ("b1",)


def test_preferences_decide_nothing() -> None:
    """Only required terms do."""
    preferred = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}
    assert usable(world_of(*ZONES, running("w", "a1"), pod(affinity=preferred))) == ("a1", "a2", "b1")


def crowd(size: int) -> list[Body]:
    """Pods on b1 that each have hundreds of terms about pods of all namespaces."""
    terms = [term({"matchLabels": {"app": f"other-{index}"}}, namespaceSelector={}) for index in range(300)]
    return [
        pod(f"p{index}", gated=False, nodeName="b1", affinity=away(*terms, term(namespaceSelector={})))
        for index in range(size)
    ]


def is_decided(world: World, looks: int) -> bool:
    """Whether the nodes are known before the clock was looked at more often than that."""
    ticks = count()
    try:
        budget = Budget(1_000_000, is_over=lambda: next(ticks) >= looks)
        return candidates_for(world, Party((world.footprints["default", "pod"],), budget=budget)) is not None
    except BudgetSpent:
        return False


def test_others_with_many_terms_are_looked_at_once() -> None:
    """A decision that was cut meanwhile goes on where it stopped, and the next ones take no time for it."""
    world = world_of(*ZONES, *crowd(8), pod(metadata={"labels": {"app": "web", "own": "x"}}))
    assert [is_decided(world, looks=3) for _ in range(4)] == [False, False, True, True]
    world.put("Pod", pod(metadata={"labels": {"app": "web", "own": "y"}}))
    world.put("Pod", crowd(1)[0] | {"status": {"phase": "Running"}})
    assert is_decided(world, looks=0)


def test_what_avoids_a_pod_follows_the_labels_that_terms_read() -> None:
    """Another pod, other labels, a namespace with other labels and a changed avoider are judged anew."""
    world = world_of(*ZONES, *crowd(1), pod(metadata={"labels": {"app": "web"}}))
    assert usable(world) == ("a1", "a2")
    world.put("Pod", pod(metadata={"labels": {"app": "db"}}))
    assert usable(world) == ("a1", "a2", "b1")
    world.put("Pod", pod(metadata={"labels": {"app": "other-7"}}))
    assert usable(world) == ("a1", "a2")
    world.put("Pod", crowd(1)[0] | {"metadata": {"name": "p0", "namespace": "default", "uid": "anew"}})
    assert usable(world) == ("a1", "a2")
    world.drop("Pod", "default", "p0")
    assert usable(world) == ("a1", "a2", "b1")


def test_terms_by_namespace_follow_its_labels() -> None:
    """A namespace that gets the label comes under the term."""
    only = term(namespaceSelector={"matchLabels": {"team": "x"}})
    world = world_of(
        *ZONES,
        pod("p", gated=False, nodeName="b1", affinity=away(only)),
        pod(metadata={"labels": {"app": "web"}}),
    )
    assert usable(world) == ("a1", "a2", "b1")
    world.put("Namespace", {"kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "x"}}})
    assert usable(world) == ("a1", "a2")
