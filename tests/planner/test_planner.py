"""What the planner decides about one pod."""

from typing import Any

import pytest

from dovetail.core.budget import Budget
from dovetail.core.decisions import (
    Cut,
    Decision,
    DoesNotFit,
    Invalid,
    Nothing,
    NotOurs,
    Place,
    Reserve,
    Ungate,
    Waits,
)
from dovetail.core.order import order_of
from dovetail.core.outcome import Allocation
from dovetail.core.planner import PlanSettings, plan_pod
from dovetail.core.reasons import Reason
from tests.planner.worlds import (
    HOSTNAME,
    NUMA,
    Body,
    allocated,
    claim,
    decide,
    device_class,
    devices_spec,
    hardware,
    mapping,
    named,
    node,
    pod,
    pod_in,
    request,
    template,
    world_of,
)

GPU, NIC = "gpu.example.com", "nic.example.com"
PLAIN = devices_spec(request("gpu", GPU), match=None)


def ours(
    *bodies: Body, nodes: tuple[str, ...] = ("n1", "n2"), exclude_dual_mode: bool = True, **of_pod: Any
) -> Decision:
    """The decision about a gated pod with one unallocated claim of ours."""
    world = world_of(
        *hardware(*nodes),
        template(),
        claim(owner="pod"),
        pod(template="template", **of_pod),
        *bodies,
        exclude_dual_mode=exclude_dual_mode,
    )
    return decide(world)


def device_names(allocation: Allocation) -> list[str]:
    """The devices of an allocation, as driver/pool/device."""
    results = allocation.body["devices"]["results"]
    return [f"{each['driver']}/{each['pool']}/{each['device']}" for each in results]


def placed(decision: Decision) -> Place:
    """The decision, which is to place the pod."""
    assert isinstance(decision, Place), decision
    return decision


def reason(decision: Decision) -> Reason:
    """The reason of a decision that has one."""
    assert isinstance(decision, Waits | DoesNotFit | Invalid | Cut), decision
    return decision.reason


def test_a_pod_gets_aligned_devices_on_the_first_node_by_name() -> None:
    """One grant per unallocated claim, with what its devices have in common; the gate goes."""
    decision = placed(ours())
    (grant,) = decision.grants
    assert decision.node == "n1"
    assert decision.ungate
    assert grant.claim == ("default", "claim")
    assert grant.entry == "devices"
    assert grant.ours
    assert device_names(grant.allocation) == [f"{GPU}/n1/dev-0", f"{NIC}/n1/dev-0"]
    assert [entry.as_json() for entry in grant.allocation.alignment] == [
        {"attribute": NUMA, "requests": ["gpu", "nic"], "value": 0}
    ]


def test_an_ungated_pod_is_served_as_well() -> None:
    """There is no gate to take away."""
    assert not placed(ours(gated=False)).ungate


def test_devices_in_use_are_not_given_again() -> None:
    """T-15: with the NIC of NUMA 0 taken, the pair comes from NUMA 1, never from both."""
    holder = claim("other", spec=devices_spec(), status=allocated("n1", "dev-0", driver=NIC))
    (grant,) = placed(ours(holder)).grants
    assert device_names(grant.allocation) == [f"{GPU}/n1/dev-1", f"{NIC}/n1/dev-1"]


def test_what_cannot_be_aligned_does_not_fit() -> None:
    """T-15: a GPU of NUMA 0 with a free NIC of NUMA 1 only; the sentence names attribute and driver."""
    holders = [
        claim("nic0", status=allocated("n1", "dev-0", driver=NIC)),
        claim("gpu1", status=allocated("n1", "dev-1")),
    ]
    decision = ours(*holders, nodes=("n1",))
    assert isinstance(decision, DoesNotFit)
    assert decision.reason is Reason.NOTHING_FITS
    assert NUMA in decision.sentence
    assert NIC in decision.sentence or GPU in decision.sentence


def test_nodes_that_the_pod_cannot_use_are_passed_over_and_told() -> None:
    """V-3: devices there would be taken back at once."""
    cordoned = node("n1", unschedulable=True)
    assert placed(ours(cordoned)).node == "n2"
    decision = ours(cordoned, nodes=("n1",))
    assert decision == DoesNotFit(Reason.NO_NODE_USABLE, "The pod can use no node: 1 node is cordoned.")
    assert reason(ours(nodes=())) is Reason.NO_NODE_USABLE


def test_avoided_nodes_are_not_chosen() -> None:
    """For a while after an attempt on them failed."""
    world = world_of(*hardware("n1", "n2"), template(), claim(owner="pod"), pod(template="template"))
    assert placed(decide(world, avoid=["n1"])).node == "n2"
    assert reason(decide(world, avoid=["n1", "n2"])) is Reason.NO_NODE_USABLE


def test_the_nominated_node_comes_first() -> None:
    """kube-scheduler made room there; another one does where the devices are gone."""
    assert placed(ours(status={"nominatedNodeName": "n2"})).node == "n2"
    holders = [claim(f"c{index}", status=allocated("n2", f"dev-{index}")) for index in (0, 1)]
    assert placed(ours(*holders, status={"nominatedNodeName": "n2"})).node == "n1"


def test_a_bound_pod_gets_devices_on_its_node_whatever_that_is_like() -> None:
    """V-19: it runs there already, or wants to."""
    cordoned = node("n2", unschedulable=True, cpu="0")
    decision = placed(ours(cordoned, gated=False, nodeName="n2", cpu="4", schedulerName="other"))
    assert decision.node == "n2"
    assert not decision.ungate


def test_pods_with_gates_of_others_wait() -> None:
    """Nothing is allocated until those are gone; they are named."""
    decision = ours(gates=["example.com/quota"])
    assert reason(decision) is Reason.OTHER_GATES
    assert "example.com/quota" in str(decision)


def test_pods_of_other_schedulers_wait_unless_those_are_configured() -> None:
    """The pod's scheduler and the served ones are named."""
    world = world_of(
        *hardware("n1"), template(), claim(owner="pod"), pod(template="template", schedulerName="volcano")
    )
    decision = decide(world)
    assert reason(decision) is Reason.SCHEDULER_NOT_SUPPORTED
    assert "volcano" in str(decision)
    served = PlanSettings(schedulers=frozenset({"volcano"}))
    assert placed(decide(world, settings=served)).node == "n1"


def test_pods_that_are_done_or_going_need_nothing() -> None:
    """Whatever their claims are like."""
    assert ours(status={"phase": "Failed"}) == Nothing()
    assert ours(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}) == Nothing()


def test_a_gated_pod_without_a_claim_of_ours_is_ungated_at_once() -> None:
    """With claims of others, or without any; an ungated one is left alone."""
    for bodies in ([pod()], [pod(claims=[named("claim")]), claim(spec=PLAIN)]):
        assert isinstance(decide(world_of(*hardware("n1"), *bodies)), Ungate)
    assert decide(world_of(*hardware("n1"), pod(gated=False))) == NotOurs()


def test_a_gated_pod_whose_claim_may_be_ours_stays_gated() -> None:
    """The claim or its template is missing, or cannot be read."""
    missing = world_of(*hardware("n1"), pod(claims=[named("claim")]))
    assert reason(decide(missing)) is Reason.CLAIMS_NOT_CREATED
    missing.put("ResourceClaim", {**claim(), "spec": "?"})
    assert reason(decide(missing)) is Reason.CLAIM_MALFORMED
    missing.put("ResourceClaim", claim())
    assert isinstance(decide(missing), Place)
    assert reason(decide(world_of(*hardware("n1"), pod(template="template")))) is Reason.CLAIMS_NOT_CREATED


def test_claims_that_are_not_created_yet_are_waited_for() -> None:
    """What the template will ask for is known, so that the pod is known to be ours."""
    world = world_of(*hardware("n1"), template(), pod(template="template", gated=False))
    decision = decide(world)
    assert reason(decision) is Reason.CLAIMS_NOT_CREATED
    assert "'devices'" in str(decision)


def test_an_ungated_pod_of_others_with_a_missing_claim_is_left_alone() -> None:
    """Nobody can tell whose it is; a plan says what was missing."""
    decision = decide(world_of(pod(claims=[named("claim")], gated=False)))
    assert isinstance(decision, NotOurs)
    assert "'claim' does not exist" in decision.sentence


def test_an_attribute_that_nothing_supplies_is_named_with_the_nearest() -> None:
    """The gated pod stays gated; so does one that has a claim of ours besides."""
    wrong = claim("wrong", spec=devices_spec(match="dovetail.dev/numaNod"))
    world = world_of(*hardware("n1"), wrong, pod(claims=[named("wrong")]))
    decision = decide(world)
    assert reason(decision) is Reason.NO_MAPPING
    assert "dovetail.dev/numaNod," in str(decision)
    assert f"Did you mean {NUMA}?" in str(decision)
    world.put("ResourceClaim", claim("right"))
    world.put("Pod", pod(claims=[named("right", "right"), named("wrong", "wrong")]))
    assert reason(decide(world)) is Reason.NO_MAPPING


def test_an_ungated_pod_is_told_of_an_unknown_attribute_only_if_that_was_meant_for_us() -> None:
    """One in the domain of a mapping was; another one may be supplied by a driver that comes later."""
    for attribute, is_told in (("dovetail.dev/numaNod", True), ("vendor.example/x", False)):
        wrong = claim(spec=devices_spec(match=attribute))
        decision = decide(world_of(*hardware("n1"), wrong, pod(claims=[named("claim")], gated=False)))
        assert isinstance(decision, Waits if is_told else NotOurs)


def test_claims_of_the_pod_that_are_not_ours_are_planned_but_never_written() -> None:
    """The node has to serve both: here only the second has a device left for the plain claim."""
    full = claim("full", status=allocated("n1", "dev-1"))
    world = world_of(
        *hardware("n1", "n2"),
        full,
        claim("mine"),
        claim("plain", spec=PLAIN),
        pod(claims=[named("mine", "a"), named("plain", "b")]),
    )
    decision = placed(decide(world))
    assert decision.node == "n2"
    assert [(grant.claim[1], grant.ours) for grant in decision.grants] == [("mine", True), ("plain", False)]
    devices = [name for grant in decision.grants for name in device_names(grant.allocation)]
    assert len(set(devices)) == 3


def test_a_plain_claim_that_is_allocated_ties_our_claim_to_its_node() -> None:
    """Its node selector has to hold (S31)."""
    world = world_of(
        *hardware("n1", "n2"),
        claim("mine"),
        claim("plain", spec=PLAIN, status=allocated("n2", "dev-1")),
        pod(claims=[named("mine", "a"), named("plain", "b")]),
    )
    decision = placed(decide(world))
    assert decision.node == "n2"
    assert [grant.claim[1] for grant in decision.grants] == ["mine"]


def test_claims_that_are_tied_apart_leave_no_node() -> None:
    """The nodes are named."""
    world = world_of(
        *hardware("n1", "n2"),
        claim("mine"),
        claim("a", spec=PLAIN, status=allocated("n1", "dev-1")),
        claim("b", spec=PLAIN, status=allocated("n2", "dev-1")),
        pod(claims=[named("mine", "m"), named("a", "a"), named("b", "b")]),
    )
    decision = decide(world)
    assert reason(decision) is Reason.NO_NODE_USABLE
    assert "n1 and n2" in str(decision)


def test_an_allocated_claim_is_no_grant_and_is_named_where_it_is_elsewhere() -> None:
    """T-12: what it has is not planned again; a pod that cannot run there is told which claim is where."""
    held = claim("held", status=allocated("n1", "dev-1"))
    entries = [named("held", "first"), named("claim", "second")]
    bodies = (*hardware("n1", "n2"), held, claim())
    decision = placed(decide(world_of(*bodies, pod(claims=entries))))
    assert decision.node == "n1"
    assert [grant.claim[1] for grant in decision.grants] == ["claim"]
    assert decision.reserve == (("default", "held"),)
    elsewhere = decide(world_of(*bodies, pod(claims=entries, nodeSelector={HOSTNAME: "n2"})))
    assert elsewhere == DoesNotFit(
        Reason.NO_NODE_USABLE,
        "The pod can use no node: 1 node is without the labels of the pod's node selector "
        f"({HOSTNAME}=n2). Claim 'held' is allocated on node n1.",
    )


def test_a_claim_that_is_named_twice_is_allocated_once() -> None:
    """Two entries may name one claim."""
    world = world_of(*hardware("n1"), claim(), pod(claims=[named("claim", "a"), named("claim", "b")]))
    assert len(placed(decide(world)).grants) == 1


def test_a_gated_pod_whose_claims_have_their_devices_is_ungated() -> None:
    """The reservation is added where it is missing; an ungated pod is kube-scheduler's."""
    reserved = claim(owner="pod", status=allocated("n1", "dev-0", reserved=["pod"]))
    assert ours(reserved) == Reserve((), "n1")
    unreserved = claim(owner="pod", status=allocated("n1", "dev-0"))
    assert ours(unreserved) == Reserve((("default", "claim"),), "n1")
    assert ours(unreserved, gated=False) == Nothing()


def test_an_ungated_consumer_is_told_that_its_claim_leaves_it_no_node() -> None:
    """kube-scheduler adds consumers by itself, but not on a node that the pod cannot use."""
    status = allocated("n1", "dev-0", reserved=["other"])
    shared = claim("shared", status=status)

    def consumer(**spec: Any) -> Decision:
        entries = [named("shared")]
        return decide(world_of(*hardware("n1", "n2"), shared, pod(claims=entries, gated=False, **spec)))

    decision = consumer(nodeSelector={HOSTNAME: "n2"})
    assert reason(decision) is Reason.NO_NODE_USABLE
    assert "Claim 'shared' is allocated on node n1" in str(decision)
    assert consumer() == Nothing()
    assert consumer(nodeSelector={HOSTNAME: "n2"}, nodeName="n2") == Nothing()


def test_a_claim_of_others_is_never_reserved() -> None:
    """Though the pod uses it, and though it is allocated already."""
    world = world_of(
        *hardware("n1"),
        claim("mine", status=allocated("n1", "dev-0", reserved=["other"])),
        claim("plain", spec=PLAIN, status=allocated("n1", "dev-1", reserved=["other"])),
        pod(claims=[named("mine", "m"), named("plain", "p")]),
    )
    assert decide(world) == Reserve((("default", "mine"),), "n1")


def test_an_allocated_shared_claim_is_joined_only_on_a_node_that_has_room() -> None:
    """The pod stays gated until it could run where the devices are."""
    status = allocated("n1", "dev-0", reserved=["first"])
    first = pod("first", claims=[named("shared")], gated=False, cpu="6", nodeName="n1")
    world = world_of(
        *hardware("n1", "n2"), claim("shared", status=status), first, pod(claims=[named("shared")], cpu="4")
    )
    assert reason(decide(world)) is Reason.NO_NODE_USABLE
    world.drop("Pod", "default", "first")
    assert decide(world) == Reserve((("default", "shared"),), "n1")


def test_the_node_of_a_shared_claim_suits_all_its_pods() -> None:
    """Together: their selectors, their resources, and the claims that each of them has besides."""
    second = pod(
        "second", claims=[named("shared"), named("own", "own")], cpu="5", nodeSelector={"fast": "yes"}
    )
    labels = {"fast": "yes"}
    world = world_of(
        *hardware("n1", "n2", "n3", "n4"),
        node("n2", labels=labels, cpu="8"),
        node("n3", labels=labels, cpu="10"),
        node("n4", labels=labels, cpu="10"),
        claim("shared", spec=PLAIN | {"devices": devices_spec(request("nic", NIC))["devices"]}),
        claim("own", spec=PLAIN),
        claim("a", spec=PLAIN, status=allocated("n3", "dev-0")),
        claim("b", spec=PLAIN, status=allocated("n3", "dev-1")),
        pod(claims=[named("shared")], cpu="5"),
        second,
    )
    decision = placed(decide(world))
    assert decision.node == "n4"
    assert [grant.claim[1] for grant in decision.grants] == ["shared"]


def test_where_no_node_suits_all_pods_of_a_shared_claim_the_first_is_served() -> None:
    """Better one runs than none."""
    world = world_of(
        *hardware("n1"),
        claim(),
        pod(claims=[named("claim")], cpu="5"),
        pod("other", claims=[named("claim")], cpu="5"),
    )
    assert placed(decide(world)).node == "n1"


def test_a_shared_claim_follows_its_pod_that_runs() -> None:
    """A bound pod cannot move."""
    runs = pod("runs", claims=[named("claim")], gated=False, nodeName="n2")
    world = world_of(*hardware("n1", "n2"), claim(), runs, pod(claims=[named("claim")]))
    assert placed(decide(world)).node == "n2"
    world.put("Pod", pod("too", claims=[named("claim")], gated=False, nodeName="n1"))
    assert reason(decide(world)) is Reason.NO_NODE_USABLE


def test_a_claim_takes_only_so_many_consumers() -> None:
    """256: one more would be refused by the API server."""
    crowd = [f"p{index}" for index in range(256)]
    world = world_of(
        *hardware("n1"), claim(status=allocated("n1", "dev-0", reserved=crowd)), pod(claims=[named("claim")])
    )
    assert reason(decide(world)) is Reason.CONSUMER_LIMIT
    crowd[7] = "pod"
    world.put("ResourceClaim", claim(status=allocated("n1", "dev-0", reserved=crowd)))
    assert decide(world) == Reserve((), "n1")


def test_a_claim_that_kube_scheduler_could_allocate_is_taken_only_while_its_pods_are_gated() -> None:
    """Any gate will do; a pod that is bound already is not scheduled any more (V-22)."""
    config = [
        {
            "opaque": {
                "driver": "dovetail.dev",
                "parameters": {"apiVersion": "dovetail.dev/v1alpha1", "kind": "ClaimParameters"},
            }
        }
    ]
    shared = claim(spec=devices_spec(request("gpu", GPU), match=None, config=config))
    world = world_of(*hardware("n1"), shared, pod(claims=[named("claim")]))
    assert placed(decide(world)).node == "n1"
    world.put("Pod", pod("rival", claims=[named("claim")], gated=False))
    decision = decide(world)
    assert reason(decision) is Reason.SHARED_CLAIM_NOT_GATED
    assert "'rival'" in str(decision)
    world.put("Pod", pod("rival", claims=[named("claim")], gated=False, gates=["other"]))
    assert placed(decide(world)).node == "n1"
    world.put("Pod", pod("rival", claims=[named("claim")], gated=False, nodeName="n1"))
    assert placed(decide(world)).node == "n1"
    world.put("Pod", pod(claims=[named("claim")], gated=False))
    assert reason(decide(world)) is Reason.SHARED_CLAIM_NOT_GATED


def test_a_claim_that_is_being_deleted_is_not_allocated() -> None:
    """S13: kube-scheduler refuses the pod as well, even where the claim is allocated."""
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    for status in ({}, allocated("n1", "dev-0", reserved=["pod"])):
        world = world_of(
            *hardware("n1"), claim(metadata=leaving, status=status), pod(claims=[named("claim")])
        )
        assert reason(decide(world)) is Reason.CLAIM_BEING_DELETED


def test_a_claim_of_a_pod_group_is_refused() -> None:
    """G29: it would be reserved for the group, which nothing here does."""
    made = claim()
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "name": "g",
            "uid": "u",
            "controller": True,
        }
    ]
    status = {"resourceClaimStatuses": [{"name": "devices", "resourceClaimName": "claim"}]}
    world = world_of(*hardware("n1"), template(), made, pod(template="template", status=status))
    assert reason(decide(world)) is Reason.POD_GROUP_UNSUPPORTED


def test_a_container_that_uses_an_unknown_claim_is_reported() -> None:
    """T-7: container and claim are named; several containers may share one."""
    using = [
        {"name": name, "resources": {"claims": [{"name": "devices", "request": name}]}}
        for name in ("gpu", "nic")
    ]
    assert isinstance(ours(containers=using), Place)
    wrong = [{"name": "main", "resources": {"claims": [{"name": "other"}]}}]
    decision = ours(containers=wrong)
    assert reason(decision) is Reason.INVALID_POD
    assert "'main'" in str(decision)
    assert "'other'" in str(decision)


def test_a_claim_that_is_wrong_as_it_is_written_is_invalid() -> None:
    """The reason is the allocator's, and names the claim; so is one whose class does not exist."""
    spec = devices_spec(request("gpu", "no.such.class"), request("nic", NIC))
    decision = ours(claim(owner="pod", spec=spec))
    assert reason(decision) is Reason.INVALID_CLAIM
    assert "no.such.class" in str(decision)


def test_a_spent_budget_is_told_apart_from_no() -> None:
    """Nothing is known then."""
    world = world_of(*hardware("n1"), template(), claim(owner="pod"), pod(template="template"))
    decision = plan_pod(world, pod_in(world), settings=PlanSettings(), budget=Budget(steps=0))
    assert isinstance(decision, Cut)


def test_a_pod_is_not_in_its_own_way() -> None:
    """One of its claims ties it to a node already, where its cpu is counted."""
    world = world_of(
        *hardware("n1", "n2"),
        claim("made", owner="pod", status=allocated("n2", "dev-1")),
        claim("mine"),
        template(),
        pod(template="template", claims=[named("mine", "mine")], cpu="8"),
    )
    decision = placed(decide(world))
    assert decision.node == "n2"
    assert decision.reserve == (("default", "made"),)


def test_deciding_changes_nothing() -> None:
    """The same question twice has the same answer."""
    world = world_of(*hardware("n1", "n2"), template(), claim(owner="pod"), pod(template="template", cpu="1"))
    version = world.inventory.version
    assert decide(world) == decide(world)
    assert world.inventory.version == version


def test_pods_are_served_by_priority_then_age_then_as_they_come() -> None:
    """A pod without a creation time was never stored: it is the youngest."""
    bodies = [
        pod("new", metadata={"creationTimestamp": "2026-01-02T00:00:00Z"}),
        pod("unborn-1"),
        pod("unborn-2"),
        pod("old", metadata={"creationTimestamp": "2026-01-01T00:00:00Z"}),
        pod("urgent", priority=10),
        pod("patient", priority=-1),
    ]
    order = order_of(world_of(*bodies).pods.values())
    assert [each.metadata.name for each in order] == [
        "urgent",
        "old",
        "new",
        "unborn-1",
        "unborn-2",
        "patient",
    ]


@pytest.mark.parametrize("kind", ["ResourceClaim", "Pod"])
def test_a_generated_claim_of_a_pod_before_is_not_used(kind: str) -> None:
    """A pod replaced under the same name gets a claim of its own, whatever arrives first."""
    before = claim(owner="pod")
    before["metadata"]["ownerReferences"][0]["uid"] = "uid-before"
    status = {"resourceClaimStatuses": [{"name": "devices", "resourceClaimName": "claim"}]}
    bodies = [before, pod(template="template", status=status)]
    bodies.sort(key=lambda body: body["kind"] != kind)
    world = world_of(*hardware("n1"), template(), *bodies)
    assert reason(decide(world)) is Reason.CLAIMS_NOT_CREATED


def test_who_expects_claims_of_one_template_to_share_is_told_how_to_share() -> None:
    """T-17, R-G1: only where the claim asks its driver for sharing, and another pod has the devices."""
    asking = [{"opaque": {"driver": GPU, "parameters": {"sharing": {"strategy": "TimeSlicing"}}}}]
    for config, is_told in ((asking, True), ([], False)):
        spec = devices_spec(config=config)
        world = world_of(
            *hardware("n1", numa=[0]),
            template(spec=spec),
            claim("first", spec=spec, owner="first", status=allocated("n1", "dev-0", reserved=["first"])),
            claim(spec=spec, owner="pod"),
            pod("first", template="template"),
            pod(template="template"),
        )
        decision = decide(world)
        assert reason(decision) is Reason.NOTHING_FITS
        assert ("let the pods name one ResourceClaim" in str(decision)) is is_told


def test_what_stands_in_the_way_on_other_nodes_is_told_too() -> None:
    """Nodes without the devices, and nodes that the pod cannot use."""
    holder = claim("full", status=allocated("n1", "dev-0", "dev-1"))
    decision = ours(holder, node("n2", unschedulable=True))
    assert reason(decision) is Reason.NOTHING_FITS
    assert str(decision).count("Besides, 1 node is cordoned.") == 1


@pytest.mark.parametrize(
    ("mine", "others", "spec", "node_name"),
    [
        (10, 5, {}, "n1"),
        (10, 5, {"preemptionPolicy": "Never"}, None),
        (5, 5, {}, None),
        (5, 10, {}, None),
    ],
)
def test_a_node_is_good_enough_if_kube_scheduler_can_make_room_there(
    mine: int, others: int, spec: Body, node_name: str | None
) -> None:
    """V-20: pods of lower priority hold nothing but its cpu; with a node that has room, none has to leave."""
    busy = pod("busy", gated=False, nodeName="n1", cpu="6", priority=others)
    of_pod: Body = {"priority": mine, "cpu": "4", **spec}
    decision = ours(busy, nodes=("n1",), **of_pod)
    assert (decision.node if isinstance(decision, Place) else None) == node_name
    assert not isinstance(decision, Place) or decision.preempts
    roomy = placed(ours(busy, nodes=("n1", "n2"), **of_pod))
    assert roomy.node == "n2"
    assert not roomy.preempts


def test_nobody_is_evicted_for_devices() -> None:
    """Room that kube-scheduler can make is room in cpu, memory and the number of pods alone."""
    holder = claim("held", status=allocated("n1", "dev-0", "dev-1", reserved=["busy"]))
    busy = pod("busy", gated=False, nodeName="n1", cpu="6", claims=[named("held")])
    assert reason(ours(holder, busy, nodes=("n1",), priority=10, cpu="4")) is Reason.NO_NODE_USABLE


def test_devices_that_the_pod_asks_for_as_extended_resources_are_planned_with_its_claims() -> None:
    """kube-scheduler takes them from the same devices, unless a device plugin offers them on the node.

    Here the plugin keeps to other devices than the driver, which has to be said.
    """
    backed = device_class("backing", extendedResourceName="example.com/gpu")
    backed["spec"]["selectors"] = device_class(GPU)["spec"]["selectors"]
    wanted = [{"name": "main", "resources": {"requests": {"example.com/gpu": "1"}}}]
    full = claim("full", status=allocated("n1", "dev-1"))
    assert placed(ours(backed, full, containers=wanted)).node == "n2"
    plugin = node("n1", plugins={"example.com/gpu": "1"})
    decision = placed(ours(backed, full, plugin, containers=wanted, exclude_dual_mode=False))
    assert decision.node == "n1"
    assert [grant.claim[1] for grant in decision.grants] == ["claim"]
    implicit = [
        {"name": "main", "resources": {"requests": {"deviceclass.resource.kubernetes.io/backing": "2"}}}
    ]
    assert reason(ours(backed, containers=implicit)) is Reason.NOTHING_FITS


def test_a_refusal_names_the_attributes_whatever_is_in_the_way_first() -> None:
    """Here the devices are in use; the constraints are told all the same."""
    spec = devices_spec()
    spec["devices"]["constraints"].append({"distinctAttribute": NUMA.replace("numaNode", "socket")})
    holder = claim("full", status=allocated("n1", "dev-0", "dev-1"))
    world = world_of(
        *hardware("n1"),
        holder,
        mapping("dovetail.dev/socket", "socket"),
        claim(spec=spec),
        pod(claims=[named("claim")]),
    )
    decision = decide(world)
    assert reason(decision) is Reason.NOTHING_FITS
    for name in (NUMA, "dovetail.dev/socket", GPU):
        assert name in str(decision)


def test_resources_that_only_others_want_count_too() -> None:
    """The first pod of a shared claim asks for nothing; its node has room for the two that ask for much."""
    others = [pod(name, claims=[named("shared")], cpu="5") for name in ("b", "c")]
    world = world_of(
        *hardware("n1", "n2"), node("n2", cpu="10"), claim("shared"), pod(claims=[named("shared")]), *others
    )
    assert placed(decide(world)).node == "n2"


def test_a_crowd_that_shares_a_claim_is_judged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work grows with the nodes and with the pods, not with their product."""
    crowd = [pod(f"p{index}", claims=[named("shared")], cpu="10m") for index in range(200)]
    roomy = [node(name) for name in ("n1", "n2", "n3", "n4")]
    for body in roomy:
        body["status"]["allocatable"]["pods"] = "1000"
    world = world_of(*hardware("n1", "n2", "n3", "n4"), *roomy, claim("shared"), *crowd)
    looks: list[str] = []
    judge = world.judge.refuse_amounts

    def counted(state: Any, *arguments: Any, **more: Any) -> Any:
        looks.append(state.name)
        return judge(state, *arguments, **more)

    monkeypatch.setattr(world.judge, "refuse_amounts", counted)
    assert placed(decide(world, "p0")).node == "n1"
    assert len(looks) == 8
