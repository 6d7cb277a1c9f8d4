"""What one tenant's pods cost does not keep others from being served."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from dovetail.core.allowance import BRIEF_SECONDS
from dovetail.embedded import EmbeddedCluster
from dovetail.handlers.context import Context
from tests.operator.conftest import OperatorStarter
from tests.operator.test_order import is_open
from tests.operator.worlds import (
    HARD_DRIVER,
    Body,
    claim,
    device,
    hard_claim,
    hard_hardware,
    node,
    pairs,
    pod,
    slice_of,
    waits_for,
)

CUT_PODS = 8
USUAL_PODS = 5
MORE_CUT_PODS = 8
"""So many more come in each of many namespaces at the same time."""


def decisions(context: Context, kind: str) -> float:
    """How many decisions of a kind there were."""
    assert context.operation is not None
    value = context.operation.metrics.registry.get_sample_value(
        "dovetail_decisions_total", {"decision": kind}
    )
    return value or 0.0


def short_decisions(context: Context) -> float:
    """How many decisions took less time than a brief search may take of the CPU alone."""
    assert context.operation is not None
    value = context.operation.metrics.registry.get_sample_value(
        "dovetail_decision_seconds_bucket", {"le": str(BRIEF_SECONDS)}
    )
    assert value is not None
    return value


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what metrics say."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - metrics are no events
            await asyncio.sleep(0.02)


def create_cut_pods(
    cluster: EmbeddedCluster, count: int, namespace: str = "default", *, start: int = 0, priority: int = 0
) -> None:
    """Pods for whose claims no search ends in time."""
    for index in range(start, start + count):
        name = f"hard-{index}"
        for body in (hard_claim(name, index), pod(name, claim=name, priority=priority)):
            cluster.create(body | {"metadata": body["metadata"] | {"namespace": namespace}})


@pytest.mark.parametrize("namespace", ["other", "default"])
async def test_pods_whose_searches_are_cut_keep_nobody_waiting(
    bare: EmbeddedCluster, operator: OperatorStarter, namespace: str
) -> None:
    """They are older, and more than the others; while those are served, few long searches take place."""
    bare.load(*pairs(USUAL_PODS), *hard_hardware())
    bare.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    context = await operator(decision_seconds=1.0)
    create_cut_pods(bare, CUT_PODS, namespace)
    await bare.wait_for("Pod", waits_for("SearchCut"), timeout_seconds=30)

    for index in range(USUAL_PODS):
        bare.create(claim(f"usual-{index}"))
        bare.create(pod(f"usual-{index}", claim=f"usual-{index}"))
        await bare.wait_for("Pod", partial(is_open, f"usual-{index}"), timeout_seconds=15)

    # Each had a brief one; every pod that was served was a change that once brought all of them back.
    assert decisions(context, "Cut") <= CUT_PODS + 4


@pytest.mark.parametrize("own", [0, 1], ids=["no cut pod", "a cut pod"])
async def test_cut_pods_of_many_namespaces_together_keep_nobody_waiting(
    bare: EmbeddedCluster, operator: OperatorStarter, own: int
) -> None:
    """None wastes much; they are more urgent than the pod of another one, which may have a cut pod too."""
    crowd = [f"crowd-{number}" for number in range(12)]
    bare.load(*pairs(1), *hard_hardware())
    bare.load(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in crowd))
    context = await operator(decision_seconds=0.3)
    create_cut_pods(bare, own)
    for name in crowd:
        create_cut_pods(bare, 1, name, priority=100)
    await until(lambda: decisions(context, "Cut") >= own + len(crowd))

    before = decisions(context, "Cut")
    for name in crowd:
        create_cut_pods(bare, MORE_CUT_PODS, name, start=1, priority=100)
    bare.create(claim("usual"))
    bare.create(pod("usual", claim="usual"))
    await bare.wait_for("Pod", partial(is_open, "usual"), timeout_seconds=60)
    before_usual = decisions(context, "Cut") - before
    await until(lambda: decisions(context, "Cut") >= own + len(crowd) * (1 + MORE_CUT_PODS))

    assert before_usual <= len(crowd) * MORE_CUT_PODS / 2
    assert short_decisions(context) >= decisions(context, "Cut") / 2


async def test_changes_that_a_claim_cannot_use_do_not_bring_it_back(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Nodes and devices of others change all the time; the search is not made again for that."""
    bare.load(*pairs(1), *hard_hardware())
    context = await operator(decision_steps=300)
    create_cut_pods(bare, 1)
    await bare.wait_for("Pod", waits_for("SearchCut"))

    for generation in range(2, 22):
        bare.replace(slice_of("dra.net", device("nic-0", numaNode=0), generation=generation))
        bare.replace(labelled(generation))
        await asyncio.sleep(0.1)

    assert decisions(context, "Cut") == 1


async def test_a_device_that_a_claim_could_use_brings_it_back_before_its_time(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The search is made anew within seconds, not when the pause of five seconds is over."""
    bare.load(*pairs(1), *hard_hardware())
    context = await operator(decision_steps=300)
    create_cut_pods(bare, 1)
    await bare.wait_for("Pod", waits_for("SearchCut"))
    began = asyncio.get_running_loop().time()

    published = bare.get("ResourceSlice", f"hard-{HARD_DRIVER}")
    extra = device("extra", **{"resource.kubernetes.io/numaNode": 0})
    published["spec"]["devices"].append(extra)
    bare.replace(published)
    await until(lambda: decisions(context, "Cut") >= 2)

    assert asyncio.get_running_loop().time() - began < 4.5


async def test_a_namespace_with_many_pods_does_not_keep_another_waiting(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Hundreds of older pods of equal priority wait; the pod of another namespace overtakes most of them."""
    crowd = 400
    bare.load(*pairs(1), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    await operator()
    for index in range(crowd):
        body = pod(f"crowd-{index}", claim="none", gates=("dovetail.dev/allocation", "example.com/hold"))
        bare.create(body)
    bare.create(claim("usual") | {"metadata": {"name": "usual", "namespace": "other"}})
    usual = pod("usual", claim="usual")
    bare.create(usual | {"metadata": {"name": "usual", "namespace": "other"}})

    await bare.wait_for("Pod", partial(is_open, "usual"), timeout_seconds=60)

    told = sum(1 for body in bare.objects("Pod") if waits_for()(body))
    assert told < crowd


def labelled(number: int) -> Body:
    """The first node with another label."""
    body = node()
    body["metadata"]["labels"]["round"] = str(number)
    return body
