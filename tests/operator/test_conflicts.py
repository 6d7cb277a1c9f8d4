"""A conflict on a pod says that somebody wrote at the same time, not that the pod is gone."""

import pytest

from dovetail.embedded import EmbeddedCluster
from tests.operator.conftest import OperatorStarter
from tests.operator.worlds import condition, is_gated, pairs, plain, pod, template, waits_for


@pytest.mark.parametrize("name", ["pair", "plain"])
async def test_a_gate_opens_though_the_pod_was_written_at_the_same_time(
    bare: EmbeddedCluster, operator: OperatorStarter, name: str
) -> None:
    """The pod has all that it needs: nothing else would bring it back."""
    bare.load(*pairs(), template("plain", plain("gpu")))
    await operator()
    bare.faults.fail("PATCH", "pods", status=409, times=2)

    bare.create(pod(template=name))

    await bare.wait_for("Pod", lambda body: not is_gated(body), timeout_seconds=5.0)


async def test_a_pod_is_told_though_it_was_written_at_the_same_time(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """The condition comes with the next try."""
    bare.load(*pairs()[1:])
    await operator(claim_generation="never")
    bare.faults.fail("PATCH", "pods/status", status=409, times=2)

    bare.create(pod(gates=("dovetail.dev/allocation", "x/other")))

    waiting = await bare.wait_for("Pod", waits_for(""), timeout_seconds=5.0)
    assert condition(waiting)["reason"] == "OtherGates"


async def test_a_claim_is_named_though_the_pod_was_written_at_the_same_time(
    bare: EmbeddedCluster, operator: OperatorStarter
) -> None:
    """Without its name in the status the claim would get no devices."""
    bare.load(*pairs())
    await operator()
    bare.faults.fail("apply", "pods/status", status=409, times=2)
    bare.faults.fail("PATCH", "pods/status", status=409, times=2)

    bare.create(pod())

    await bare.wait_for("Pod", lambda body: not is_gated(body), timeout_seconds=5.0)
