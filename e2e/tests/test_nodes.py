"""Dovetail and kube-scheduler agree on which nodes a pod can use."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from dovetail.core.candidates import Party, candidates_for
from dovetail.core.features import Features
from dovetail.core.world import World
from e2e.harness.oracle import Answer, Oracle
from e2e.tests.node_worlds import cluster

WORLDS = 600
REFUSING = {
    *("TaintToleration", "NodeUnschedulable", "NodeAffinity", "NodeResourcesFit", "NodePorts"),
    *("InterPodAffinity", "PodTopologySpread"),
    *("VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"),
}
"""Each of these plugins has to refuse some node, or the test would not have tried it."""


@pytest.fixture(scope="module")
def node_oracle() -> Iterator[Oracle]:
    """kube-scheduler's own filter plugins."""
    with Oracle(program="node-oracle") as oracle:
        yield oracle


def test_nodes_are_judged_as_kube_scheduler_judges_them(node_oracle: Oracle) -> None:
    """On random clusters, for every pod and node, whatever conditions the pod has."""
    clusters = [cluster(seed) for seed in range(WORLDS)]
    answers = node_oracle.ask_all("nodes", [{"objects": objects, "pods": pods} for objects, pods in clusters])
    refusing: Counter[str] = Counter()
    different: list[str] = []
    for seed, ((objects, _), answer) in enumerate(zip(clusters, answers, strict=True)):
        assert "fault" not in answer, answer["fault"]
        different += _differences(seed, _world(objects), answer, refusing)
    assert different == []
    assert set(refusing) >= REFUSING
    assert refusing["nobody"] > WORLDS


def _world(objects: list[dict[str, Any]]) -> World:
    world = World(Features())
    for body in objects:
        world.put(body["kind"], body)
    assert world.problems == {}
    return world


def _differences(seed: int, world: World, answer: Answer, refusing: Counter[str]) -> Iterator[str]:
    for pod, verdicts in answer["pods"].items():
        ours = candidates_for(world, Party((world.footprints["default", pod],)))
        for node, reason in verdicts.items():
            refusing[reason.partition(":")[0] or "nobody"] += 1
            if (node in ours.usable) != (not reason):
                yield f"cluster {seed}, {pod} on {node}: {reason or 'usable'}, not {ours.refused.get(node)}"
