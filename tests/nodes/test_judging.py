"""A pod can use the nodes that kube-scheduler would let it use: labels, taints, and what is left on each."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.node_refusals import NodeCause
from dovetail.core.world import World
from tests.nodes.asking import candidates, cause, usable
from tests.planner.worlds import Body, allocated, claim, device_class, devices, named, node, pod, world_of

TAINT = {"key": "team", "value": "red", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("tolerations", "holds"),
    [
        ([], False),
        ([{"operator": "Exists"}], True),
        ([{"key": "team", "operator": "Exists"}], True),
        ([{"key": "team", "value": "red"}], True),
        ([{"key": "team", "value": "red", "effect": "NoSchedule"}], True),
        ([{"key": "team", "value": "red", "effect": "NoExecute"}], False),
        ([{"key": "team", "value": "blue"}], False),
        ([{"key": "other", "operator": "Exists"}], False),
    ],
)
def test_a_taint_is_tolerated_as_core_v1_says(tolerations: list[Body], holds: bool) -> None:
    """By key, value and effect, each of which may be left open."""
    world = world_of(node("n1", taints=[TAINT]), pod(tolerations=tolerations))
    assert (usable(world) == ("n1",)) is holds


@pytest.mark.parametrize(
    ("effect", "blocks"), [("NoExecute", True), ("PreferNoSchedule", False), ("Odd", False)]
)
def test_only_effects_that_forbid_keep_a_pod_away(effect: str, blocks: bool) -> None:
    """A preference does not, nor does an effect that nobody knows."""
    world = world_of(node("n1", taints=[{"key": "k", "effect": effect}]), pod())
    assert (usable(world) == ()) is blocks


def test_a_cordoned_node_is_not_used() -> None:
    """Whether or not the taint that goes with it is there yet; who tolerates that taint may."""
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    world = world_of(node("n1", unschedulable=True), pod(), pod("daemon", tolerations=[toleration]))
    assert cause(world, "n1") is NodeCause.UNSCHEDULABLE
    assert usable(world, "daemon") == ("n1",)


def test_node_selector_and_required_affinity_both_have_to_hold() -> None:
    """A preference does not count."""
    labels = {"zone": "a", "disk": "ssd"}
    world = world_of(
        node("n1", labels=labels), node("n2", labels={"zone": "a"}), node("n3", labels={"disk": "ssd"})
    )
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    world.put("Pod", pod(nodeSelector={"disk": "ssd"}, affinity={"nodeAffinity": required}))
    world.put("Pod", pod("wishful", affinity={"nodeAffinity": preferred}))

    assert usable(world) == ("n1",)
    assert cause(world, "n2") is NodeCause.SELECTOR
    assert cause(world, "n3") is NodeCause.AFFINITY
    assert usable(world, "wishful") == ("n1", "n2", "n3")


def test_what_runs_on_a_node_is_taken_from_it() -> None:
    """Pods that are bound count, those that are done do not."""
    world = world_of(node("n1", cpu="4"), pod(cpu="3"))
    assert usable(world) == ("n1",)
    world.put("Pod", pod("other", gated=False, cpu="2", nodeName="n1"))
    assert cause(world, "n1") is NodeCause.RESOURCES
    world.put("Pod", pod("other", gated=False, cpu="2", nodeName="n1", status={"phase": "Succeeded"}))
    assert usable(world) == ("n1",)


def test_a_pod_whose_devices_tie_it_to_a_node_counts_there() -> None:
    """It has no node yet, but can go nowhere else."""
    world = world_of(node("n1", cpu="4"), pod(cpu="3"), pod("holder", template="t", cpu="2"))
    assert usable(world) == ("n1",)
    world.put("ResourceClaim", claim(owner="holder", status=allocated("n1", "dev-0")))
    assert usable(world) == ()
    world.put("ResourceClaim", claim(owner="holder"))
    assert usable(world) == ("n1",)


@pytest.mark.parametrize(("priority", "counts"), [(10, True), (5, True), (1, False)])
def test_a_nominated_pod_counts_against_pods_of_at_most_its_priority(priority: int, counts: bool) -> None:
    """As kube-scheduler counts them."""
    nominated = pod("first", cpu="3", priority=priority, status={"nominatedNodeName": "n1"})
    world = world_of(node("n1", cpu="4"), node("n2", cpu="4"), nominated, pod(cpu="2", priority=5))
    assert usable(world) == (("n2",) if counts else ("n1", "n2"))


def test_a_node_takes_only_so_many_pods() -> None:
    """The number is one more resource."""
    running = [pod(f"p{index}", gated=False, nodeName="n1") for index in range(9)]
    world = world_of(node("n1"), pod(), *running)
    assert usable(world) == ("n1",)
    world.put("Pod", pod("tenth", gated=False, nodeName="n1"))
    assert cause(world, "n1") is NodeCause.PODS


def test_a_resource_that_a_class_backs_is_no_capacity_of_a_node_without_it() -> None:
    """kube-scheduler serves it from devices there; a device plugin's count is a count (KEP-5004)."""
    requests = {"requests": {"example.com/gpu": "2", "deviceclass.resource.kubernetes.io/x": "1"}}
    wanted = pod(containers=[{"name": "main", "resources": requests}])
    plugin = node("plugin")
    plugin["status"]["allocatable"]["example.com/gpu"] = "1"
    world = world_of(node("n1"), plugin, wanted)
    assert usable(world) == ()
    world.put("DeviceClass", device_class("gpu", extendedResourceName="example.com/gpu"))
    assert usable(world) == ("n1",)


def test_nodes_that_only_slices_name_exist_where_that_is_assumed() -> None:
    """Nothing is known of them but their name: no label or resource is missing there."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n2"]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    picky = pod(nodeSelector={"zone": "a"}, cpu="100", affinity={"nodeAffinity": affinity})
    slices = [devices("gpu.example.com", name, [0]) for name in ("n1", "n2")]
    assert usable(world_of(*slices, picky, assume=True)) == ("n1",)
    assert usable(world_of(*slices, picky)) == ()


def test_a_node_that_reports_nothing_has_no_room_unless_that_is_assumed() -> None:
    """A manifest often leaves the status out; a running node without one takes no pod."""
    bare: Body = {"kind": "Node", "metadata": {"name": "n1"}}
    assert usable(world_of(bare, pod(cpu="1"), assume=True)) == ("n1",)
    assert usable(world_of(bare, pod(cpu="1"))) == ()
    stored: Body = {"kind": "Node", "metadata": {"name": "n1", "uid": "u"}}
    assert usable(world_of(stored, pod(cpu="1"), assume=True)) == ()


def test_the_answer_is_the_same_object_while_nothing_changes() -> None:
    """Searches over equal candidates are kept by it."""
    world = world_of(*(node(f"n{index}") for index in range(8)), pod(cpu="1"), pod("twin", cpu="1"))
    first = usable(world)
    world.put("Pod", pod("busy", gated=False, cpu="1", nodeName="n3"))
    assert usable(world, "twin") is first


def test_equal_pods_are_judged_once_and_only_changed_nodes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second pod of the same shape costs nothing, a node that fills up costs one look."""
    world = world_of(
        *(node(f"n{index}", cpu="2") for index in range(100)), pod(cpu="2"), pod("twin", cpu="2")
    )
    usable(world)
    looks: list[str] = []
    judge: Callable[..., Any] = world.judge.refuse

    def counted(state: Any, *arguments: Any, **named: Any) -> Any:
        looks.append(state.name)
        return judge(state, *arguments, **named)

    monkeypatch.setattr(world.judge, "refuse", counted)
    assert len(usable(world, "twin")) == 100
    assert looks == []
    world.put("Pod", pod("busy", gated=False, cpu="1", nodeName="n7"))
    assert len(usable(world)) == 99
    assert looks == ["n7"]


CHANGES = st.lists(
    st.tuples(st.sampled_from(["fill", "empty", "taint", "clean", "gone", "ask"]), st.integers(0, 4)),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(CHANGES)
def test_what_is_kept_never_differs_from_judging_anew(changes: list[tuple[str, int]]) -> None:
    """After any changes, in any order, with questions between them."""
    kept = world_of(*(node(f"n{index}", cpu="2") for index in range(5)), pod(cpu="2"))
    bodies: dict[tuple[str, str], Body] = {
        ("Node", f"n{index}"): node(f"n{index}", cpu="2") for index in range(5)
    }
    bodies["Pod", "pod"] = pod(cpu="2")
    for action, index in changes:
        _change(kept, bodies, action, f"n{index}")
    fresh = world_of(*bodies.values())
    assert candidates(kept).usable == candidates(fresh).usable
    assert candidates(kept).refused == candidates(fresh).refused


def _change(world: World, bodies: dict[tuple[str, str], Body], action: str, name: str) -> None:
    match action:
        case "fill":
            bodies["Pod", f"on-{name}"] = pod(f"on-{name}", gated=False, cpu="1", nodeName=name)
        case "taint":
            bodies["Node", name] = node(name, cpu="2", taints=[TAINT])
        case "clean":
            bodies["Node", name] = node(name, cpu="2")
        case "empty" if bodies.pop(("Pod", f"on-{name}"), None):
            world.drop("Pod", "default", f"on-{name}")
        case "gone" if bodies.pop(("Node", name), None):
            world.drop("Node", "", name)
        case _:
            usable(world)
    for (kind, _), body in bodies.items():
        world.put(kind, body)


def test_room_is_kept_for_pods_that_share_an_allocated_claim() -> None:
    """They can go nowhere else: their node was chosen for all of them. Pods of higher priority go first."""
    status = allocated("n1", "dev-0", reserved=["first"])
    world = world_of(
        node("n1", cpu="8"),
        claim("shared", status=status),
        pod("first", claims=[named("shared")], cpu="3", priority=5),
        pod("second", claims=[named("shared")], cpu="3", priority=5),
        pod(cpu="3", priority=5),
        pod("urgent", cpu="3", priority=6),
    )
    assert usable(world) == ()
    assert usable(world, "second") == ("n1",)
    assert usable(world, "urgent") == ("n1",)
    world.drop("Pod", "default", "second")
    assert usable(world) == ("n1",)


def test_no_room_is_kept_for_pods_that_do_not_fit_anyway() -> None:
    """What is left is not wasted on them."""
    status = allocated("n1", "dev-0", reserved=["first"])
    world = world_of(
        node("n1", cpu="8"),
        claim("shared", status=status),
        pod("first", claims=[named("shared")], cpu="5"),
        pod("second", claims=[named("shared")], cpu="5"),
        pod(cpu="3"),
    )
    assert usable(world) == ("n1",)
