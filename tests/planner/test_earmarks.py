"""What is kept for a pod that needs several devices, and who has to leave it."""

from collections.abc import Iterable

from dovetail.core.budget import Budget
from dovetail.core.decisions import Decision, DoesNotFit, Place, Waits
from dovetail.core.earmarks import Contender, Earmark, choose, plan_beside
from dovetail.core.inventory import holds_in
from dovetail.core.planner import PlanSettings
from dovetail.core.reasons import Reason
from dovetail.core.world import World
from tests.planner.worlds import (
    Body,
    allocated,
    claim,
    devices_spec,
    hardware,
    named,
    pod,
    request,
    world_of,
)

GPU = "gpu.example.com"
SETTINGS = PlanSettings()


def small(name: str, *, device: str = "", node: str = "n1", priority: int = 0, age: int = 9) -> list[Body]:
    """A pod for one GPU; with `device`, it has it."""
    spec = devices_spec(request("gpu", GPU))
    status = allocated(node, device, reserved=[name]) if device else None
    return [claim(name, spec=spec, status=status), *_pod(name, priority, age)]


def large(name: str = "large", *, count: int = 4, priority: int = 100, age: int = 9) -> list[Body]:
    """A pod for several GPUs of one NUMA node."""
    spec = devices_spec(request("gpu", GPU, count=count))
    return [claim(name, spec=spec), *_pod(name, priority, age)]


def _pod(name: str, priority: int, age: int) -> list[Body]:
    created = {"creationTimestamp": f"2026-01-01T00:00:0{9 - age}Z"}
    return [pod(name, claims=[named(name)], priority=priority, metadata=created)]


def crowded(*bodies: Body, free: Iterable[int] = (), nodes: tuple[str, ...] = ("n1",)) -> World:
    """Nodes with four GPUs each, all but the `free` ones of the first held by small pods."""
    world = world_of(*hardware(*nodes, numa=(0, 0, 0, 0)))
    held = [
        small(f"{node}-{index}", device=f"dev-{index}", node=node)
        for node in nodes
        for index in range(4)
        if not (node == "n1" and index in free)
    ]
    for body in [*(body for group in held for body in group), *bodies]:
        world.put(body["kind"], body)
    return world


def keep(world: World, *names: str, before: Iterable[Earmark] = (), most: int = 4) -> tuple[Earmark, ...]:
    """What is kept for pods of the world."""
    known = {each.pod: each for each in before}
    contenders = [Contender(("default", name), f"uid-{name}", known.get(("default", name))) for name in names]
    return choose(world, contenders, settings=SETTINGS, budget=Budget.unlimited, most=most)


def decide(world: World, name: str, earmarks: Iterable[Earmark]) -> Decision:
    """The decision about a pod beside what is kept."""
    return plan_beside(
        world,
        world.pods["default", name],
        tuple(earmarks),
        settings=SETTINGS,
        budget=Budget.unlimited(),
    )


def test_all_devices_are_kept_for_a_pod_that_needs_all() -> None:
    """The free one and those that others still hold: who holds them is waited for."""
    world = crowded(*large(), free=[2])

    (earmark,) = keep(world, "large")

    assert sorted(key.device for key in earmark.devices) == ["dev-0", "dev-1", "dev-2", "dev-3"]
    assert earmark.waits_for == {("default", name) for name in ("n1-0", "n1-1", "n1-3")}


def test_less_urgent_pods_leave_what_is_kept_and_are_told() -> None:
    """One of lower priority, and a younger one; the name is told within the namespace alone."""
    world = crowded(*large(age=5), *small("low"), *small("young", priority=100, age=1), free=[2])
    earmarks = keep(world, "large")
    foreign = [body | {"metadata": body["metadata"] | {"namespace": "other"}} for body in small("foreign")]
    for body in foreign:
        world.put(body["kind"], body)

    low, young = decide(world, "low", earmarks), decide(world, "young", earmarks)
    other = plan_beside(
        world, world.pods["other", "foreign"], earmarks, settings=SETTINGS, budget=Budget.unlimited()
    )

    prefix = "The devices that the pod could have are held for"
    assert low == Waits(Reason.HELD_FOR_ANOTHER, f"{prefix} pod 'large', which has a higher priority.")
    assert young == Waits(Reason.HELD_FOR_ANOTHER, f"{prefix} pod 'large', which is older.")
    assert other == Waits(Reason.HELD_FOR_ANOTHER, f"{prefix} a pod of higher priority in another namespace.")


def test_more_urgent_pods_and_the_pod_itself_do_not_see_it() -> None:
    """A pod of higher priority takes the free device; the pod takes all when they are free."""
    world = crowded(*large(), *small("urgent", priority=200), free=[2])
    earmarks = keep(world, "large")
    for index in (0, 1, 3):
        world.drop("ResourceClaim", "default", f"n1-{index}")

    assert isinstance(decide(world, "urgent", earmarks), Place)
    assert isinstance(decide(world, "large", earmarks), Place)


def test_other_devices_of_the_node_and_other_nodes_stay_for_all() -> None:
    """Two of four are kept: the third goes to a small pod, which does not get a kept one."""
    world = crowded(*large(count=2), *small("low"), free=[1])
    earmarks = keep(world, "large")
    (kept,) = earmarks
    for index in (0, 2, 3):
        if ("default", f"n1-{index}") not in kept.waits_for:
            world.drop("ResourceClaim", "default", f"n1-{index}")
    world.put("ResourceClaim", claim("large", spec=devices_spec(request("gpu", GPU, count=4))))

    decision = decide(world, "low", earmarks)

    assert isinstance(decision, Place)
    taken = {hold.device for grant in decision.grants for hold in holds_in(grant.allocation.body)}
    assert len(kept.devices) == 2
    assert taken.isdisjoint(kept.devices)


def test_the_node_is_chosen_where_the_fewest_have_to_let_go() -> None:
    """Of two nodes with four devices the one with a free device."""
    world = crowded(*large(), free=[0, 1], nodes=("n0", "n1"))

    (earmark,) = keep(world, "large")

    assert earmark.node == "n1"
    assert len(earmark.waits_for) == 2


def test_nothing_is_kept_for_what_can_never_fit() -> None:
    """Five of four devices; and nothing for a pod that fits now."""
    world = crowded(*large(count=5), *small("fits"), free=[2])

    assert isinstance(decide(world, "large", ()), DoesNotFit)
    assert keep(world, "large", "fits") == ()


def test_nothing_is_kept_for_pods_that_are_not_served() -> None:
    """One behind somebody else's gate, and one of another scheduler."""
    spec = devices_spec(request("gpu", GPU, count=4))
    world = crowded(
        claim("gated", spec=spec),
        pod("gated", claims=[named("gated")], gates=["example.com/hold"]),
        claim("other", spec=spec),
        pod("other", claims=[named("other")], schedulerName="other"),
    )

    assert keep(world, "gated", "other") == ()


def test_two_large_pods_do_not_wait_for_each_other() -> None:
    """The more urgent one has the earmark; the other one has one elsewhere, or none."""
    world = crowded(*large("first"), *large("second", priority=50))
    two = crowded(*large("first"), *large("second", priority=50), nodes=("n0", "n1"))

    assert [each.pod[1] for each in keep(world, "second", "first")] == ["first"]
    assert [(each.pod[1], each.node) for each in keep(two, "second", "first")] == [
        ("first", "n0"),
        ("second", "n1"),
    ]


def test_what_is_kept_stays_the_same_while_others_let_go() -> None:
    """Devices collect: the earmark does not move to another node, though that has more free by then."""
    world = crowded(*large(), free=[2], nodes=("n0", "n1"))
    before = keep(world, "large")
    for index in range(3):
        world.drop("ResourceClaim", "default", f"n0-{index}")

    assert keep(world, "large", before=before) == before


def test_what_is_kept_is_chosen_anew_when_it_can_no_longer_be_had() -> None:
    """The node goes, a device goes, a more urgent pod takes one, or the pod's claim is another one."""
    for change in ("node", "device", "taken", "claim"):
        world = crowded(*large(), free=[2], nodes=("n0", "n1"))
        before = keep(world, "large")
        assert before[0].node == "n1"
        if change == "node":
            world.drop("Node", "", "n1")
        elif change == "device":
            world.drop("ResourceSlice", "", f"n1-{GPU}")
        elif change == "taken":
            for body in small("urgent", device="dev-2", priority=200):
                world.put(body["kind"], body)
        else:
            there = claim("large", spec=devices_spec(request("gpu", GPU, count=4)))
            there["metadata"]["uid"] = "another"
            world.put("ResourceClaim", there)

        after = keep(world, "large", before=before)

        assert after != before, change
        assert len(after) == 1, change


def elsewhere(namespace: str, *bodies: Body) -> list[Body]:
    """The same objects in another namespace."""
    return [body | {"metadata": body["metadata"] | {"namespace": namespace}} for body in bodies]


def test_among_equal_pods_what_is_kept_stays_then_who_owes_less_comes_first() -> None:
    """The older pod waits behind it, one of higher priority does not."""
    world = crowded(*large("old", age=9), *large("higher", priority=101), *elsewhere("b", *large("p", age=1)))
    old = Contender(("default", "old"), "uid-old", owed=3.0)
    young = Contender(("b", "p"), "uid-p")
    higher = Contender(("default", "higher"), "uid-higher", owed=9.0)

    def kept(*contenders: Contender) -> tuple[Earmark, ...]:
        return choose(world, contenders, settings=SETTINGS, budget=Budget.unlimited, most=4)

    (first,) = kept(old, young)
    assert first.pod == young.pod
    owing = Contender(young.pod, young.uid, first, owed=99.0)
    assert kept(old, owing) == (first,)
    assert [each.pod for each in kept(owing, higher)] == [higher.pod]


def test_one_pod_of_a_namespace_is_helped_and_an_elder_that_cannot_be_is_none() -> None:
    """The first that can be helped."""
    world = crowded(
        *large("never", count=5, priority=200),
        *large("first"),
        *large("second", priority=50),
        nodes=("n0", "n1"),
    )
    contenders = [Contender(("default", name), f"uid-{name}") for name in ("never", "first", "second")]

    kept = choose(world, contenders, settings=SETTINGS, budget=Budget.unlimited, most=4, of_each=1)

    assert [each.pod[1] for each in kept] == ["first"]


def test_nothing_is_kept_of_pools_that_are_spent_but_what_is_kept_already() -> None:
    """Whichever node reaches them."""
    world = crowded(*large())
    (earmark,) = keep(world, "large")

    def kept(before: Earmark | None) -> tuple[Earmark, ...]:
        contender = Contender(earmark.pod, earmark.uid, before, spent=earmark.pools)
        return choose(world, [contender], settings=SETTINGS, budget=Budget.unlimited, most=1)

    assert kept(None) == ()
    assert kept(earmark) == (earmark,)


def test_what_is_kept_stays_until_the_pod_has_it() -> None:
    """All devices are free, and the pod has not been decided about yet."""
    world = crowded(*large())
    before = keep(world, "large")
    for index in range(4):
        world.drop("ResourceClaim", "default", f"n1-{index}")

    assert keep(world, "large", before=before) == before


def test_nothing_is_kept_for_a_pod_of_the_same_name() -> None:
    """It is another pod."""
    world = crowded(*large(), free=[2])

    assert (
        choose(
            world,
            [Contender(("default", "large"), "another")],
            settings=SETTINGS,
            budget=Budget.unlimited,
            most=1,
        )
        == ()
    )


def test_the_present_state_is_left_as_it_is() -> None:
    """To suppose that claims let go changes nothing."""
    world = crowded(*large(), *small("low"), free=[2])
    version = world.inventory.version

    earmarks = keep(world, "large")
    decide(world, "low", earmarks)

    assert world.inventory.version == version
    assert isinstance(decide(world, "low", ()), Place)
