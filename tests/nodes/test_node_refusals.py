"""Refusals of many nodes become one phrase."""

import random

from dovetail.core.node_refusals import NodeCause, NodeRefusal, summarize


def test_equal_refusals_are_counted_and_the_most_frequent_comes_first() -> None:
    """What a short resource has left is the most that any of the nodes has."""
    refusals = [
        NodeRefusal(NodeCause.UNSCHEDULABLE),
        NodeRefusal(NodeCause.RESOURCES, "4", "cpu", 1500),
        NodeRefusal(NodeCause.RESOURCES, "4", "cpu", 500),
        NodeRefusal(NodeCause.TAINT, "team=red:NoSchedule"),
    ]
    expected = (
        "2 nodes are short of cpu (4 wanted, at most 1500m left), 1 node is cordoned, "
        "1 node is tainted (team=red:NoSchedule)"
    )
    for seed in range(5):
        random.Random(seed).shuffle(refusals)
        assert summarize(refusals) == expected


def test_long_tails_are_cut() -> None:
    """Four groups are named, the rest is counted."""
    refusals = [NodeRefusal(NodeCause.TAINT, f"k{index}:NoSchedule") for index in range(9)]
    assert summarize(refusals).endswith(", 5 more for other reasons")


def test_nothing_refused_is_nothing_to_say() -> None:
    """The empty phrase."""
    assert summarize([]) == ""
