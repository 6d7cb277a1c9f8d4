"""Pods that come, go or never fit keep no devices idle for ever, and no holds from others."""

import asyncio
from functools import partial

import pytest

from dovetail.embedded import EmbeddedCluster
from dovetail.errors import DovetailError
from tests.operator.conftest import OperatorStarter
from tests.operator.test_holding import (
    NAMESPACE,
    WORLD,
    create,
    crowd,
    finish,
    held_pods,
    is_held_for,
    is_told,
    until_held,
)
from tests.operator.test_order import is_open
from tests.operator.worlds import Body, is_gated


def namespace(name: str) -> Body:
    """One more namespace."""
    return NAMESPACE | {"metadata": {"name": name}}


def held_for(cluster: EmbeddedCluster) -> set[str]:
    """The pods that were told that devices are held for them."""
    try:
        events = cluster.objects("Event")
    except DovetailError:
        return set()
    return {each["involvedObject"]["name"] for each in events if each["reason"] == "DevicesHeld"}


@pytest.mark.parametrize("where", ["default", "third"])
@pytest.mark.parametrize("overlaps", [True, False])
async def test_a_successor_does_not_begin_a_term_of_its_own(
    bare: EmbeddedCluster, operator: OperatorStarter, where: str, overlaps: bool
) -> None:
    """Under another name, in another namespace, before or after its predecessor is gone."""
    bare.load(*WORLD, namespace("third"))
    context = await operator()
    create(bare, "keeper")
    await bare.wait_for("Pod", partial(is_open, "keeper"))
    create(bare, "big", count=4, priority=100)
    await until_held(context, 1)
    create(bare, "small", namespace="other")
    await bare.wait_for("Pod", partial(is_told, "small", "HeldForAnother"))

    if overlaps:
        create(bare, "big-2", count=4, priority=100, namespace=where)
        await bare.wait_for("Pod", partial(is_told, "big-2", ""))
    bare.delete("Pod", "big")
    if not overlaps:
        create(bare, "big-2", count=4, priority=100, namespace=where)

    await bare.wait_for("Pod", partial(is_open, "small"), timeout_seconds=20)


async def test_who_has_held_in_vain_comes_after_other_namespaces(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """A row of older pods of one namespace: the next hold is for the honest pod of another one."""
    bare.load(*WORLD)
    context = await operator(hold_seconds=2)
    await crowd(bare)
    for number in range(3):
        create(bare, f"row-{number}", count=4, priority=100)
    await bare.wait_for("Event", partial(is_held_for, "row-0"), timeout_seconds=20)
    create(bare, "honest", count=4, priority=100, namespace="other")
    await until_held(context, 0)

    await bare.wait_for("Event", partial(is_held_for, "honest"), timeout_seconds=40)

    assert held_for(bare) == {"row-0", "honest"}


async def test_a_hold_that_ends_in_vain_ends_no_hold_of_others(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Two pods hold two devices each, of one node: one goes, and the other one is served in the end."""
    bare.load(*WORLD)
    context = await operator()
    running = await crowd(bare)
    create(bare, "gone", count=2, priority=100)
    create(bare, "honest", count=2, priority=100, namespace="other")
    await until_held(context, 2)

    bare.delete("Pod", "gone")
    await until_held(context, 1)
    for number, name in enumerate(running):
        create(bare, f"late-{number}")
        finish(bare, name)
        await asyncio.sleep(1)

    await bare.wait_for("Pod", partial(is_open, "honest"), timeout_seconds=20)
    assert held_pods(context) <= 1


async def test_an_elder_pod_that_never_fits_keeps_no_hold_from_its_namespace(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """It asks for more than any node has: the next pod of the namespace is served though small ones come."""
    bare.load(*WORLD)
    await operator()
    running = await crowd(bare)
    create(bare, "never", count=5, priority=200)
    await bare.wait_for("Pod", partial(is_told, "never", "NothingFits"))
    create(bare, "large", count=4, priority=100)
    await bare.wait_for("Event", partial(is_held_for, "large"), timeout_seconds=20)

    for number, name in enumerate(running):
        create(bare, f"late-{number}")
        finish(bare, name)
        await bare.wait_for("Pod", partial(is_told, f"late-{number}", ""))

    await bare.wait_for("Pod", partial(is_open, "large"), timeout_seconds=20)
    assert all(is_gated(bare.get("Pod", f"late-{number}")) for number in range(4))


async def test_pods_that_never_fit_keep_no_hold_from_other_namespaces(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """More namespaces than are asked about at a time, with pods of higher priority."""
    names = [f"never-{number}" for number in range(12)]
    bare.load(*WORLD, *[namespace(name) for name in names])
    await operator()
    await crowd(bare)
    for name in names:
        create(bare, name, count=5, priority=200, namespace=name)
    for name in names:
        await bare.wait_for("Pod", partial(is_told, name, "NothingFits"))

    create(bare, "large", count=4, priority=100)

    await bare.wait_for("Event", partial(is_held_for, "large"), timeout_seconds=20)
    assert held_for(bare) == {"large"}
